"""`telex htty serve`: serve an app, a directory or a local server through this terminal."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli.configuration import load_config
from telex.cli.console import explain

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from telex.htty.h2.http2_connection import Ended
    from telex.htty.tty_stream import TtyStream

HELP = """Serve a page through this terminal.

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


@click.command(help=HELP)
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
def command(
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
