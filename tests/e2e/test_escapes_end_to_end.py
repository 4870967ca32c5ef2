"""Both sides of JSON escapes, with nothing, ssh or tmux between them.

A program with `telex.escapes` (`programs/says_what_it_found.py`) runs on the terminal of a real
`telex run`, in the terminal of a person. Hostile files are shown there too.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import getpass
import hashlib
import itertools
import json
import os
import random
import re
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from passthrough.person import BASH
from passthrough.seat import RUN, Seated, frame, seated
from telex.escapes.probe import TMUX
from telex.passthrough.question_row import QUIET_SECONDS
from telex.wire import json_escape, limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    Find = Callable[[str], str]

PROGRAMS = Path(__file__).parent / "programs"
CORPUS = Path(__file__).parents[1] / "corpus" / "json_escapes"
POLICY = "".join(
    f'[[rule]]\ncommand = "{command}"\norigin = "*"\ndecision = "allow"\n'
    for command in ("file:*", "term:subscribe")
)
MB = 1_000_000
CLICK = b"\x1b[<0;7;4M\x1b[<0;7;4m"


class Stage:
    """The directory of the program, and its results."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.size = path, size
        self.given = random.Random(5).randbytes(size)
        self.sent = random.Random(6).randbytes(size)
        (path / "given.bin").write_bytes(self.given)
        (path / "to_send.bin").write_bytes(self.sent)
        (path / "policy.toml").write_text(POLICY)
        self.program = (
            sys.executable,
            str(PROGRAMS / "says_what_it_found.py"),
            str(size),
            str(path / "found.json"),
            str(path / "to_send.bin"),
        )

    @contextlib.asynccontextmanager
    async def run(self, *argv: str, **env: str | None) -> AsyncIterator[Seated]:
        """Run a command by `telex run`, at a person's terminal."""
        command = (*RUN, "--policy", str(self.path / "policy.toml"), "--", *argv)
        home, here = self.path / "home", ("sh", "-c", 'cd "$0" && exec "$@"', str(self.path))
        kept = {"XDG_DOWNLOAD_DIR": str(self.path)}
        async with seated(*here, *command, home=home, TMUX=None, STY=None, **kept, **env) as person:
            yield person

    async def click(self, person: Seated) -> None:
        """Run a command, and press a key once the program has subscribed."""
        async with asyncio.timeout(60):
            while b"click now" not in person.seen:
                with contextlib.suppress(TimeoutError):  # a stream is not shown
                    await person.grows(len(person.seen))
        assert b"\x1b[?1000h" in person.seen
        person.type(CLICK)
        person.type("k")

    def found(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "found.json").read_text())
        return found

    def is_as_it_should_be(self, person: Seated, via: str) -> None:
        found = self.found()
        assert found["via"] == via
        assert found["supports"] == {"term:report": True, "x:nonsense": False}
        assert found["kept"] == {"size": self.size}
        assert (self.path / "sent.bin").read_bytes() == self.sent
        assert found["about"] == {"name": "given.bin", "size": self.size}
        assert found["received"] == self.size
        assert found["sha256"] == hashlib.sha256(self.given).hexdigest()
        (click, mouse), (key, pressed) = found["heard"]
        assert (click, mouse["row"], mouse["col"]) == ("event:mouseclick", 4, 7)
        assert (key, pressed["key"]) == ("event:key", "k")
        for word in (b"23198", b"23199", b"rpcid", b"resid", b"data64"):
            assert word not in person.seen
        assert b"\x1b[?1000l" in person.seen
        assert person.restored()


def styled(person: Seated) -> bool:
    """Whether the word is at its place, with its style."""
    row = person.screen.rows()[2]
    cells = person.screen.restore()
    return row.text[4:10] == "styled" and b"38;2;170;170;170" in cells.replace(b":", b";")


# Nothing between them.


async def test_a_program_detects_styles_queries_streams_both_ways_and_gets_the_mouse(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, 5 * MB)
    async with stage.run(*stage.program) as person:
        await stage.click(person)
        assert styled(person)
        await person.sees("the program is over")
        assert await person.leaves() == 0
        stage.is_as_it_should_be(person, "terminal")
        assert stage.found()["cursor"] == [3, 11]
        assert not person.others()


# ssh.


@contextlib.asynccontextmanager
async def loopback(find: Find, path: Path) -> AsyncIterator[tuple[str, ...]]:
    """A private sshd for this user. Returns a command that runs another one there, on a terminal.

    Each connection starts an sshd of its own, so that there is no server to wait for.
    """
    sshd, ssh, keygen = find("sshd"), find("ssh"), find("ssh-keygen")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd needs it; a boot makes it
    for name in ("host", "user"):
        made = await asyncio.create_subprocess_exec(
            keygen, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path / name)
        )
        assert await made.wait() == 0
    config = path / "sshd_config"
    config.write_text(
        f"HostKey {path}/host\nAuthorizedKeysFile {path}/user.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n"
        "PrintLastLog no\nPermitRootLogin prohibit-password\nPidFile none\n"
    )
    children: list[asyncio.subprocess.Process] = []

    async def accepted(listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with (path / "sshd.log").open("ab") as log:
            while True:
                came, _ = await loop.sock_accept(listening)
                with came:
                    came.setblocking(True)
                    children.append(
                        await asyncio.create_subprocess_exec(
                            sshd, "-i", "-e", "-f", str(config), stdin=came, stdout=came, stderr=log
                        )
                    )

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        port = listening.getsockname()[1]
        key = (path / "host.pub").read_text()
        (path / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}")
        accepting = asyncio.create_task(accepted(listening))
        options = (
            "BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "LogLevel=ERROR",
            "StrictHostKeyChecking=yes", f"UserKnownHostsFile={path}/known_hosts",
        )  # fmt: skip
        said = [word for option in options for word in ("-o", option)]
        login = ("-p", str(port), "-i", str(path / "user"), f"{getpass.getuser()}@127.0.0.1")
        try:
            yield (ssh, "-F", "none", "-tt", *said, *login)
        finally:
            accepting.cancel()
            await asyncio.wait({accepting})
            for child in children:
                if child.returncode is None:
                    child.terminate()
                await child.wait()


async def test_the_same_on_another_machine_by_ssh(program: Find, tmp_path: Path) -> None:
    stage = Stage(tmp_path, 5 * MB)
    async with (
        loopback(program, tmp_path) as ssh,
        stage.run(*ssh, shlex.join(stage.program)) as person,
    ):
        await stage.click(person)
        assert styled(person)
        await person.sees("the program is over")
        assert await person.leaves() == 0
        stage.is_as_it_should_be(person, "terminal")
        assert stage.found()["cursor"] == [3, 11]
    audit = (tmp_path / "home/state/logs/escapes.jsonl").read_text()
    decisions = [json.loads(line) for line in audit.splitlines()]
    assert {one["command"] for one in decisions} >= {"file:download", "file:upload"}


async def test_a_request_by_ssh_is_remote(program: Find, tmp_path: Path) -> None:
    """A remote program needs a question for a command that a local program may send."""
    told = tmp_path / "told"
    told.write_bytes(frame('{"command":"clip:write","data":{"text":"pasted later"}}') + b"printed")
    script = f"cat {shlex.quote(str(told))}; read -r line; echo read $line"
    async with seated(*RUN, "sh", "-c", script, home=tmp_path) as person:
        await person.sees("printed")
        assert b"\x1b]52;c;" in person.seen
        person.type("once\r")
        await person.sees("read once")
    async with (
        loopback(program, tmp_path) as ssh,
        seated(*RUN, *ssh, script, home=tmp_path) as person,
    ):
        await person.shows("wants to put a text on your clipboard")
        await asyncio.sleep(QUIET_SECONDS + 0.1)  # an earlier key is not an answer
        person.type("\x1b")
        await person.hides("wants to put a text on your clipboard")
        person.type("twice\r")
        await person.sees("read twice")
        assert await person.leaves() == 0
        assert b"\x1b]52;" not in person.seen


# tmux.


def tmux(path: Path, find: Find, passthrough: str, *argv: str) -> tuple[str, ...]:
    """Return the command of a private tmux that runs this and exits with it."""
    config = path / "tmux.conf"
    config.write_text(f"set -g allow-passthrough {passthrough}\nset -g update-environment ''\n")
    return (
        find("tmux"), "-S", str(path / "tmux"), "-f", str(config), "new-session", shlex.join(argv)
    )  # fmt: skip


@pytest.mark.counted
async def test_the_same_inside_tmux_with_passthrough(
    program: Find, counted: Callable[[int, int], int], tmp_path: Path
) -> None:
    """For tmux every byte of a reply is a key, and it reads half a million of them in a second."""
    stage = Stage(tmp_path, counted(1 * MB, 5 * MB))
    argv = tmux(tmp_path, program, "on", *stage.program)
    async with stage.run(*argv, TERM="xterm-256color") as person:
        await stage.click(person)
        assert await person.leaves() == 0
        stage.is_as_it_should_be(person, "tmux")


async def test_the_same_inside_tmux_by_the_socket(program: Find, tmp_path: Path) -> None:
    stage = Stage(tmp_path, 5 * MB)
    argv = tmux(tmp_path, program, "off", *stage.program)
    async with stage.run(*argv, TERM="xterm-256color") as person:
        await stage.click(person)
        assert await person.leaves() == 0
        stage.is_as_it_should_be(person, "socket")


# Hostile files.

SHELLS = {
    "bash": BASH[1:],
    "zsh": ("-f", "-i"),
    "fish": ("--no-config", "-i", "-C", "function fish_prompt; echo -n '$ '; end"),
}
ENDS = "printf '\\033[m%s\\n' sho''wn"
"""Bytes after an unfinished frame belong to the frame, until the next sequence."""
QUESTIONS = (
    '{"command":"ping","rpcid":"%d"}',
    '{"command":"detect","rpcid":"%d"}',
    '{"command":"term:report","rpcid":"%d","data":{"what":"cursor"}}',
    '{"command":"term:subscribe","rpcid":"%d","data":{"events":["event:key","event:mouse"]}}',
    '{"command":"touch pwned","rpcid":"%d","data":"\\r touch pwned \\r"}',
    '{"command":"file:upload","rpcid":"%d","cont":true}',
    '{"reqid":"%d","data":"touch pwned"}',
)


def corpus() -> list[bytes]:
    """Return every bad frame of the corpus, of both directions."""
    return [base64.b64decode(one["bytes"]) for one in json.loads((CORPUS / "bad.json").read_text())]


def broken(dice: random.Random, count: int, among: Sequence[str] = QUESTIONS) -> list[bytes]:
    """Return requests with some characters changed, and a right or wrong length."""
    made = []
    for n in range(count):
        body = bytearray((dice.choice(among) % n).encode())
        for _ in range(dice.randrange(4)):
            body[dice.randrange(len(body))] = dice.randrange(0x20, 0x7F)
        number = dice.choice([json_escape.TO_TERMINAL, json_escape.TO_PROGRAM])
        whole = json_escape.encode(bytes(body), number)
        made.append(whole.replace(b"%d;" % len(body), b"%d;" % dice.randrange(200), 1))
        made.append(json_escape.encode(bytes(body)))
    return made


def hostile(queries: int) -> bytes:
    commands = b"\\r\\ntouch pwned\\r\\n"
    ids = [json_escape.encode(b'{"command":"ping","rpcid":"%b"}' % one) for one in (commands, b"")]
    replies = [
        json_escape.encode(b'{"resid":"%d","data":"%b"}' % (n, commands), number)
        for n in range(9)
        for number in (json_escape.TO_TERMINAL, json_escape.TO_PROGRAM)
    ]
    large = b'\x1b]23198;0;{"command":"ping","rpcid":"large","data":"%b"}\x07'
    oversized = large % (b"\rtouch pwned\r" * (limits.CONTROL_STRING_BYTES // 12))
    asked = b"".join([frame(QUESTIONS[n % 3] % n) for n in range(queries)])
    endless = b'\x1b]23198;0;{"command":"ping","rpcid":"endless","data":"\rtouch pwned\r'
    return b"".join(
        [*corpus(), *ids, *replies, oversized, *broken(random.Random(7), 500), asked, endless]
    )


def unasked(path: Path) -> tuple[str, ...]:
    """`telex run` with a policy that allows all requests without a question."""
    (path / "policy.toml").write_text(POLICY)
    return (*RUN, "--policy", str(path / "policy.toml"))


def nothing_of_it_is_seen(person: Seated) -> None:
    text = "\n".join(person.rows())
    for word in ("touch", "pwned", "not found", "{", '"'):
        assert word not in text, text
    for frames in (b"23198;", b"23199;", b"rpcid", b"resid"):
        assert frames not in person.seen


@pytest.mark.counted
@pytest.mark.parametrize("shell", list(SHELLS))
async def test_a_hostile_file_shown_in_a_shell_runs_types_and_shows_nothing(
    program: Find, counted: Callable[[int, int], int], tmp_path: Path, shell: str
) -> None:
    queries = counted(5_000, 1_000_000 if shell == "bash" else 100_000)
    (tmp_path / "hostile").write_bytes(hostile(queries))
    argv = (program(shell), *SHELLS[shell])
    env = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "TERM": "xterm-256color"}
    async with seated(*unasked(tmp_path), "--", *argv, home=tmp_path / "home", **env) as person:
        await person.shows("$")
        before = resident(person.pid)
        at = await person.asks(f"cd; cat hostile; {ENDS}\r", "shown")
        await person.sees("$ ", after=at)
        person.type("clear; echo still he''re\r")
        while person.rows()[:2] != ["still here", "$"]:
            await person.grows(len(person.seen))
        person.type("echo again he''re\r")
        await person.shows("again here")
        rows = [row for row in person.rows() if row]
        assert rows[:3] == ["still here", "$ echo again he''re", "again here"]
        nothing_of_it_is_seen(person)
        assert not (tmp_path / "pwned").exists()
        assert resident(person.pid) - before < 100 * MB


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_a_hostile_file_sends_nothing_to_a_program_that_reads_a_line_next(
    tmp_path: Path,
) -> None:
    """Both programs are in one process group, so telex cannot distinguish requester and reader."""
    (tmp_path / "hostile").write_bytes(hostile(1_000) + b"\x18")
    script = 'cat hostile; echo re""ady; read -r line; echo "[$line]" | cat -v'
    command = ("sh", "-c", f"cd {shlex.quote(str(tmp_path))}; {script}")
    async with seated(*unasked(tmp_path), "--", *command, home=tmp_path / "home") as person:
        await person.sees("ready")
        person.type("mine\r")
        await person.shows("[mine]")
        assert await person.leaves() == 0
        nothing_of_it_is_seen(person)


LAID_OUT = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B|[\r\n]")


async def test_a_hostile_file_runs_nothing_in_a_shell_inside_tmux(
    program: Find, tmp_path: Path
) -> None:
    """tmux hides the requester and the reader, so a reply must be harmless to a shell."""
    asked = [one for one in QUESTIONS if "subscribe" not in one and "report" not in one]
    last = frame('{"command":"ping","rpcid":"last"}')
    frames = [*corpus(), *broken(random.Random(8), 100, asked), last]
    wrapped = [TMUX.around(one) for one in frames]
    (tmp_path / "hostile").write_bytes(b"".join(wrapped))
    argv = tmux(tmp_path, program, "on", "env", f"HOME={tmp_path}", "PS1=$ ", *BASH)
    async with seated(*RUN, *argv, home=tmp_path / "home", TMUX=None, TERM="xterm") as person:
        await person.shows("$")
        person.type(f"cd; cat hostile; {ENDS}\r")
        # The response to `detect` comes after the probe of the terminal: it may be out of sight.
        while b'"resid":"last"' not in LAID_OUT.sub(b"", bytes(person.seen)):
            await person.grows(len(person.seen))
        # Replies about files come last, and may stand before the keys that are typed here. Ctrl-C
        # empties the line; keys are typed separately, since bash may drop one that follows at once.
        leaving = asyncio.ensure_future(person.leaves())
        for keys in itertools.cycle(["\x03", "exit 0\r"]):
            person.type(keys)
            done, _ = await asyncio.wait([leaving], timeout=0.2)
            if done:
                break
        assert leaving.result() == 0
    assert not (tmp_path / "pwned").exists()


async def test_a_file_shown_inside_tmux_does_not_get_the_keyboard(
    program: Find, tmp_path: Path
) -> None:
    asked = '{"command":"term:subscribe","rpcid":"s","data":{"events":["event:key","event:paste"]}}'
    (tmp_path / "hostile").write_bytes(TMUX.around(frame(asked)))
    argv = tmux(tmp_path, program, "on", "env", f"HOME={tmp_path}", "PS1=$ ", *BASH)
    async with seated(*RUN, *argv, home=tmp_path / "home", TMUX=None, TERM="xterm") as person:
        await person.shows("$")
        person.type("cd; cat hostile\r")
        await person.shows("term:subscribe")
        await asyncio.sleep(QUIET_SECONDS + 0.1)  # an earlier key is not an answer
        person.type("\x1b")
        await person.hides("term:subscribe")
        person.type("clear; echo still he''re\r")
        await person.shows("still here")
        person.type("exit\r")
        assert await person.leaves() == 0
