"""Restrictions of real processes by the real kernel."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from telex.config.places import Places
from telex.plugins.client import start
from telex.plugins.discovery import FoundPlugin, find
from telex.plugins.plugin_settings import PluginSettings
from telex.plugins.protocol import Needs, PluginManifest
from telex.plugins.restrictions import restricted_command, restrictions
from telex.processes.sandbox import Kernel, asked_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

LANDLOCK = asked_kernel().landlock
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="telex restricts on Linux only")
with_landlock = pytest.mark.skipif(not LANDLOCK, reason="this kernel has no Landlock")
with_scopes = pytest.mark.skipif(LANDLOCK < 6, reason="this kernel's Landlock has no scopes")
EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
PYTHON = f"#!{sys.executable} -IS\n"


def plugin_of(directory: Path, script: str, needs: Needs | None) -> FoundPlugin:
    own = directory / "plugin"
    own.mkdir(exist_ok=True)
    executable = own / "main"
    executable.write_text(script)
    executable.chmod(0o755)
    return FoundPlugin("it", executable, PluginManifest("it", "main", needs=needs), own)


def ran(
    found: FoundPlugin, kernel: Kernel | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    argv = restrictions(found, kernel=kernel).command([str(found.executable)])
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env, check=False)


@with_landlock
def test_writing_works_only_within_the_declared_needs(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in=side", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    script = f"""{PYTHON}
import os
for place in ({str(inside)!r}, {str(outside)!r}):
    try:
        os.close(os.open(place + "/file", os.O_CREAT | os.O_WRONLY))
        os.rename(place + "/file", place + "/renamed")
        os.truncate(place + "/renamed", 3)
        print("written")
    except OSError as error:
        print(error.strerror)
"""
    assert ran(plugin_of(tmp_path, script, Needs(write=[str(inside)]))).stdout.splitlines() == [
        "written",
        "Permission denied",
    ]
    assert not list(outside.iterdir())


@with_landlock
def test_a_plugin_reads_only_declared_paths_and_its_own_directory(tmp_path: Path) -> None:
    for name in ("declared", "secret"):
        (tmp_path / name).write_text(name)
    script = f"""#!/bin/sh
cat {tmp_path}/plugin/data {tmp_path}/declared {tmp_path}/secret
echo more >> {tmp_path}/declared
echo more >> {tmp_path}/plugin/data
ls {tmp_path}
"""
    found = plugin_of(tmp_path, script, Needs(read=[str(tmp_path / "declared")]))
    (found.where / "data").write_text("own ")
    done = ran(found)
    assert done.stdout == "own declared"
    assert done.stderr.lower().count("permission denied") == 4


@with_landlock
def test_a_plugin_without_needs_is_not_restricted_by_landlock(tmp_path: Path) -> None:
    done = ran(plugin_of(tmp_path, f"#!/bin/sh\necho free > {tmp_path}/made\n", None))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "made").read_text() == "free\n"


@pytest.mark.skipif(LANDLOCK < 4, reason="this kernel's Landlock does not restrict TCP")
@pytest.mark.parametrize(
    ("network", "outcome"), [(False, "Permission denied"), (True, "connected")]
)
def test_tcp_works_only_for_plugins_that_need_the_network(
    tmp_path: Path, network: bool, outcome: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"""{PYTHON}
import _socket
try:
    _socket.socket().connect(("127.0.0.1", {server.getsockname()[1]}))
    print("connected")
except OSError as error:
    print(error.strerror)
"""
        found = plugin_of(tmp_path, script, Needs(network=network))
        assert ran(found).stdout.strip() == outcome


@with_scopes
def test_it_signals_no_process_but_its_own(tmp_path: Path) -> None:
    script = f"#!/bin/sh\nkill -0 {os.getpid()} || echo kept\nsleep 9 & kill $! && echo killed\n"
    assert ran(plugin_of(tmp_path, script, Needs())).stdout == "kept\nkilled\n"
    assert ran(plugin_of(tmp_path, script, None)).stdout == "killed\n"


@with_landlock
def test_a_plugin_cannot_read_the_environment_of_other_processes(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    script = f"#!/bin/sh\ncat /proc/{os.getpid()}/environ >/dev/null && echo read\n"
    # Root may read any process; without this capability it is like any other user.
    setpriv = [program("setpriv"), "--bounding-set", "-perfmon,-sys_admin"]
    ordinary = setpriv if os.geteuid() == 0 else []

    def said(needs: Needs | None) -> str:
        found = plugin_of(tmp_path, script, needs)
        argv = [*ordinary, *restrictions(found).command([str(found.executable)])]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout

    assert (said(None), said(Needs())) == ("read\n", "")


@on_linux
def test_the_memory_limit_is_enforced(tmp_path: Path) -> None:
    def script(mib: int) -> str:
        return f"{PYTHON}\nprint(len(bytearray({mib} << 20)))\n"

    assert ran(plugin_of(tmp_path, script(32), Needs(memory=128))).stdout == f"{32 << 20}\n"
    assert "MemoryError" in ran(plugin_of(tmp_path, script(256), Needs(memory=128))).stderr
    assert ran(plugin_of(tmp_path, script(256), None)).stdout == f"{256 << 20}\n"


@on_linux
def test_a_setuid_bit_gains_nothing(tmp_path: Path) -> None:
    program = tmp_path / "id"
    shutil.copy("/usr/bin/id", program)
    if os.geteuid() == 0:  # only root can create a file that would gain privileges
        tmp_path.chmod(0o755)
        os.chown(program, 12345, 12345)
        program.chmod(0o6755)
    found = plugin_of(
        tmp_path, f"#!/bin/sh\ngrep NoNewPrivs /proc/self/status\n{program} -u\n", None
    )
    assert ran(found).stdout.split() == ["NoNewPrivs:", "1", str(os.geteuid())]


@on_linux
def test_limits_are_set_and_never_raised(tmp_path: Path) -> None:
    script = "#!/bin/sh\nulimit -c; ulimit -n; ulimit -Hn; sh -c 'ulimit -Hc'\n"
    found = plugin_of(tmp_path, script, None)
    soft, hard = (min(limit, 4096) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    assert ran(found).stdout.split() == ["0", str(soft), str(hard), "0"]
    low = ["sh", "-c", 'ulimit -n 100; exec "$@"', "-"]
    argv = [*low, *restrictions(found).command([str(found.executable)])]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1:3] == ["100", "100"]


@on_linux
def test_the_shim_passes_on_environment_and_signal_dispositions(tmp_path: Path) -> None:
    script = "#!/usr/bin/env -S /usr/bin/cat /proc/self/environ /proc/self/status\n"
    environ, _, status = ran(
        plugin_of(tmp_path, script, None), env={"ONLY": "this"}
    ).stdout.partition("Name:")
    assert environ == "ONLY=this\0"
    # Python ignores SIGPIPE and SIGXFSZ itself; other inherited dispositions stay.
    ours = Path("/proc/self/status").read_text().partition("SigIgn:")[2].split()[0]
    pythons = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    assert f"SigIgn:\t{int(ours, 16) & ~pythons:016x}" in status


@on_linux
def test_a_program_that_cannot_be_run_is_reported_with_a_remedy(tmp_path: Path) -> None:
    done = ran(plugin_of(tmp_path, "#!/no/such/interpreter\n", None))
    assert done.returncode == 126
    assert "cannot be run: No such file or directory; check its #! line" in done.stderr


@on_linux
def test_a_failed_restriction_is_reported_and_the_plugin_still_starts(
    tmp_path: Path,
) -> None:
    found = plugin_of(tmp_path, "#!/bin/sh\necho started\n", Needs())
    words = restrictions(found).command([str(found.executable)])
    words = [f"landlock={2**64 - 1}" if word.startswith("landlock=") else word for word in words]
    words.insert(4, f"landlock={2**64 - 1}")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "started\n"
    assert "telex: this plugin runs without all of its restrictions:" in done.stderr


@with_landlock
@pytest.mark.parametrize("version", range(1, LANDLOCK + 1))
def test_an_older_landlock_gets_only_the_rights_it_knows(tmp_path: Path, version: int) -> None:
    found = plugin_of(tmp_path, f"#!/bin/sh\necho no > {tmp_path}/made\n", Needs())
    done = ran(found, Kernel(linux=True, landlock=version))
    assert "fewer restrictions" not in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        (1, "landlock=8191"),
        (2, "landlock=16383"),
        (3, "landlock=32767"),
        (4, "landlock=32767,3"),
        (5, "landlock=65535,3"),
        (6, "landlock=65535,3,3"),
        (9, "landlock=65535,3,3"),
    ],
)
def test_each_version_of_landlock_gets_the_rights_it_added(
    tmp_path: Path, version: int, asked: str
) -> None:
    kernel = Kernel(linux=True, landlock=version)
    held = restrictions(plugin_of(tmp_path, "", Needs()), kernel=kernel)
    assert asked in held.command(["/it"])


def test_restrictions_that_the_kernel_lacks_are_listed(tmp_path: Path) -> None:
    def lacking(needs: Needs | None, linux: bool = True, landlock: int = 0) -> str:
        kernel = Kernel(linux, landlock)
        return " ".join(restrictions(plugin_of(tmp_path, "", needs), kernel=kernel).lacking())

    assert "this kernel has no Landlock" in lacking(Needs())
    assert "on Linux only" in lacking(Needs(), linux=False)
    assert "its manifest has no `needs`" in lacking(None, landlock=7)
    assert "does not restrict TCP" in lacking(Needs(), landlock=3)
    assert "UDP and named local sockets" in lacking(Needs(), landlock=4)
    assert "can signal your other processes" in lacking(Needs(), landlock=5)
    most = lacking(Needs(network=True), landlock=6)
    assert most.startswith("It can change mode, owner and times of your files")
    assert ("It runs as root" in most) is (os.geteuid() == 0)
    assert "is not ended with the plugin" in most
    assert "is not ended with the plugin" in lacking(None)


def test_without_linux_the_plugin_runs_without_a_shim(
    tmp_path: Path,
) -> None:
    held = restrictions(plugin_of(tmp_path, "", Needs()), kernel=Kernel(linux=False, landlock=0))
    assert (held.command(["/it", "now"]), held.enforced()) == (["/it", "now"], [])


def test_enforced_restrictions_are_listed_with_the_declared_paths(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    needs = Needs(read=["~/notes", "gone"], write=["."], memory=64)
    kernel = Kernel(linux=True, landlock=7)
    found = plugin_of(tmp_path, "", needs)
    held = restrictions(found, {"HOME": str(home)}, tmp_path, kernel)
    said = " ".join(held.enforced())
    assert f"It reads {home}/notes of yours" in said
    assert f"It writes to {tmp_path} of yours" in said
    assert "up to 64 MiB of memory" in said
    assert f"It needs {tmp_path}/gone, which does not exist; create it first." in held.lacking()


def test_a_bin_directory_in_the_home_does_not_grant_the_whole_home(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy("/bin/sh", programs / "mine")
    environ = {"HOME": str(tmp_path), "PATH": f"{programs}:{tmp_path}:/bin"}
    found = plugin_of(tmp_path, "#!/usr/bin/env mine\n", Needs())
    paths = {rule.path for rule in restrictions(found, environ).rules}
    assert str(programs) in paths
    assert not paths & {str(tmp_path), str(tmp_path.parent), "/"}


@with_landlock
@pytest.mark.parametrize(
    ("name", "code"), [("node", "console.log(6 * 7)"), ("python3", "print(6 * 7)")]
)
def test_a_runtime_that_is_installed_anywhere_runs_restricted(
    tmp_path: Path, name: str, code: str, program: Callable[[str], str]
) -> None:
    program(name)
    found = plugin_of(tmp_path, f"#!/usr/bin/env {name}\n{code}\n", Needs(memory=512))
    assert ran(found).stdout == "42\n"


@on_linux
def test_a_signal_ends_the_plugin_and_not_the_shim(tmp_path: Path) -> None:
    found = plugin_of(tmp_path, "#!/bin/sh\necho $$; exec cat\n", None)
    with subprocess.Popen(
        restricted_command(found), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert int(child.stdout.readline()) == child.pid
        child.terminate()
        assert child.wait(60) == -signal.SIGTERM


@with_landlock
@pytest.mark.parametrize("language", ["sh", "mjs", "py"])
async def test_a_plugin_in_each_language_runs_with_its_needs_enforced(
    tmp_path: Path, language: str, program: Callable[[str], str]
) -> None:
    program("node")
    directory = tmp_path / "data" / "plugins" / "greet"
    directory.mkdir(parents=True)
    executable = Path(shutil.copy(EXAMPLES / f"greet.{language}", directory))
    executable.chmod(0o755)
    said = {"name": "greet", "executable": executable.name, "needs": {"memory": 512}}
    (directory / "manifest.json").write_text(json.dumps(said))
    places = Places(*(tmp_path / name for name in ("config", "data", "state", "run")))
    [found] = find(places, {}).found
    assert found.refusal is None
    lines: list[str] = []
    async with start(
        found, PluginSettings(command=restricted_command, on_stderr_line=lines.append)
    ) as plugin:
        assert plugin.introduced.name == "greet"
    assert not [line for line in lines if "telex:" in line]
