"""The check names what breaks a connection, with a remedy; an intact connection is measured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.test_escapes_end_to_end import loopback
from telex.htty.tools import connection_check
from telex.htty.tools.connection_check import ConnectionReport, check
from telex.processes.spawn import NoSuchProgram
from telex.wire.htty_chunk import encode

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parent / "programs"
TELEX = (sys.executable, "-m", "telex")
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


@pytest.fixture
def serve(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "index.html").write_text("<p>hello</p>")
    return (*TELEX, "htty", "serve", "--dir", str(tmp_path))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_check, "ANNOUNCE_SECONDS", 5.0)
    monkeypatch.setattr(connection_check, "ANSWER_SECONDS", 5.0)
    monkeypatch.setattr(connection_check, "MEASURED_SECONDS", 0.1)


def printing(data: bytes, then: str = "sleep 1000") -> tuple[str, ...]:
    octal = "".join(f"\\{byte:03o}" for byte in data)
    return "sh", "-c", f"printf '{octal}'; {then}"


def broken(report: ConnectionReport) -> list[str]:
    """Return the names of the failed checks; each must have a remedy."""
    found = [one for one in report.findings if one.breaks]
    assert all(one.advice for one in found)
    assert report.ok == (not found)
    return [one.name for one in found]


def sentence(report: ConnectionReport, name: str) -> str:
    return next(one.sentence for one in report.findings if one.name == name)


def is_measured(report: ConnectionReport) -> None:
    assert not broken(report), report
    assert (report.status, report.body_bytes) == (200, len("<p>hello</p>"))
    figures = (report.round_trip_ms, report.up_mb_s, report.down_mb_s, report.requests_s)
    assert all(figures), figures


async def test_an_intact_connection_is_measured(serve: tuple[str, ...]) -> None:
    report = await check(serve)
    is_measured(report)
    assert sentence(report, "environment").startswith("HTTY=1 reached")
    names = ["environment", "chunks", "raw mode", "echo", "connection", "long lines", "GET /"]
    assert [one.name for one in report.findings] == names


async def test_a_missing_page_is_a_status_and_not_a_fault(serve: tuple[str, ...]) -> None:
    report = await check(serve, path="/nothing-here")
    assert not broken(report)
    assert report.status == 404


async def test_behind_ssh_the_program_queries_the_terminal(
    serve: tuple[str, ...], program: Callable[[str], str], tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    async with loopback(program, keys) as ssh:
        report = await check([*ssh, shlex.join(serve)])
    is_measured(report)
    assert sentence(report, "environment").startswith("HTTY did not reach")


async def test_tmux_passes_chunks_on_only_with_allow_passthrough(
    serve: tuple[str, ...],
    program: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    config = tmp_path / "tmux.conf"
    config.write_text("set -g allow-passthrough on\n")
    inside = ("new-session", shlex.join(serve))
    report = await check([program("tmux"), "-L", "on", "-f", str(config), *inside])
    is_measured(report)
    monkeypatch.setattr(connection_check, "ANNOUNCE_SECONDS", 1.5)
    report = await check([program("tmux"), "-L", "off", "-f", "/dev/null", *inside])
    assert broken(report) == ["passthrough"]
    assert "allow-passthrough on" in report.findings[0].advice


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        (printing(b"\x1bPHTTY;2;QQ==\x1b\\", "true"), "version", "version"),
        (printing(b"abc\x1bPHTTY;1;Q\x1b\\", "true"), "chunks", "byte 3"),
        (printing(b"PHTTY;1;AAAABAAAAAAA", "true"), "DCS", "as text"),
        (("sh", "-c", "echo no thanks; exit 3"), "environment", "no thanks"),
        (("sh", "-c", "echo oh no; exit 4"), "command", "exited with code 4"),
        (("sh", "-c", "echo oh no; exit 4"), "command", "oh no"),
        ((*TELEX[:1], "-c", "pass"), "command", "exited with code 0"),
        (
            ("env", "HTTY=0", *TELEX, "htty", "serve", "--dir", "."),
            "environment",
            "no pages are shown",
        ),
    ],
)
async def test_the_reason_for_missing_chunks_is_named(
    command: tuple[str, ...], name: str, expected: str
) -> None:
    report = await check(command)
    assert broken(report) == [name]
    assert expected in sentence(report, name)


@pytest.mark.parametrize("eager", [False, True])
async def test_the_raw_form_of_later_releases_is_named_at_once(
    eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_check, "ANNOUNCE_SECONDS", 3600.0)
    monkeypatch.setattr(connection_check, "ANSWER_SECONDS", 3600.0)
    raw = b"\x1bP+Hraw\x1b\\" + SETTINGS
    report = await check(printing(raw, "stty raw -echo; exec cat >/dev/null"), eager=eager)
    assert broken(report)[-1] == "form"
    assert "speaks the raw form of later HTTY releases" in sentence(report, "form")


async def test_a_silent_program_is_given_up_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_check, "ANNOUNCE_SECONDS", 0.2)
    report = await check(("sh", "-c", "echo waiting for godot; sleep 1000"))
    assert broken(report) == ["chunks"]
    assert "godot" in sentence(report, "chunks")


async def test_a_terminal_that_is_not_raw_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_check, "ANSWER_SECONDS", 0.3)
    assert broken(await check(printing(encode(SETTINGS)))) == ["raw mode", "echo", "echo"]
    quiet = ("sh", "-c", 'stty -echo; exec "$@"', "sh", *printing(encode(SETTINGS)))
    assert broken(await check(quiet)) == ["raw mode", "raw mode"]


@pytest.mark.parametrize(
    ("how", "name"), [("stripping", "DCS"), ("cutting", "long lines"), ("echoing", "echo")]
)
async def test_a_program_in_between_that_breaks_it_is_named(
    how: str, name: str, serve: tuple[str, ...]
) -> None:
    report = await check((sys.executable, str(PROGRAMS / "relay.py"), how, *serve))
    assert broken(report) == [name]


async def test_a_program_that_exits_during_the_check_is_reported() -> None:
    ends = "import os, sys, tty; tty.setcbreak(0); os.write(1, bytes.fromhex(sys.argv[1]))"
    settings = encode(SETTINGS).hex()
    script = f"{ends}; os.read(0, 10); print('out of ideas')"
    report = await check((sys.executable, "-c", script, settings))
    assert broken(report) == ["connection"]
    assert "exited with code 0" in sentence(report, "connection")


async def test_a_command_that_cannot_start_is_an_exception() -> None:
    with pytest.raises(NoSuchProgram):
        await check(["no-such-program-at-all"])
