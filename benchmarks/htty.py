"""A page through a terminal: h2load, a bridge, a real PTY, and the smallest app there is.

Three processes, on as many cores as there are. Beside it the same code with the bytes as they are
instead of chunks, which is what the framing costs; and `ssh -L` to the same app on a TCP port,
which is what people use today. Contestants take turns.
"""

from __future__ import annotations

import getpass
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import Row, against, in_turns
from benchmarks.htty_ends import LARGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROUNDS = 3
REQUESTS, AT_ONCE = 10_000, 20
DOWNLOADS = 20
SECONDS = 120


@contextmanager
def end(*what: str) -> Iterator[int]:
    """One of `htty_ends`, and the port it listens on."""
    argv = [sys.executable, "-m", "benchmarks.htty_ends", *what]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        try:
            yield int(child.stdout.readline())
        finally:
            child.terminate()


def h2load(port: int, *options: str) -> float:
    """Requests a second, all of them answered."""
    windows = ("-w", "24", "-W", "24")  # 16 MiB; h2load's own 64 KiB would measure patience
    done = subprocess.run(
        ["h2load", "-c", "1", *windows, *options],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert ", 0 failed, 0 errored" in done.stdout, done.stdout
    found = re.search(r"finished in .*?, ([0-9.]+) req/s", done.stdout)
    assert found, port
    return float(found[1])


def requests(port: int) -> Callable[[], float]:
    url = f"http://127.0.0.1:{port}/"
    return lambda: h2load(port, "-n", str(REQUESTS), "-m", str(AT_ONCE), url)


def latency(port: int) -> Callable[[], float]:
    """One after another: the mean, in ms."""
    return lambda: 1000 / h2load(port, "-n", "1000", "-m", "1", f"http://127.0.0.1:{port}/")


def downloads(port: int) -> Callable[[], float]:
    """MB/s."""
    url = f"http://127.0.0.1:{port}/large"
    return lambda: h2load(port, "-n", str(DOWNLOADS), "-m", "1", url) * LARGE / 1e6


@contextmanager
def forwarded(port: int, path: Path) -> Iterator[int]:
    """The same port by `ssh -L`, through an sshd of our own."""
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path / name], check=True
        )
    sshd, ours = _free_port(), _free_port()
    config = path / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{sshd}\nHostKey {path}/host\nAuthorizedKeysFile {path}/user.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\n"
    )
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists, and a boot makes it
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    said = [word for option in options for word in ("-o", option)]
    login = ["-p", str(sshd), "-i", str(path / "user"), f"{getpass.getuser()}@127.0.0.1"]
    tunnel = ["-L", f"127.0.0.1:{ours}:127.0.0.1:{port}", "-o", "ConnectionAttempts=10"]
    argv = ["ssh", "-F", "none", "-o", "BatchMode=yes", *said, *tunnel, *login]
    server = [str(shutil.which("sshd") or "/usr/sbin/sshd"), "-D", "-e", "-f", str(config)]
    with (
        subprocess.Popen(server, stderr=subprocess.DEVNULL) as daemon,
        subprocess.Popen([*argv, "echo up; exec sleep 1000"], stdout=subprocess.PIPE) as client,
    ):
        try:
            assert client.stdout
            if client.stdout.readline() != b"up\n":
                raise RuntimeError("ssh did not connect to the sshd of this benchmark")
            yield ours
        finally:
            client.terminate()
            daemon.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def run() -> list[Row]:
    if shutil.which("h2load") is None:
        return [Row("a page through a terminal", 0, "", peer_name="h2load is not installed")]
    with ExitStack() as open_:
        ports = {
            "telex": open_.enter_context(end("bridge")),
            "raw h2c, same PTY": open_.enter_context(end("bridge-raw")),
        }
        if shutil.which("ssh") and shutil.which("ssh-keygen"):
            directory = Path(open_.enter_context(tempfile.TemporaryDirectory()))
            tcp = open_.enter_context(end("tcp"))
            ports["ssh -L, same app"] = open_.enter_context(forwarded(tcp, directory))
        return [
            *_rows("page download", "MB/s", ports, downloads, ">= 40, raw >= 0.8 x"),
            *_rows("page requests, 20 at once", "/s", ports, requests, ">= 6,000, raw >= 0.8 x"),
            *_waits(ports),
        ]


def _rows(
    figure: str,
    unit: str,
    ports: dict[str, int],
    measure: Callable[[int], Callable[[], float]],
    target: str,
) -> list[Row]:
    figures = in_turns({name: measure(port) for name, port in ports.items()}, ROUNDS)
    return against(figure, unit, figures, {"raw h2c, same PTY": target})


def _waits(ports: dict[str, int]) -> list[Row]:
    """Here the least is the best."""
    figures = in_turns({name: latency(port) for name, port in ports.items()}, ROUNDS)
    (_, ours), *peers = figures.items()
    return [
        Row("page request, one at a time", ours[0], "ms", theirs[0], name, "", (ours[0], ours[-1]))
        for name, theirs in peers
    ]
