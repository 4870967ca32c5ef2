"""Files between a program and the person under `telex run`: allowed and complete, or absent."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passthrough.person import BASH
from passthrough.seat import RUN, Seated, seated
from telex.passthrough import file_transfer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MB = 1024 * 1024

PROGRAM = """
import asyncio, json, os
from telex import escapes
from telex.rpc.errors import RpcError

async def main():
    async with escapes.connect(timeout=5) as term:
        try:
            said = await work(term)
        except RpcError as error:
            said = str(error.problem.code) + ": " + error.problem.message
        with open(os.environ["SAID"], "w") as file:
            json.dump(said, file)
    print("\\r\\nover", flush=True)
"""
LINE = """
import json, os, socket, sys, time
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["TELEX_SOCKET"])
file = line.makefile("rw")
def say(**packet):
    print(json.dumps(packet), file=file, flush=True)
def hear():
    return json.loads(file.readline())
"""


@dataclass
class Stage:
    """The person's home, and the directory where telex is started."""

    home: Path
    here: Path
    downloads: Path

    def program(self, body: str) -> tuple[str, ...]:
        """Return a program; `work` is the body of a coroutine with `term`."""
        lines = [f"    {line}" for line in body.splitlines()]
        work = "\n".join(["async def work(term):", *lines])
        return (sys.executable, "-c", f"{PROGRAM}\n{work}\nasyncio.run(main())")

    @asynccontextmanager
    async def run(self, *argv: str, options: tuple[str, ...] = ()) -> AsyncIterator[Seated]:
        async with seated(
            *RUN, *options, "--", *argv, home=self.home / "telex", cwd=self.here,
            HOME=str(self.home), XDG_DOWNLOAD_DIR=str(self.downloads), SAID=str(self.home / "said"),
            TMUX=None, STY=None,
        ) as person:  # fmt: skip
            yield person

    def said(self) -> Any:
        return json.loads((self.home / "said").read_text())

    def kept(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.downloads.iterdir()}

    def allowing(self) -> tuple[str, str]:
        rules = self.home / "policy.toml"
        rules.write_text('[[rule]]\ncommand = "file:*"\ndecision = "allow"\n')
        return ("--policy", str(rules))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, tmp_path / "here", tmp_path / "got")
    made.here.mkdir()
    made.downloads.mkdir()
    return made


async def asked(person: Seated) -> None:
    """Wait for the question, on as many rows as its path takes."""
    while "Allow?" not in "".join(person.rows()):
        await person.grows(len(person.seen))


async def answers(person: Seated, key: str, *texts: str) -> str:
    """Answer the question after a moment. Return its text."""
    await asked(person)
    shown = "".join(row for row in person.rows())
    for text in texts:
        assert text in shown.replace(" ", ""), (text, shown)
    assert "until it exits" not in shown
    await asyncio.sleep(0.4)  # an earlier key is not an answer
    person.type(key)
    return shown


async def is_over(person: Seated) -> None:
    await person.sees("over")
    assert await person.leaves() == 0


SEND = "return await term.send_file({path!r}, name={name!r})"
RECEIVE = """
about = await term.receive_file({name!r}, {path!r})
return [about.name, about.size]
"""


async def test_five_megabytes_from_the_program_are_saved_byte_for_byte(stage: Stage) -> None:
    data = os.urandom(5 * MB)
    (stage.here / "data.bin").write_bytes(data)
    argv = stage.program(SEND.format(path=str(stage.here / "data.bin"), name=None))
    async with stage.run(*argv) as person:
        await answers(person, "y", f"save{5 * MB}bytesas{stage.downloads}/data.bin")
        await is_over(person)
    assert stage.said() == 5 * MB
    assert stage.kept() == {"data.bin": data}
    assert (stage.downloads / "data.bin").stat().st_mode & 0o777 == 0o600


async def test_five_megabytes_from_the_person_arrive_byte_for_byte(stage: Stage) -> None:
    data = os.urandom(5 * MB)
    (stage.here / "data.bin").write_bytes(data)
    argv = stage.program(RECEIVE.format(name="data.bin", path=str(stage.home / "copy")))
    async with stage.run(*argv) as person:
        await answers(person, "y", f"sendthe{5 * MB}bytesof{stage.here}/data.bin")
        await is_over(person)
    assert stage.said() == ["data.bin", 5 * MB]
    assert (stage.home / "copy").read_bytes() == data


@pytest.mark.parametrize("key", ["n", "\x1b"])
async def test_a_no_leaves_nothing_on_either_side(stage: Stage, key: str) -> None:
    (stage.here / "data").write_bytes(b"x" * MB)
    for body in (
        SEND.format(path=str(stage.here / "data"), name=None),
        RECEIVE.format(name="data", path=str(stage.home / "copy")),
    ):
        async with stage.run(*stage.program(body)) as person:
            await answers(person, key)
            await is_over(person)
        assert stage.said().startswith("ECDENIED: ")
    assert stage.kept() == {}
    assert not (stage.home / "copy").exists()


async def test_the_socket_does_the_same_and_detect_names_it(stage: Stage) -> None:
    (stage.here / "mine").write_bytes(b"of the person")
    body = """
say(command="detect", rpcid="1")
print(hear()["data"]["capabilities"]["file"], flush=True)
say(command="file:download", rpcid="2", cont=True, data={"name": "a.txt", "size": 5})
say(rpcid="2", cont=True, datatype="binary", data64="aGVs")
say(rpcid="2", datatype="binary", data64="bG8=")
print(hear(), flush=True)
say(command="file:upload", rpcid="3", data={"name": "mine"})
print(hear(), hear(), hear(), flush=True)
"""
    argv = (sys.executable, "-c", LINE + body)
    async with stage.run(*argv, options=stage.allowing()) as person:
        assert await person.leaves() == 0
        shown = person.seen.decode()
    assert "{'include': ['file:*']}" in shown
    assert "{'resid': '2', 'data': {'size': 5}}" in shown
    assert "'data': {'name': 'mine', 'size': 13}" in shown
    assert "'data64': 'b2YgdGhlIHBlcnNvbg=='" in shown
    assert stage.kept() == {"a.txt": b"hello"}


async def test_the_example_on_the_page_runs(stage: Stage) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/talk-to-the-terminal.md").read_text()
    (example,) = [
        one for one in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "send_file" in one
    ]
    (stage.here / "settings.toml").write_text("mine")
    async with stage.run(sys.executable, "-c", example, options=stage.allowing()) as person:
        assert await person.leaves() == 0
        assert b"11 bytes were saved" in person.seen
    assert stage.kept() == {"report.txt": b"all is well"}
    assert (stage.here / "copy.toml").read_text() == "mine"


# Names.

HOSTILE = [
    "../x", "..", ".bashrc", "/etc/x", "a/b", "a\\b", "a\nb", "a\x1b[2Jb", "a\x9bb", "-rf", "", " ",
    "x\u202etxt.exe", "x\u200b", "x\u2028y", "a" * 300, "\u00e4" * 200,
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_not_acceptable(name: str) -> None:
    assert not file_transfer.is_acceptable_name(name)


@pytest.mark.parametrize(
    "name", ["a", "a b.tar.gz", "\u00fcber.txt", "\u05d0.txt", '"q".txt', "~x"]
)
def test_common_file_names_are_acceptable(name: str) -> None:
    assert file_transfer.is_acceptable_name(name)


async def test_hostile_names_are_refused_without_a_question(stage: Stage) -> None:
    body = f"""
names = {HOSTILE!r}
said = []
for name in names:
    for command in ("file:download", "file:upload"):
        try:
            said.append(await term.call(command, {{"name": name}}))
        except RpcError as error:
            said.append(str(error.problem.code))
return said
"""
    async with stage.run(*stage.program(body)) as person:
        await is_over(person)
        assert b"Allow?" not in person.seen
    assert stage.said() == ["ECARGS"] * (2 * len(HOSTILE))
    assert stage.kept() == {}


async def test_a_name_in_a_right_to_left_script_is_escaped_in_the_question(stage: Stage) -> None:
    (stage.home / "data").write_bytes(b"x")
    argv = stage.program(SEND.format(path=str(stage.home / "data"), name="\u05d0.txt"))
    async with stage.run(*argv) as person:
        await answers(person, "y", "\\u05d0.txt")
        await is_over(person)
    assert stage.kept() == {"\u05d0.txt": b"x"}


async def test_an_existing_file_is_not_replaced_and_a_link_is_not_followed(stage: Stage) -> None:
    (stage.home / "data").write_bytes(b"new")
    (stage.downloads / "a.txt").write_bytes(b"old")
    (stage.downloads / "a-1.txt").symlink_to(stage.home / "aim")
    argv = stage.program(SEND.format(path=str(stage.home / "data"), name="a.txt"))
    async with stage.run(*argv) as person:
        await answers(person, "y", "/a-2.txt")
        (stage.downloads / "a-2.txt").write_bytes(b"faster")
        await is_over(person)
    assert not (stage.home / "aim").exists()
    (stage.downloads / "a-1.txt").unlink()
    assert stage.kept() == {"a.txt": b"old", "a-2.txt": b"faster", "a-3.txt": b"new"}


# Files for the program.


async def test_the_file_in_the_question_is_read_even_if_its_name_is_taken_over(
    stage: Stage,
) -> None:
    (stage.here / "data").write_bytes(b"shown")
    argv = stage.program(RECEIVE.format(name="data", path=str(stage.home / "copy")))
    async with stage.run(*argv) as person:
        await asked(person)
        (stage.home / "secret").write_bytes(b"other")
        (stage.home / "secret").rename(stage.here / "data")
        await answers(person, "y", "sendthe5bytesof")
        await is_over(person)
    assert (stage.home / "copy").read_bytes() == b"shown"


@pytest.mark.parametrize("what", ["nothing", "link", "directory", "pipe"])
async def test_only_a_regular_file_is_sent_and_the_person_is_asked_in_any_case(
    stage: Stage, what: str
) -> None:
    (stage.home / "secret").write_bytes(b"secret")
    path = stage.here / "data"
    match what:
        case "link":
            path.symlink_to(stage.home / "secret")
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    argv = stage.program(RECEIVE.format(name="data", path=str(stage.home / "copy")))
    async with stage.run(*argv) as person:
        await answers(person, "y", "notafilethatcanbesent")
        await is_over(person)
    assert stage.said() == "ECARGS: There is no such file."
    assert not (stage.home / "copy").exists()


async def test_a_yes_is_for_one_file_and_not_for_the_next(stage: Stage) -> None:
    (stage.here / "one").write_bytes(b"1")
    (stage.here / "two").write_bytes(b"2")
    body = "\n".join(
        f"await term.receive_file({name!r}, {str(stage.home / name)!r})" for name in ("one", "two")
    )
    async with stage.run(*stage.program(body)) as person:
        await answers(person, "y", "/one")
        await person.shows("/two")
        await answers(person, "n", "/two")
        await is_over(person)
    assert stage.said().startswith("ECDENIED")
    assert not (stage.home / "two").exists()


async def test_without_a_person_the_answer_is_no(stage: Stage) -> None:
    (stage.here / "data").write_bytes(b"x")
    body = """
for n, (command, data) in enumerate({"file:download": {"name": "a"}, "file:upload": {"name": "data"}}.items()):
    say(command=command, rpcid=str(n), data=data)
    print(hear()["error"].partition(":")[0], file=sys.stderr, flush=True)
"""
    script = f'cd {stage.here} && exec "$@" </dev/null 2>{stage.home}/err | cat'
    argv = ("sh", "-c", script, "sh", *RUN, "--", sys.executable, "-c", LINE + body)
    env = {"XDG_DOWNLOAD_DIR": str(stage.downloads), "PYTHONPATH": os.pathsep.join(sys.path)}
    async with seated(*argv, home=stage.home / "telex", **env) as person:
        await person.leaves()
        shown = person.seen.decode() + (stage.home / "err").read_text()
    assert shown.split() == ["ECDENIED", "ECDENIED"]
    assert stage.kept() == {}


# Incomplete files.

HALF = """
say(command="file:download", rpcid="2", cont=True, data={"name": "a.txt", "size": 10})
say(rpcid="2", cont=True, datatype="binary", data64="aGVs")
say(command="ping", rpcid="p")
assert hear()["resid"] == "p"
while not os.listdir(os.environ["XDG_DOWNLOAD_DIR"]):
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ('say(rpcid="2", cancel=True)', "ECCANCEL"),
        ('say(rpcid="2")', "ECARGS"),
        ('say(rpcid="2", datatype="binary", data64="YWFhYWFhYWFhYWFhYWFhYWFhYWE=")', "ECARGS"),
        ('say(rpcid="2", data="text")', "ECARGS"),
    ],
)
async def test_a_cancelled_short_or_long_file_leaves_nothing(
    stage: Stage, end: str, code: str
) -> None:
    argv = (sys.executable, "-c", f"{LINE}{HALF}{end}\nprint(hear()['error'], flush=True)")
    async with stage.run(*argv, options=stage.allowing()) as person:
        await person.sees(code)
        assert await person.leaves() == 0
    assert stage.kept() == {}


@pytest.mark.parametrize("end", ['say(rpcid="3", cancel=True)', "line.shutdown(2)"])
async def test_a_cancelled_upload_closes_the_file(stage: Stage, end: str) -> None:
    with (stage.here / "large").open("wb") as file:
        file.truncate(200 * MB)
    body = f"""
say(command="file:upload", rpcid="3", data={{"name": "large"}})
hear(), hear()
print("open", flush=True); sys.stdin.readline()
{end}
print("ended", flush=True); sys.stdin.readline()
"""
    async with stage.run(sys.executable, "-c", LINE + body, options=stage.allowing()) as person:
        await person.sees("open")
        assert is_open(person, stage.here / "large")
        person.type("\n")
        await person.sees("ended")
        while is_open(person, stage.here / "large"):
            await asyncio.sleep(0.01)  # there is no event for it, and the test has a deadline


def is_open(person: Seated, path: Path) -> bool:
    """Whether telex has the file open."""
    open_ = Path(f"/proc/{person.pid}/fd")
    for fd in os.listdir(open_):
        with suppress(FileNotFoundError):  # closed just now
            if os.readlink(open_ / fd) == str(path):
                return True
    return False


async def test_a_client_that_disconnects_halfway_leaves_nothing(stage: Stage) -> None:
    argv = (
        sys.executable,
        "-c",
        f"{LINE}{HALF}line.shutdown(2); print('gone', flush=True); sys.stdin.read()",
    )
    async with stage.run(*argv, options=stage.allowing()) as person:
        await person.sees("gone")
        while any(stage.downloads.iterdir()):
            await asyncio.sleep(0.01)  # there is no event for it, and the test has a deadline


async def test_a_client_that_sends_during_the_question_waits_for_the_answer(stage: Stage) -> None:
    body = """
say(command="file:download", rpcid="2", timeout=60000, cont=True, data={"name": "a.txt"})
for n in range(3000):
    say(rpcid="2", cont=True, datatype="binary", data64="aGVsbG8h" * 100)
say(rpcid="2")
print(hear(), flush=True)
"""
    async with stage.run(sys.executable, "-c", LINE + body) as person:
        await answers(person, "y", "a.txt")
        await person.sees("{'size': 1800000}")
        assert await person.leaves() == 0
    assert stage.kept() == {"a.txt": b"hello!" * 300_000}


IN_BAND = """
import os, time, tty
tty.setraw(0)
def say(body):
    os.write(1, b"\\x1b]23198;0;" + body + b"\\a")
say(b'{"command":"file:download","rpcid":"2","timeout":60000,"cont":true,"data":{"name":"a.txt"}}')
say(b'{"rpcid":"2","cont":true,"datatype":"binary","data64":"aGVs"}')
while not os.listdir(os.environ["XDG_DOWNLOAD_DIR"]):
    time.sleep(0.01)
"""


async def test_a_program_killed_halfway_leaves_nothing(stage: Stage) -> None:
    """In a shell that continues, so that the terminal does not hang up."""
    script = 'set -m; "$@"; stty sane; echo after; sleep 100'
    argv = ("bash", "-c", script, "bash", sys.executable, "-c", IN_BAND + "os.kill(os.getpid(), 9)")
    async with stage.run(*argv, options=stage.allowing()) as person:
        await person.sees("after")
        while any(stage.downloads.iterdir()):
            await asyncio.sleep(0.01)  # there is no event for it, and the test has a deadline


# Stopped, and interrupted.


@asynccontextmanager
async def halfway(stage: Stage, body: str, growing: Path, key: str) -> AsyncIterator[Seated]:
    """Press a key in a shell while the file grows, and wait for the prompt."""
    script = stage.home / "program.py"
    script.write_text(stage.program(body)[-1])
    async with stage.run(*BASH, options=stage.allowing()) as person:
        await person.shows("$")
        person.type(f"{sys.executable} {script}\r")
        while not any(one.stat().st_size > MB for one in growing.parent.glob(growing.name)):
            await asyncio.sleep(0.005)  # there is no event for it, and the test has a deadline
        at = len(person.seen)
        person.type(key)
        await person.sees("$ ", after=at)
        await person.asks("echo so$((1))me\r", "so1me")
        assert b"23199" not in person.seen[at:]
        assert b"not found" not in person.seen[at:]
        yield person


async def test_a_file_to_a_program_that_is_stopped_waits_for_it(stage: Stage) -> None:
    data, new = os.urandom(8 * MB), stage.home / "new"
    (stage.here / "mine").write_bytes(data)
    body = RECEIVE.format(name="mine", path=str(new))
    async with halfway(stage, body, new, "\x1a") as person:
        here = new.stat().st_size
        await asyncio.sleep(0.3)
        assert new.stat().st_size == here < len(data)
        person.type("fg\r")
        await person.sees("over")
    assert new.read_bytes() == data


async def test_a_file_from_a_stopped_program_continues_where_it_was(stage: Stage) -> None:
    data = os.urandom(16 * MB)
    (stage.home / "theirs").write_bytes(data)
    body = SEND.format(path=str(stage.home / "theirs"), name="theirs")
    async with halfway(stage, body, stage.downloads / ".*", "\x1a") as person:
        person.type("fg\r")
        await person.sees("over")
    assert stage.kept() == {"theirs": data}


async def test_unread_parts_for_an_interrupted_program_reach_no_other_program(
    stage: Stage,
) -> None:
    (stage.here / "mine").write_bytes(os.urandom(8 * MB))
    body = RECEIVE.format(name="mine", path=str(stage.home / "new"))
    async with halfway(stage, body, stage.home / "new", "\x03"):
        assert not (stage.home / "new").exists()


async def test_a_program_that_exits_halfway_leaves_nothing(stage: Stage) -> None:
    async with stage.run(sys.executable, "-c", IN_BAND, options=stage.allowing()) as person:
        assert await person.leaves() == 0
    assert stage.kept() == {}


async def test_a_full_disk_is_a_fixed_error_and_leaves_nothing(
    stage: Stage,
) -> None:
    """A limit on the size of files stands in for a full disk: the write fails halfway."""
    (stage.here / "data").write_bytes(os.urandom(5 * MB))
    body = SEND.format(path=str(stage.here / "data"), name=None)
    rules = stage.allowing()
    script = f'ulimit -f 2048; cd {stage.here} && exec "$@"'
    argv = ("bash", "-c", script, "bash", *RUN, *rules, "--", *stage.program(body))
    env = {"XDG_DOWNLOAD_DIR": str(stage.downloads), "SAID": str(stage.home / "said")}
    async with seated(
        *argv, home=stage.home / "telex", PYTHONPATH=os.pathsep.join(sys.path), **env
    ) as person:
        await is_over(person)
    assert stage.said() == "ECINTERNAL: The file could not be saved."
    assert stage.kept() == {}
