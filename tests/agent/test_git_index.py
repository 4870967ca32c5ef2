"""A git index is parsed as git parses it, or refused."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from permission_world import shell
from telex.agent.permissions import DiskLookup, Judge, Mode, Permission
from telex.agent.permissions.git_index import NOT_AN_INDEX, index_entries, tracked_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHA1 = 20


def signed(content: bytes) -> bytes:
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def entry(name: bytes, length: int | None = None, padding: bytes = b"\0") -> bytes:
    flags = min(len(name), 0xFFF) if length is None else length
    made = struct.pack(">10L", *[0] * 6, 0o100644, 0, 0, 0) + bytes(SHA1) + struct.pack(">H", flags)
    made += name
    return made + b"\0" + padding * (7 - len(made) % 8)


def index_of(*made: bytes, more: bytes = b"", count: int | None = None) -> bytes:
    head = b"DIRC" + struct.pack(">LL", 2, len(made) if count is None else count)
    return signed(head + b"".join(made) + more)


def extension(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack(">L", len(data)) + data


def names(index: bytes) -> list[str]:
    return [one.name for one in index_entries(index, SHA1)]


A, B = entry(b"a"), entry(b"b")
AT_B = 12 + len(A)
END = AT_B + len(B)


def test_a_consistent_index_is_parsed() -> None:
    long = b"d/" * 2500 + b"x"
    assert names(index_of(A, B)) == ["a", "b"]
    assert names(index_of(entry(long))) == [long.decode()]
    assert names(index_of(A, more=extension(b"TREE", b"x" * 9))) == ["a"]
    assert names(index_of(A, B)[:-SHA1] + bytes(SHA1)) == ["a", "b"]  # index.skipHash
    offsets = struct.pack(">LLLLL", 1, 12, 1, AT_B, 1)
    ends = struct.pack(">L", END) + bytes(SHA1)
    assert names(index_of(A, B, more=extension(b"IEOT", offsets) + extension(b"EOIE", ends))) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    "index",
    [
        index_of(entry(b".envabcdefZZZZ\1\1\1\1", 3)),
        index_of(entry(b".env", 3)),
        index_of(entry(b".env", 5)),
        index_of(entry(b".env", 0)),
        index_of(entry(b".env", 0xFFF)),
        index_of(entry(b"x" * 0x1000, 0xFFE)),
        index_of(entry(b"ab", padding=b"x")),
        index_of(A, B)[:-1] + b"\0",
        index_of(A, B)[:-SHA1],
        index_of(A, B, count=1),
        index_of(A, B, count=3),
        index_of(A, more=b"xx"),
        index_of(A, more=extension(b"NEXT", b"")),
        index_of(A, more=extension(b"next", b"")),
        index_of(A, more=extension(b"link", b"")),
        index_of(A, more=extension(b"sdir", b"")),
        index_of(A, more=extension(b"TREE", b"x")[:-1]),
        index_of(A, B, more=extension(b"EOIE", struct.pack(">L", AT_B) + bytes(SHA1))),
        index_of(A, B, more=extension(b"IEOT", struct.pack(">LLL", 1, 12, 1))),
        index_of(A, B, more=extension(b"IEOT", struct.pack(">LLL", 1, AT_B, 2))),
        index_of(A, B, more=extension(b"IEOT", struct.pack(">LLLLL", 1, 12, 1, END, 1))),
        index_of(A, B, more=extension(b"IEOT", struct.pack(">LLL", 2, 12, 2))),
    ],
)
def test_a_contradictory_index_is_refused(index: bytes) -> None:
    with pytest.raises(NOT_AN_INDEX):
        tracked_files(index, SHA1)


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_the_parsed_names_equal_those_of_git(
    tmp_path: Path, program: Callable[[str], str], version: str, threads: str, form: str
) -> None:
    git = program("git")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [git, "-c", f"index.threads={threads}", *words],
            cwd=tmp_path,
            env=environ,
            input=given.encode(),
            check=True,
            capture_output=True,
        )
        return done.stdout.decode()

    run("init", "-q", f"--object-format={form}")
    blob = run("hash-object", "-w", "--stdin", given="x").strip()
    made = [f"dir{at % 9}/{'n' * (at % 70)}{at}" for at in range(500)] + ["d/" * 1100 + "z", ".env"]
    run("update-index", "--index-info", given="".join(f"100644 {blob}\t{one}\n" for one in made))
    (tmp_path / "later").write_text("")
    if version == "3":
        run("add", "-N", "later")
    else:
        run("update-index", "--index-version", version)
    index = (tmp_path / ".git" / "index").read_bytes()
    assert (b"IEOT" in index) == (threads != "1")
    found = [one.name for one in index_entries(index, 20 if form == "sha1" else 32)]
    assert found == run("ls-files", "-z").split("\0")[:-1]


def test_an_index_that_hides_a_name_asks(tmp_path: Path, program: Callable[[str], str]) -> None:
    """Git reads the name `.env`, by the length field; up to the NUL it is another name."""
    subprocess.run([program("git"), "init", "-q"], cwd=tmp_path, check=True)
    index = tmp_path / ".git" / "index"
    judge = Judge([], Mode.MINIMAL, str(tmp_path), "/home/me", DiskLookup(), trusted=True)
    for made, expected in (
        (entry(b"plain"), Permission.ALLOW),
        (entry(b".envplain\1\1", 4), Permission.ASK),
    ):
        index.write_bytes(index_of(made))
        for command in ("git diff", "git grep x"):
            assert judge.judge(shell(command, str(tmp_path))).decision is expected, command
