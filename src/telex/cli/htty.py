"""`telex htty`: serve pages through a terminal, and test the connection."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli.address import address
from telex.cli.configuration import load_config
from telex.cli.console import explain, say
from telex.cli.run import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

    from telex.htty.h2.http2_connection import Ended
    from telex.htty.tools.connection_check import ConnectionReport
    from telex.htty.tools.transcript_dump import (
        DecodedFrame,
        Dump,
        DumpedFrame,
        DumpedMessage,
        DumpedStream,
    )
    from telex.htty.tty_stream import TtyStream

HELP = """Serve web pages through a terminal, and test the connection.

A program in a terminal, here or behind any number of ssh hops, serves a page, and the `telex run`
around it shows the page in a browser. No port has to be opened; text and Ctrl-C work as before.

\b
  telex run -- telex htty serve --dir .
  telex run -- ssh -t host telex htty serve --dir .
  telex htty check -- ssh -t host telex htty serve --dir .
"""


@click.group(help=HELP)
def command() -> None:
    pass


SERVE_HELP = """Serve a page through this terminal.

The page is an ASGI app, the files of a directory, or a local HTTP server. No port is opened. The
page is shown by the `telex run` around this terminal, also at the near end of ssh. The terminal is
asked whether it shows pages, unless HTTY is set in the environment. Without a terminal, HTTY=1
makes stdin and stdout carry the page.

q or Ctrl-C ends it. The exit code is 3 if the terminal does not show pages.

\b
  telex run -- telex htty serve --dir .
  telex run -- ssh -t host telex htty serve --to http://127.0.0.1:3000
  telex htty serve --asgi myapp.main:app
"""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@command.command("serve", help=SERVE_HELP)
@click.option("--asgi", metavar="MODULE:APP", help="An ASGI app, by its name in Python.")
@click.option(
    "--dir",
    "directory",
    metavar="PATH",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The files of a directory.",
)
@click.option("--to", metavar="URL", help="A server: http://127.0.0.1:3000, or unix:PATH.")
@click.option("--force", is_flag=True, help="Serve even if the terminal did not announce support.")
@click.pass_context
def serve_command(
    context: click.Context, asgi: str | None, directory: Path | None, to: str | None, force: bool
) -> int:
    from telex.cli.configuration import redactor_of
    from telex.cli.event_loop import run
    from telex.cli.listeners import log_to_stderr
    from telex.htty.errors import StartupFailed

    if sum(one is not None for one in (asgi, directory, to)) != 1:
        raise click.UsageError("give one of --asgi, --dir and --to")
    what = asgi or str(directory or to)
    app = _app(asgi, directory, to)
    settings = load_config(context).settings
    log_to_stderr(settings.logging.level, redactor_of(settings))
    try:
        ended = run(_served(app, what, force))
    except StartupFailed as failed:
        explain(f"telex: {failed}")
        return 1
    if not ended.graceful:
        explain(f"telex: {ended.sentence}")
    return 0 if ended.graceful else 1


def _app(asgi: str | None, directory: Path | None, to: str | None) -> ASGIApp:
    if asgi is not None:
        app: ASGIApp = _imported(asgi)
        return app
    if directory is not None:
        from telex.htty.static_files import DirectoryApp

        return DirectoryApp(directory)
    from telex.htty.errors import NoUpstream
    from telex.htty.reverse_proxy import ReverseProxy

    try:
        return ReverseProxy(to or "")
    except NoUpstream as error:
        raise click.BadParameter(str(error)) from error


def _imported(given: str) -> Any:
    """Import the app; modules of the current directory can be imported."""
    import importlib
    import sys

    module, colon, name = given.partition(":")
    if not module or not colon or not name:
        raise click.BadParameter(f"{given!r} is not MODULE:APP, as in myapp.main:app")
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise  # a module that the app imports: its author needs the traceback
        raise click.BadParameter(f"there is no module {error.name!r} here") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise click.BadParameter(f"{module} has no {name!r}")
        found = getattr(found, part)
    return found


async def _served(app: ASGIApp, what: str, force: bool) -> Ended:
    from telex.htty.key_filter import KeyFilter
    from telex.htty.server import serve

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    plain = KeyFilter()

    def typed(keys: bytes) -> None:
        if b"q" in plain.feed(keys, loop.time()):
            stop.set()

    serving = asyncio.create_task(
        serve(app, keys=typed, stop=stop, force=force, opened=lambda stream: _say(stream, what))
    )

    def interrupted() -> None:
        """End in order at the first signal, at once at the second."""
        if stop.is_set():
            serving.cancel()
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupted)
    try:
        return await serving
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _say(stream: TtyStream, what: str) -> None:
    if stream.tty is not None:
        explain(f"Serving {what} through this terminal. q or Ctrl-C ends it.")


CHECK_HELP = """Run a program that serves pages, and report what breaks its connection.

The command runs on a terminal of its own. It may be the program itself, or the program behind ssh
or in tmux. Each hop is reported with advice; then the round trip and the speed are measured, and
the page is fetched. The exit code is 1 if something breaks the connection.

\b
  telex htty check -- telex htty serve --dir .
  telex htty check -- ssh -t host telex htty serve --dir .
  telex htty check --path /large.bin -- ./server
"""


@command.command("check", help=CHECK_HELP, context_settings={"allow_interspersed_args": False})
@click.option("--path", default="/", show_default=True, help="Path to fetch; large for a speed.")
@click.option("--eager", is_flag=True, help="Send first, for programs that wait for HTTP/2.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@program
def check_command(path: str, eager: bool, as_json: bool, program: tuple[str, ...]) -> int:
    from telex.cli import event_loop
    from telex.htty.tools.connection_check import check

    report = event_loop.run(check(program, path=path, eager=eager))
    if as_json:
        say(json.dumps({"ok": report.ok, **asdict(report)}))
    else:
        for line in _report_lines(report):
            say(line)
    return 0 if report.ok else 1


def _report_lines(report: ConnectionReport) -> Iterator[str]:
    figures = list(_figures(report))
    width = max(len(name) for name, *_ in [*figures, *[(one.name,) for one in report.findings]])
    for one in report.findings:
        yield f"{one.name:{width}}  {'BREAKS' if one.breaks else 'ok    '}  {one.sentence}"
        if one.advice:
            yield f"{'':{width}}          {one.advice}"
    for name, figure in figures:
        yield f"{name:{width}}          {figure}"


def _figures(report: ConnectionReport) -> Iterator[tuple[str, str]]:
    if report.round_trip_ms is not None:
        yield "round trip", f"{report.round_trip_ms:.2f} ms"
    if report.up_mb_s is not None:
        yield "to the program", f"{report.up_mb_s:.1f} MB/s"
    if report.down_mb_s is not None:
        each = f"{report.requests_s:.0f} responses a second of {report.body_bytes} bytes"
        yield "from the program", f"{report.down_mb_s:.1f} MB/s: {each}"


BRIDGE_HELP = """Test a program that serves pages with tools that speak HTTP/2 over TCP.

Each connection to the port starts the command on a new terminal, and carries plaintext HTTP/2 (h2c)
to it; when one ends, the other is ended. Text that the command prints is shown on stderr, with the
number of its connection.

There is no token: every user of this machine can connect, and so run the command, while the bridge
runs. So it listens on loopback only. For a browser, use `telex run`.

Port 0 chooses a free port. The first line of stdout has the address.

\b
  telex htty bridge --listen 127.0.0.1:8042 -- telex htty serve --dir .
  curl --http2-prior-knowledge http://127.0.0.1:8042/
  h2load -n 1000 -m 20 http://127.0.0.1:8042/
"""


@command.command("bridge", help=BRIDGE_HELP, context_settings={"allow_interspersed_args": False})
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=address,
    default="127.0.0.1:0",
    show_default=True,
    help="Address for the tools; loopback only.",
)
@click.option("--quiet", is_flag=True, help="Do not show the output of the commands.")
@click.option("--eager", is_flag=True, help="Send first, for programs that wait for HTTP/2.")
@program
def bridge_command(
    listen: tuple[str, int], quiet: bool, eager: bool, program: tuple[str, ...]
) -> int:
    from telex.cli import event_loop

    event_loop.run(_bridged(listen, program, eager, _Prefixed(quiet)))
    return 0


async def _bridged(
    listen: tuple[str, int], argv: tuple[str, ...], eager: bool, shown: _Prefixed
) -> None:
    from telex.htty.tools.tcp_bridge import Bridge

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    host, port = listen
    async with Bridge(
        argv, on_end=shown.ended, text=shown.text, host=host, port=port, eager=eager
    ) as bridge:
        say(f"http://{f'[{host}]' if ':' in host else host}:{bridge.port}/")
        await stop.wait()


class _Prefixed:
    """Prints lines on stderr, each with the number of its connection."""

    def __init__(self, quiet: bool, line: Callable[[str], None] = explain) -> None:
        self._quiet = quiet
        self._line = line
        self._begun: dict[int, bytes] = {}

    def text(self, number: int, data: bytes) -> None:
        if self._quiet:
            return
        *lines, rest = (self._begun.get(number, b"") + data).split(b"\n")
        self._begun[number] = rest[-4096:]  # a line may never end
        for line in lines:
            self._show(number, line)

    def ended(self, number: int, why: str) -> None:
        if rest := self._begun.pop(number, b""):
            self._show(number, rest)
        if not self._quiet:
            self._line(f"[{number}] {why}")

    def _show(self, number: int, line: bytes) -> None:
        self._line(f"[{number}] {line.rstrip(chr(13).encode()).decode('utf-8', 'replace')}")


DUMP_HELP = """Decode a transcript of a terminal into requests and responses.

FILE is a raw transcript, the typescript of `script`, or a recording of `telex record --raw`. Most
files have only the program's output, and so only responses. Files with both directions show
requests too: one of `telex record --raw --input`, two of `script --log-in` and `--log-out`, or one
of `script --log-io` with its --timing. Use `script` inside `telex run`, not around it: the output
of `telex run` has no chunks.

Of bodies, the size and the hash are shown. Broken chunks are listed with their offset in the file.
The exit code is 1 if a chunk is broken, or if there is none.

\b
  telex record --raw --input page.cast -- telex htty serve --dir .
  telex htty dump page.cast
  telex htty dump --frames out.log in.log
  telex run -- script --log-io log --log-timing times -c 'telex htty serve --dir .'
  telex htty dump --timing times log
"""


@command.command("dump", help=DUMP_HELP)
@click.option("--frames", is_flag=True, help="Show each HTTP/2 frame.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option(
    "--timing",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The timing file of `script --log-timing`.",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
def dump_command(files: tuple[Path, ...], timing: Path | None, frames: bool, as_json: bool) -> int:
    from telex.htty.tools.transcript_dump import dump, transcript_parts

    if timing is not None and len(files) > 1:
        raise click.UsageError("--timing needs exactly one FILE")
    times = timing.read_bytes() if timing else None
    found = dump([transcript_parts(file.read_bytes(), times) for file in files], frames=frames)
    if as_json:
        say(json.dumps(_object(found)))
    else:
        for line in _lines(found):
            say(line)
    if not found.chunks and not found.problems:
        explain(
            "`telex run` takes chunks out of what it shows: use `telex record --raw`, or `script` "
            "inside it"
        )
    return 1 if found.problems or not found.chunks else 0


def _lines(found: Dump) -> Iterator[str]:
    for number, session in enumerate(found.sessions):
        yield f"session {number + 1}"
        for frame in found.frames:
            if frame.session == number:
                yield f"  {_frame_line(frame)}"
                yield from (f"      {line}" for line in _header_lines(frame.frame))
        for id, stream in sorted(session.streams.items()):
            yield f"  stream {id}: {_exchange(stream)}"
        yield from (f"  GOAWAY by the {said}" for said in session.goaway)
    for problem in found.problems:
        yield f"offset {problem.offset}: {problem.sentence}"
    yield f"{found.chunks} chunks, {found.text} bytes of text, {len(found.problems)} problems"


def _exchange(stream: DumpedStream) -> str:
    request, response = stream.request, stream.response
    asked = " ".join(filter(None, [request[b":method"], request[b":path"]])) or "(request not seen)"
    status = response[b":status"] or "(no response seen)"
    kind = response[b"content-type"]
    return f"{asked}{_body(request)} -> {status}{f' {kind}' if kind else ''}{_body(response)}"


def _body(side: DumpedMessage) -> str:
    body = f", {side.size} bytes sha256:{side.sha256[:16]}" if side.size else ""
    if side.reset is not None:
        return f"{body}, reset with code {side.reset}"
    return body if side.ended or not side.headers else f"{body}, unfinished"


def _frame_line(seen: DumpedFrame) -> str:
    frame = seen.frame
    arrow = ">" if seen.sender == "terminal" else "<"
    about = " ".join(filter(None, ["+".join(frame.flags), frame.about]))
    return f"{arrow} {frame.kind} stream {frame.stream}, {frame.length} bytes {about}".rstrip()


def _header_lines(frame: DecodedFrame) -> Iterator[str]:
    for name, value in frame.headers or ():
        yield f"{_decoded(name)}: {_decoded(value)}".replace("\n", "\\n")


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _object(found: Dump) -> dict[str, object]:
    return {
        "sessions": [
            {
                "streams": [
                    {"id": id, "request": _side(one.request), "response": _side(one.response)}
                    for id, one in sorted(session.streams.items())
                ],
                "goaway": session.goaway,
            }
            for session in found.sessions
        ],
        "frames": [
            {
                "session": seen.session + 1,
                "sender": seen.sender,
                "type": seen.frame.kind,
                "stream": seen.frame.stream,
                "flags": seen.frame.flags,
                "length": seen.frame.length,
                "about": seen.frame.about,
                "headers": _pairs(seen.frame.headers or ()),
            }
            for seen in found.frames
        ],
        "problems": [{"offset": one.offset, "sentence": one.sentence} for one in found.problems],
        "chunks": found.chunks,
        "text_bytes": found.text,
    }


def _side(side: DumpedMessage) -> dict[str, object]:
    return {
        "headers": _pairs(side.headers),
        "trailers": _pairs(side.trailers),
        "bytes": side.size,
        "sha256": side.sha256 if side.size else None,
        "ended": side.ended,
        "reset": side.reset,
    }


def _pairs(headers: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
    return [[_decoded(name), _decoded(value)] for name, value in headers]
