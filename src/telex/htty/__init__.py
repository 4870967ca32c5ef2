"""Pages through a terminal: an HTTP/2 connection in chunks that no terminal shows.

A program serves a page by `htty.serve(app)`, or `htty.run(app)` without an event loop, while it
continues to print; `htty.open_stream()` gives the byte stream alone. The program is the HTTP/2
server, the terminal is the client.

    protocol        pages in terminal automation: parameters and notifications
    server          the program's side: `serve`, `run`
    support         whether this program may send a page through its terminal
    tty_stream      the program's end of the byte stream; page_tty: its terminal
    asgi            the ASGI server; asgi_messages: scopes and responses
    static_files reverse_proxy key_filter   for `telex htty serve`
    client          the terminal's side: where a connection begins and ends, and its processes
    tty_writer      bytes into the program's terminal
    session_pages   the terminal's side in an automation session
    chunk_stream    the byte stream below HTTP/2, in chunks
    errors          exceptions
    h2/ gateway/ tools/        HTTP/2; the web server for browsers; `telex htty check|bridge|dump`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.htty.h2.http2_connection import Ended as Ended
    from telex.htty.server import run as run
    from telex.htty.server import serve as serve
    from telex.htty.support import NoPages as NoPages
    from telex.htty.tty_stream import TtyStream as TtyStream
    from telex.htty.tty_stream import open_stream as open_stream

_MODULES = {
    "Ended": "h2.http2_connection",
    "NoPages": "support",
    "TtyStream": "tty_stream",
    "open_stream": "tty_stream",
    "run": "server",
    "serve": "server",
}
"""The public names, loaded on first use."""

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'telex.htty' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.htty.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
