"""Starting children: the resources they get, those they do not get, and failed starts."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.processes import guardian, launch, spawn
from telex.processes.child_environment import COOKIE, child_environment
from telex.processes.spawn import (
    ControllingTerminal,
    NoSuchDirectory,
    NoSuchProgram,
    NoSuchTerminal,
    NotExecutable,
    PipeEnd,
    Pipes,
    StartRefused,
    start,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.processes.tree import Root

OUTPUT_ONLY = Pipes(stdin=PipeEnd.NULL, stderr=PipeEnd.NULL)


async def read_all(fd: int) -> bytes:
    """Read until the other end closes."""
    loop = asyncio.get_running_loop()
    text = b""
    while True:
        readable = loop.create_future()
        loop.add_reader(fd, lambda seen=readable: seen.done() or seen.set_result(None))
        await readable
        loop.remove_reader(fd)
        piece = os.read(fd, 65536)
        if not piece:
            return text
        text += piece


async def output(argv: list[str], **how: object) -> bytes:
    async with start(argv, stdio=OUTPUT_ONLY, **how) as child:  # type: ignore[arg-type]
        assert child.stdout
        return await read_all(child.stdout.fileno())


@pytest.fixture
def pty() -> Iterator[tuple[int, str]]:
    master, slave = os.openpty()
    path = os.ttyname(slave)
    yield master, path
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize("code", [0, 1, 3, 255])
async def test_the_childs_exit_code_is_returned(code: int) -> None:
    async with start(["sh", "-c", f"exit {code}"]) as child:
        ended = await child.wait()
    assert (ended.code, ended.signal, str(ended)) == (code, None, f"exited with code {code}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGRTMIN + 3])
async def test_the_signal_that_ended_the_child_is_returned(number: int) -> None:
    async with start(["sh", "-c", f"kill -{int(number)} $$"]) as child:
        ended = await child.wait()
    assert (ended.code, ended.signal) == (None, number)
    assert str(ended).startswith("ended by ")


@pytest.mark.counted
async def test_the_output_of_a_child_that_exits_at_once_is_whole(
    counted: Callable[[int, int], int],
) -> None:
    for n in range(counted(20, 1000)):
        assert await output(["printf", f"%0{n}d", "1"]) == b"%0*d" % (n, 1)


async def test_the_three_streams_are_pipes() -> None:
    async with start(["sh", "-c", "cat; echo no >&2"]) as child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        child.stdin.write(b"hello")
        child.stdin.close()
        assert await read_all(child.stdout.fileno()) == b"hello"
        assert await read_all(child.stderr.fileno()) == b"no\n"


async def test_our_pipe_ends_are_non_blocking_and_not_inherited() -> None:
    async with start(["cat"]) as child:
        for file in (child.stdin, child.stdout, child.stderr):
            assert file
            assert not os.get_blocking(file.fileno())
            assert not os.get_inheritable(file.fileno())


async def test_a_stream_may_be_dev_null_or_a_descriptor_of_ours(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w+b") as file:
        stdio = Pipes(PipeEnd.NULL, file.fileno(), file.fileno())
        async with start(["sh", "-c", "cat; echo out; echo err >&2"], stdio=stdio) as child:
            assert (child.stdin, child.stdout, child.stderr) == (None, None, None)
            await child.wait()
        file.seek(0)
        assert file.read() == b"out\nerr\n"


async def test_descriptors_may_be_swapped() -> None:
    """Our stdout becomes the child's stderr and the other way round, whatever their numbers."""
    code = (
        "import asyncio\n"
        "from telex.processes.spawn import *\n"
        "async def main():\n"
        "  how = Pipes(PipeEnd.NULL, 2, 1)\n"
        "  async with start(['sh', '-c', 'echo out; echo err >&2'], stdio=how) as c: await c.wait()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"err\n", b"out\n")


async def test_a_program_without_standard_streams_of_its_own_can_start_children() -> None:
    """Our pipes then get just the numbers that the child's streams must have."""
    code = (
        "import asyncio, itertools, os\n"
        "from telex.processes import guardian\n"
        "from telex.processes.spawn import *\n"
        "async def main():\n"
        "  guardian.ensure(); os.dup2(1, 9); os.closerange(0, 3)\n"
        "  for plugs in itertools.product([PipeEnd.PIPE, PipeEnd.NULL], repeat=3):\n"
        "    async with start(['sh', '-c', 'cat; echo err >&2'], stdio=Pipes(*plugs)) as c:\n"
        "      if c.stdin: c.stdin.write(b'in'); c.stdin.close()\n"
        "      await c.wait()\n"
        "      text = [f.read() if f else None for f in (c.stdout, c.stderr)]\n"
        "      said_in = b'in' if plugs[0] is PipeEnd.PIPE else b''\n"
        "      due = [said_in if c.stdout else None, b'err\\n' if c.stderr else None]\n"
        "      os.write(9, b'' if text == due else repr((plugs, text)).encode())\n"
        "  os.write(9, b'done')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"done"


async def test_a_child_gets_three_descriptors_and_no_other() -> None:
    left, leaked = os.pipe()
    os.set_inheritable(leaked, True)  # like a descriptor inherited from a shell or a make
    try:
        listed = await output(["sh", "-c", "ls /proc/$$/fd"])
    finally:
        os.close(left)
        os.close(leaked)
    assert {int(fd) for fd in listed.split()} <= {0, 1, 2, 10}  # 10: the shell's own


async def test_a_descriptor_beyond_the_limit_is_no_obstacle_and_does_not_leak() -> None:
    """A shell may give us a high number, and the limit may be lowered after that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    high = fcntl.fcntl(0, fcntl.F_DUPFD, soft - 2)
    try:
        launch._inherited.cache_clear()
        resource.setrlimit(resource.RLIMIT_NOFILE, (high, hard))
        assert f"{high}".encode() not in await output(["sh", "-c", "ls /proc/$$/fd"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(high)
        launch._inherited.cache_clear()


async def test_a_child_ignores_and_blocks_no_signal_whatever_we_do() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        text = await output(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGHUP, before)
    ours_to_set = sum(
        1 << number - 1 for number in signal.valid_signals()
    )  # two are the C library's
    assert [int(line.split()[1], 16) & ours_to_set for line in text.splitlines()] == [0, 0]


async def test_a_child_on_a_terminal_has_it_as_controlling_terminal(pty: tuple[int, str]) -> None:
    master, path = pty
    async with start(
        ["sh", "-c", "ps -o tty= -o sid= -o tpgid= -p $$"], stdio=ControllingTerminal(path)
    ) as c:
        await c.wait()
        tty, session, foreground = os.read(master, 1000).split()
    assert f"/dev/{tty.decode()}" == path
    assert int(session) == int(foreground) == c.pid


async def in_foreground(master: int, name: str) -> None:
    def leader() -> str:
        try:
            return Path(f"/proc/{os.tcgetpgrp(master)}/comm").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return ""

    while leader().strip() != name:
        await asyncio.sleep(0)  # no event reports a change of the foreground group


async def test_a_shell_on_a_terminal_has_job_control(pty: tuple[int, str]) -> None:
    """Ctrl-C ends the foreground program of the shell, and not the shell."""
    master, path = pty
    argv = ["bash", "--norc", "--noprofile", "-i"]
    async with start(argv, stdio=ControllingTerminal(path)) as shell:
        os.write(master, b"sleep 1000\n")
        await in_foreground(master, "sleep")
        os.write(master, termios.tcgetattr(master)[6][termios.VINTR])
        await in_foreground(master, "bash")
        os.write(master, b"exit 7\n")
        assert (await shell.wait()).code == 7


async def test_all_three_streams_of_a_child_on_a_terminal_are_the_terminal(
    pty: tuple[int, str],
) -> None:
    master, path = pty
    check = "test -t 0 && test -t 1 && test -t 2"
    async with start(["sh", "-c", check], stdio=ControllingTerminal(path)) as child:
        assert (await child.wait()).code == 0
    assert master


async def test_without_an_environment_a_child_gets_ours_by_the_usual_rules(
    monkeypatch: pytest.MonkeyPatch, pty: tuple[int, str]
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/x")
    monkeypatch.setenv("TERM", "vt100")
    check = 'test -z "$TMUX" && test "$TERM" = '
    async with start(["sh", "-c", check + "vt100"]) as child:
        assert (await child.wait()).code == 0
    async with start(
        ["sh", "-c", check + "xterm-256color"], stdio=ControllingTerminal(pty[1])
    ) as child:
        assert (await child.wait()).code == 0


async def test_a_given_environment_is_extended_only_by_the_cookie() -> None:
    text = await output(["/usr/bin/env"], env={"A": "b"})
    assert [line.split(b"=")[0] for line in text.splitlines()] == [b"A", COOKIE.encode()]


async def test_the_cookie_of_an_outer_telex_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COOKIE, ":outer.1")
    first, second = [await output(["printenv", COOKIE]) for _ in range(2)]
    assert first.startswith(b":outer.1:")
    assert first != second


async def test_a_child_starts_in_its_directory_and_pwd_is_set(tmp_path: Path) -> None:
    directory = tmp_path / "it's a -- $directory"
    directory.mkdir()
    text = await output(["sh", "-c", 'pwd -P; echo "$PWD"'], cwd=str(directory))
    assert text.decode().splitlines() == [str(directory.resolve()), str(directory)]


async def test_starting_in_a_directory_keeps_every_variable_and_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OLDPWD", raising=False)
    env = child_environment(os.environ, {"odd.name": "1", "BASH_FUNC_f%%": "() { :; }"})
    code = "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)]))"
    argv = [sys.executable, "-c", code, "", "a b", "*", "--", "x=y"]
    there = await output(argv, env=env, cwd=str(tmp_path))
    here = await output(argv, env=env | {"PWD": str(tmp_path)})
    assert there.partition(COOKIE.encode())[0] == here.partition(COOKIE.encode())[0]


async def test_a_program_whose_path_looks_like_a_variable_runs_in_a_directory(
    tmp_path: Path,
) -> None:
    program = tmp_path / "a=b"
    program.symlink_to("/bin/pwd")
    assert await output([str(program)], cwd="/") == b"/\n"


async def test_a_program_is_looked_up_in_the_childs_path_and_directory(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    for argv, path in ((["greet"], "/nowhere:bin"), (["bin/greet"], "/bin")):
        env = child_environment(os.environ, {"PATH": path})
        assert await output(argv, env=env, cwd=str(tmp_path)) == b"hello\n"


@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program", "./no", "a\0b", ""])
async def test_a_missing_program_raises_no_such_program(name: str) -> None:
    with pytest.raises(NoSuchProgram):
        start([name])


async def test_an_empty_command_is_refused() -> None:
    with pytest.raises(NoSuchProgram, match="the command is empty"):
        start([])


@pytest.mark.parametrize("content", [None, "#!/no/such/interpreter\n", "no interpreter named"])
async def test_a_file_that_cannot_be_run_raises_not_executable(
    tmp_path: Path, content: str | None
) -> None:
    program = tmp_path / "program"
    program.write_text(content or "")
    program.chmod(0o644 if content is None else 0o755)
    with pytest.raises(NotExecutable, match=str(program)):
        start([str(program)])


async def test_a_directory_is_not_a_program() -> None:
    with pytest.raises(NotExecutable):
        start(["/"])


@pytest.mark.parametrize("directory", ["/no/such/directory", "/etc/passwd"])
async def test_a_missing_directory_raises_no_such_directory(directory: str) -> None:
    with pytest.raises(NoSuchDirectory, match=directory):
        start(["true"], cwd=directory)


@pytest.mark.parametrize("path", ["/dev/pts/99999", "/etc/passwd"])
async def test_a_path_that_is_not_a_terminal_raises_no_such_terminal(path: str) -> None:
    with pytest.raises(NoSuchTerminal, match=path):
        start(["true"], stdio=ControllingTerminal(path))


async def test_arguments_too_long_for_the_system_are_refused() -> None:
    with pytest.raises(StartRefused, match="too long"):
        start(["true", "x" * 10_000_000])


@pytest.mark.parametrize("env", [{"a=b": "c"}, {"a": "b\0c"}])
async def test_an_invalid_environment_raises_value_error(env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"illegal|null"):
        start(["/bin/true"], env=env)


STARVED = """
import asyncio, os, resource
from telex.processes import guardian
from telex.processes.spawn import *

def open_now():
    listed = {int(fd) for fd in os.listdir("/proc/self/fd")} - guardian.fds()
    return {fd for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")}

async def main():
    await asyncio.sleep(0)
    before, hard = open_now(), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    refused = started = limit = 0
    while started < 3:
        limit += 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try: child = start(["/bin/true"])
        except StartRefused: child = None
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        refused += child is None
        started += child is not None
        if child: await child.__aexit__(None, None, None)
        assert open_now() == before, (limit, open_now(), before)
        for path in os.listdir("/proc/self/task"):
            children = {int(pid) for pid in open(f"/proc/self/task/{path}/children").read().split()}
            assert children <= guardian.pids(), (limit, children)
    print(refused)
asyncio.run(main())
"""


def test_running_out_of_descriptors_at_any_point_leaks_neither_one_nor_a_child() -> None:
    """With one more descriptor each time, so that each call fails once, also the guardian's."""
    done = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 10


async def test_a_child_that_cannot_be_recorded_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise `conftest` would report it: it sleeps for long, and no record of it exists."""

    def full(_: Root) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(guardian, "enter", full)
    with pytest.raises(StartRefused, match="no space left"):
        start(["sleep", "1000"])


def test_nothing_is_started_outside_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[object] = []
    monkeypatch.setattr(spawn, "launch", lambda *how: launched.append(how))
    with pytest.raises(RuntimeError):
        start(["true"])
    assert launched == []
