"""Real children, restricted by the real kernel."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING

import pytest

from telex.processes.child import Exit
from telex.processes.sandbox import (
    DEVICES,
    PROGRAMS,
    Access,
    Confinement,
    Kernel,
    PathRule,
    asked_kernel,
    lacking,
    usual_limits,
)
from telex.processes.spawn import PipeEnd, Pipes, StartRefused, start
from telex.processes.syscall_filter import MACHINES, Sockets
from telex.processes.termination import Rung

if TYPE_CHECKING:
    from processes.trees import Lifeline

KERNEL = asked_kernel()
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="telex confines on Linux only")
with_landlock = pytest.mark.skipif(not KERNEL.landlock, reason="this kernel has no Landlock")
with_scopes = pytest.mark.skipif(KERNEL.landlock < 6, reason="this Landlock has no scopes")
with_filter = pytest.mark.skipif(not KERNEL.machine, reason="there is no filter for this machine")

SYSTEM = (
    *map(PathRule, (*PROGRAMS, "/etc/ld.so.cache", sys.prefix, sys.base_prefix)),
    *(PathRule(device, Access.WRITE) for device in DEVICES),
)
PYTHON = (sys.executable, "-I", "-S", "-c")
REFUSED = ("Permission denied", "Operation not permitted")


def held(*rules: PathRule, sockets: Sockets = Sockets.NONE, kernel: Kernel = KERNEL) -> Confinement:
    there = tuple(rule for rule in (*SYSTEM, *rules) if os.path.exists(rule.path))
    return Confinement(
        there, sockets, usual_limits(), True, temporary=tempfile.gettempdir(), kernel=kernel
    )


async def ran(
    *argv: str, by: Confinement | None, cwd: Path | None = None
) -> tuple[Exit, list[str]]:
    """Return its exit, and the lines of both its outputs."""
    with tempfile.TemporaryFile() as output:
        async with start(
            argv,
            stdio=Pipes(PipeEnd.NULL, output.fileno(), output.fileno()),
            cwd=None if cwd is None else str(cwd),
            confinement=by,
        ) as child:
            ended = await child.wait()
        output.seek(0)
        return ended, output.read().decode().splitlines()


async def tried(*statements: str, by: Confinement | None, cwd: Path | None = None) -> list[str]:
    """Return the outcome of each statement of Python: `done`, or the system's error."""
    script = f"""
import ctypes, os, sys
import _socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
for statement in {list(statements)!r}:
    try:
        exec(statement)
        print("done", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""
    ended, lines = await ran(*PYTHON, script, by=by, cwd=cwd)
    assert ended == Exit(code=0), lines
    return lines


@with_landlock
async def test_only_paths_of_the_rules_can_be_read_under_any_name(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    (root / "src").mkdir(parents=True)
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    (root / "here").write_text("mine")
    (root / "link").symlink_to(home / ".ssh" / "id_rsa")
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "x").write_text("decoy")
    (root / "src" / "x").symlink_to(home / ".ssh" / "id_rsa")
    outside = [
        f"open({str(home / '.ssh' / 'id_rsa')!r})",
        f"os.listdir({str(home)!r})",
        "open('link')",
        "os.chdir('src'); open('../l/x')",
        f"open('/proc/{os.getpid()}/root{home}/.ssh/id_rsa')",
        f"open('/proc/{os.getpid()}/environ')",
        "os.listdir('/proc')",
        f"os.chdir({str(home)!r}); open('.ssh/id_rsa')",
        f"os.link({str(home / '.ssh' / 'id_rsa')!r}, os.environ['TMPDIR'] + '/x')",
        f"os.rename({str(home / '.ssh')!r}, os.environ['TMPDIR'] + '/x')",
    ]
    results = await tried("open('here')", *outside, by=held(PathRule(str(root))), cwd=root)
    assert results[0] == "done"
    assert [one in (*REFUSED, "Invalid cross-device link") for one in results[1:]] == [True] * len(
        outside
    ), results
    assert (await tried(*outside[:4], by=None, cwd=root)) == ["done"] * 4


@with_landlock
async def test_only_paths_of_the_rules_can_be_written_and_a_file_rule_covers_only_that_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").write_text("old")
    (tmp_path / "other").write_text("old")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "old").write_text("old")
    rules = [
        PathRule(str(tmp_path)),
        PathRule(str(tmp_path / "one"), Access.MAKE_FILES),
        PathRule(str(tmp_path / "docs"), Access.MAKE_FILES),
    ]
    allowed = ["open('one', 'w').write('new')", "open('docs/new', 'w')", "open('docs/old', 'a')"]
    refused = [
        *("open('other', 'w')", "open('other', 'a')", "open('new', 'w')", "os.mkdir('d')"),
        *("os.remove('one')", "os.rename('one', 'two')", "os.symlink('/etc', 'link')"),
        *("os.remove('docs/old')", "os.rename('docs/old', 'docs/x')", "os.mkfifo('docs/fifo')"),
    ]
    results = await tried(*allowed, *refused, by=held(*rules), cwd=tmp_path)
    assert results == ["done"] * len(allowed) + ["Permission denied"] * len(refused)
    assert (tmp_path / "one").read_text() == "new"
    assert (tmp_path / "other").read_text() == "old"


SOCKETS = {
    "TCP": "_socket.socket(2, 1)",
    "UDP": "_socket.socket(2, 2)",
    "TCP by IPv6": "_socket.socket(10, 1)",
    "multipath TCP": "_socket.socket(2, 1, 262)",
    "unix": "_socket.socket(1, 1)",
    "unix datagrams": "_socket.socket(1, 2)",
    "a pair of datagrams, which could be connected anew": "_socket.socketpair(1, 2)",
    "the same by another name": "_socket.socketpair(1, 3)",
    "kernel events": "_socket.socket(16, 2, 15)",
    "packets": "_socket.socket(17, 2)",
    "virtual machines": "_socket.socket(40, 1)",
    "io_uring": "call(425, 8, ctypes.create_string_buffer(120))",
}


@with_filter
async def test_without_sockets_only_connected_pairs_can_be_created() -> None:
    results = await tried("_socket.socketpair(1, 1)", *SOCKETS.values(), by=held())
    assert results[0] == "done"
    assert dict(zip(SOCKETS, results[1:], strict=True)).keys() == SOCKETS.keys()
    assert set(results[1:]) <= set(REFUSED), results


@with_filter
async def test_with_internet_sockets_no_local_socket_can_be_created() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"_socket.socket(2, 1).connect(('127.0.0.1', {port}))"
        interfaces = "_socket.socket(16, 3, 0)"
        by = held(sockets=Sockets.INTERNET)
        results = await tried(connect, SOCKETS["UDP"], interfaces, by=by)
        local = [how for name, how in SOCKETS.items() if name.startswith(("unix", "a pair", "io"))]
        others = [*local, SOCKETS["kernel events"], SOCKETS["packets"], SOCKETS["virtual machines"]]
        assert results == ["done"] * 3
        assert set(await tried(*others, by=by)) <= set(REFUSED)
        assert set(await tried(connect, by=held())) <= set(REFUSED)


@pytest.mark.skipif(KERNEL.landlock < 4, reason="this Landlock does not know TCP")
async def test_without_a_filter_landlock_refuses_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        by = held(kernel=replace(KERNEL, machine=""))
        connect = f"_socket.socket(2, 1).connect(('127.0.0.1', {port}))"
        assert await tried(connect, by=by) == ["Permission denied"]


@with_filter
async def test_calls_that_landlock_does_not_check_are_refused_by_the_filter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    changes = [
        "os.chmod('file', 0o777)",
        "os.chown('file', os.getuid(), os.getgid())",
        "os.utime('file', (1, 1))",
        "os.setxattr('file', 'user.x', b'1')",
        "os.truncate('file', 0)",
        *(
            f"call({number}, -1, 0, 0, 0, 0)"
            for number in MACHINES[KERNEL.machine].refused.values()
        ),
    ]
    before = (tmp_path / "file").stat()
    results = await tried(*changes, by=held(PathRule(str(tmp_path))), cwd=tmp_path)
    assert set(results) == {"Operation not permitted"}
    after = (tmp_path / "file").stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (
        before.st_mode,
        before.st_mtime_ns,
        4,
    )


@pytest.mark.skipif(KERNEL.machine != "x86_64", reason="only x86_64 has a second set of calls")
async def test_a_call_by_the_numbers_of_another_architecture_kills_the_process() -> None:
    script = "import ctypes; ctypes.CDLL(None).syscall(0x40000000 | 41, 2, 1, 0); print('lived')"
    ended, lines = await ran(*PYTHON, script, by=held())
    assert (ended, lines) == (Exit(signal=signal.SIGSYS), [])


@pytest.mark.parametrize(
    ("machine", "header"),
    [
        ("x86_64", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        ("aarch64", "/usr/include/asm-generic/unistd.h"),
    ],
)
def test_the_numbers_of_the_calls_match_the_systems_headers(machine: str, header: str) -> None:
    if not os.path.exists(header):
        pytest.skip(f"{header} is not installed (linux-libc-dev)")
    text = Path(header).read_text()
    known = {
        name: int(number) for name, number in re.findall(r"define __NR(?:3264)?_(\w+) (\d+)", text)
    }
    here = MACHINES[machine]
    own = {name: number for name, (number, _) in {**here.own_only, **here.own_kind}.items()}
    others = {"socket": here.socket, "socketpair": here.socketpair, "ioctl": here.ioctl}
    ours = {**here.refused, **own, **others}
    # A header may be older than the last calls.
    assert {
        name: number for name, number in ours.items() if known.get(name, number) != number
    } == {}
    assert len(ours.keys() & known.keys()) > 20


async def test_root_keeps_only_the_capabilities_to_read_and_write_files_of_any_owner() -> None:
    kept = 1 << 1 | 1 << 2
    _, lines = await ran("grep", "-E", "^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)", "/proc/self/status",
                         by=Confinement(filtered=True))  # fmt: skip
    results = dict(line.split(":\t") for line in lines)
    assert results.pop("NoNewPrivs") == "1"
    assert [int(value, 16) & ~kept for value in results.values()] == [0] * 4


async def test_a_setuid_program_gains_nothing(tmp_path: Path) -> None:
    program = tmp_path / "id"
    shutil.copy("/usr/bin/id", program)
    if os.geteuid() == 0:  # only root can make one that would gain anything
        tmp_path.chmod(0o755)
        os.chown(program, 12345, 12345)
        program.chmod(0o6755)
    _, lines = await ran(str(program), "-u", by=Confinement(filtered=True))
    assert lines == [str(os.geteuid())]


@with_scopes
async def test_it_can_signal_its_own_processes_but_not_its_reaper() -> None:
    script = f"kill -9 $PPID || echo kept; kill -0 {os.getpid()} || echo kept; sleep 99 & kill $!"
    ended, lines = await ran("sh", "-c", script, by=held())
    assert ended == Exit(code=0)
    assert [line for line in lines if line == "kept"] == ["kept", "kept"]


@with_filter
async def test_it_cannot_change_limits_or_scheduling_of_another_process() -> None:
    pid = os.getpid()
    numbers = MACHINES[KERNEL.machine].own_only
    others = [
        f"call({number}, {', '.join(['0'] * at)}{', ' if at else ''}{pid}, 0, 0, 0, 0)"
        for number, at in numbers.values()
    ]
    own = [f"call({numbers['prlimit64'][0]}, 0, 7, 0, 0)", "os.setpriority(0, 0, 19)"]
    results = await tried(*own, *others, by=held())
    assert results == ["done"] * 2 + ["Operation not permitted"] * len(others)


@with_filter
async def test_it_cannot_change_the_scheduling_of_a_group_or_a_user() -> None:
    here = MACHINES[KERNEL.machine].own_kind
    assert set(here) == {"setpriority", "ioprio_set"}
    own, others = [], []
    for number, process in here.values():
        for which in range(-1, 5):
            for who in (0, os.getpid(), os.getuid() or 1):
                is_own = (which, who) == (process, 0)
                value = 0x4007 if process else 19  # best effort, the last of its class
                (own if is_own else others).append(f"call({number}, {which}, {who}, {value})")
    results = await tried(*own, *others, by=held())
    assert results == ["done"] * 2 + ["Operation not permitted"] * len(others)


@with_filter
async def test_it_cannot_use_queues_semaphores_or_memory_of_another_program() -> None:
    """Objects of System V and of POSIX, by the ids and names of another program."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue, private, create = libc.msgget(0, 0o1600), 0, 0o1600
    semaphore, memory = libc.semget(private, 1, create), libc.shmget(private, 4096, create)
    name = f"telex-test-{os.getpid()}".encode()
    posix = libc.mq_open(b"/" + name, os.O_CREAT | os.O_RDWR, 0o600, None)
    assert min(queue, semaphore, memory, posix) >= 0, os.strerror(ctypes.get_errno())
    message = ctypes.create_string_buffer(bytes([1, 0, 0, 0, 0, 0, 0, 0]) + b"kept")
    try:
        assert libc.msgsnd(queue, message, 4, 0) == 0
        numbers = MACHINES[KERNEL.machine].refused
        buffer = "ctypes.create_string_buffer(4096)"
        calls = {
            "msgrcv": f"{queue}, {buffer}, 100, 0, 0o4000, 0",
            "msgsnd": f"{queue}, ctypes.create_string_buffer(bytes([1]) + bytes(15)), 4, 0o4000",
            "msgctl": f"{queue}, 0, 0",
            "semop": f"{semaphore}, {buffer}, 1",
            "semtimedop": f"{semaphore}, {buffer}, 1, 0",
            "semctl": f"{semaphore}, 0, 0, 0",
            "shmctl": f"{memory}, 0, 0",
            "shmat": f"{memory}, 0, 0",
            "mq_unlink": f"{name!r}",
        }
        results = await tried(*(f"call({numbers[c]}, {a})" for c, a in calls.items()), by=held())
        assert results == ["Operation not permitted"] * len(calls)
        received = ctypes.create_string_buffer(100)
        assert libc.msgrcv(queue, received, 92, ctypes.c_long(0), 0o4000) == 4
        assert received.raw[8:12] == b"kept"
    finally:
        left = [libc.msgctl(queue, 0, None), libc.semctl(semaphore, 0, 0)]
        left += [libc.shmctl(memory, 0, None), libc.mq_unlink(b"/" + name), libc.mq_close(posix)]
    assert left == [0] * 5  # they were all still there


@with_filter
async def test_ioctls_can_read_but_not_change_the_attributes_of_a_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("text")
    changing = {
        "FS_IOC_SETFLAGS": 0x40086602,
        "FS_IOC32_SETFLAGS": 0x40046602,
        "FS_IOC_SETVERSION": 0x40087602,
        "FS_IOC32_SETVERSION": 0x40047602,
        "FS_IOC_FSSETXATTR": 0x401C5820,
        "EXT4_IOC_SETVERSION": 0x40086604,
        "EXT4_IOC_MIGRATE": 0x6609,
        "FS_IOC_ENABLE_VERITY": 0x40806685,
        "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
        "FAT_IOCTL_SET_ATTRIBUTES": 0x40047211,
        "BTRFS_IOC_SUBVOL_SETFLAGS": 0x4008941A,
        "F2FS_IOC_SET_PIN_FILE": 0x4004F50D,
    }
    number = MACHINES[KERNEL.machine].ioctl
    opened = "fd = os.open('file', os.O_RDONLY)"
    calls = [f"call({number}, fd, {one}, bytes(256))" for one in changing.values()]
    assert (await tried(opened, *calls, by=held(PathRule(str(tmp_path))), cwd=tmp_path))[1:] == [
        "Operation not permitted"
    ] * len(calls)
    reading = [0x80086601, 0x801C581F, 0x541B]  # the flags, the attributes, what waits to be read
    calls = [
        opened,
        *(f"call({number}, fd, {one}, ctypes.create_string_buffer(256))" for one in reading),
    ]
    free = await tried(*calls, by=None, cwd=tmp_path)
    assert await tried(*calls, by=held(PathRule(str(tmp_path))), cwd=tmp_path) == free


@with_landlock
async def test_its_temporary_directory_is_private_and_removed_afterwards(
    tmp_path: Path,
) -> None:
    script = (
        'echo "$TMPDIR" "$TMP" "$TEMP"; umask; stat -c %a "$TMPDIR"; echo x > "$TMPDIR/x" &&'
        ' mkdir -p "$TMPDIR/a/b" && ln -s / "$TMPDIR/a/link" && mkdir -m 0 "$TMPDIR/shut"; ls "$0"'
    )
    by = replace(held(), temporary=str(tmp_path))
    (tmp_path / "of-another").mkdir()
    seen = []
    for _ in range(2):
        ended, lines = await ran("sh", "-c", script, str(tmp_path), by=by)
        names = set(lines[0].split())
        assert len(names) == 1
        seen += names
        assert lines[2] == "700"
        assert ended == Exit(code=2), lines  # what is beside it is not listed
    assert seen[0] != seen[1]
    assert os.path.dirname(seen[0]) == str(tmp_path)
    assert os.listdir(tmp_path) == ["of-another"]
    assert os.path.exists("/usr/bin")


async def test_its_temporary_directory_is_removed_at_any_depth_and_mode(tmp_path: Path) -> None:
    """Deeper than a path can be long, than Python can recurse, and than there are descriptors."""
    script = """
import os, sys
os.chdir(os.environ["TMPDIR"])
for width in range(20):
    os.mkdir(f"{width}")
    open(f"{width}/file", "w").close()
for depth in range(1100):
    name = "d" * (1 + depth % 10)
    os.mkdir(name)
    if depth % 100 == 50:
        os.symlink("/usr", "link")
        open("file", "w").close()
    os.chdir(name)
os.mkdir("shut", 0)
os.chdir(os.environ["TMPDIR"])
os.mkdir("shut")
os.mkdir("shut/inner")
os.rename("d", "shut/inner/d")
sys.exit(7)
"""
    by = replace(held(), temporary=str(tmp_path))
    ended, lines = await ran(*PYTHON, script, by=by)
    assert (ended, lines) == (Exit(code=7), [])
    assert list(tmp_path.iterdir()) == []
    assert os.path.exists("/usr/bin")


async def test_its_temporary_directory_is_removed_when_the_command_is_ended(
    tmp_path: Path, lifeline: Lifeline
) -> None:
    child = start(
        ["sh", "-c", 'echo x > "$TMPDIR/x"; echo >&2; exec sleep 999'],
        stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing),
        confinement=replace(held(), temporary=str(tmp_path)),
    )
    await lifeline.ready(1)
    assert [path.name for path in tmp_path.glob("*/x")] == ["x"]
    await child.end((Rung(SIGTERM, 20.0), Rung(SIGKILL, 20.0)))
    assert list(tmp_path.iterdir()) == []


@with_landlock
async def test_processes_it_leaves_behind_are_restricted_and_ended_too(
    tmp_path: Path, lifeline: Lifeline
) -> None:
    (tmp_path / "secret").write_text("secret")
    script = f"(setsid sh -c 'cat {tmp_path}/secret || echo >&2; exec sleep 999' &); sleep 999"
    child = start(
        ["sh", "-c", script],
        stdio=Pipes(PipeEnd.NULL, PipeEnd.NULL, lifeline.writing),
        confinement=held(),
    )
    await lifeline.ready(1)
    await child.end((Rung(SIGTERM, 20.0), Rung(SIGKILL, 20.0)))
    await lifeline.gone()


async def test_if_the_kernel_refuses_the_sandbox_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in (f"landlock={2**64 - 1}", "filter=" + "ff" * 8, "capabilities=x"):
        monkeypatch.setattr(Confinement, "words", lambda _, word=word: [word])
        ended, lines = await ran("touch", str(tmp_path / "made"), by=Confinement())
        assert ended == Exit(code=126)
        results = "\n".join(lines)
        assert "the command was not run" in results or "cannot be run" in results
    assert list(tmp_path.iterdir()) == []


async def test_without_a_python_no_confined_command_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(StartRefused, match="its sandbox needs Python"):
        await ran("true", by=held())


async def test_a_program_that_cannot_be_run_is_reported() -> None:
    by = Confinement(filtered=True)
    monkey = Path(tempfile.gettempdir()) / "no-interpreter"
    monkey.write_text("#!/no/such/interpreter\n")
    monkey.chmod(0o755)
    try:
        ended, lines = await ran(str(monkey), by=by)
    finally:
        monkey.unlink()
    assert ended == Exit(code=126)
    assert lines == [f"{monkey} cannot be run: No such file or directory"]


@with_landlock
@pytest.mark.parametrize("version", range(1, KERNEL.landlock + 1))
async def test_an_older_landlock_is_enforced_as_well(tmp_path: Path, version: int) -> None:
    (tmp_path / "file").write_text("text")
    script = f"cat {tmp_path}/file; echo x > {tmp_path}/file; truncate -s 0 {tmp_path}/file; true"
    by = held(kernel=replace(KERNEL, landlock=version))
    ended, lines = await ran("sh", "-c", script, by=by)
    assert (ended, (tmp_path / "file").read_text()) == (Exit(code=0), "text")
    assert len(lines) == 3


async def test_resource_limits_are_enforced() -> None:
    _, lines = await ran("sh", "-c", "ulimit -c; ulimit -n", by=held())
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert lines == ["0", str(min(files, 4096) if files > 0 else 4096)]


def test_missing_kernel_features_are_reported() -> None:
    assert lacking(Kernel(linux=True, landlock=6, machine="x86_64")) == []
    assert "on Linux only" in lacking(Kernel(linux=False, landlock=0))[0]
    results = " ".join(lacking(Kernel(linux=True, landlock=0)))
    assert "no Landlock" in results
    assert "no seccomp filter" in results
    assert "signal" in results
    assert Confinement((), kernel=Kernel(linux=False, landlock=0)).words() == []
