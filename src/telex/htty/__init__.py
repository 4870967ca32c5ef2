"""Pages through a terminal: an HTTP/2 connection in chunks that no terminal shows.

Above `escapes`, which is how a program asks whether anybody would show its page. A program serves
one by `htty.serve(app)`, or `htty.run(app)` without an event loop, while it goes on printing; the
bytes alone are `htty.open_stream()`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.htty.http2 import Ended as Ended
    from telex.htty.opening import open_stream as open_stream
    from telex.htty.serving import run as run
    from telex.htty.serving import serve as serve
    from telex.htty.support import NoPages as NoPages
    from telex.htty.tty_stream import TtyStream as TtyStream

_PLACES = {
    "Ended": "http2",
    "NoPages": "support",
    "TtyStream": "tty_stream",
    "open_stream": "opening",
    "run": "serving",
    "serve": "serving",
}
"""What a program needs, loaded when it is first used."""

__all__ = ["Ended", "NoPages", "TtyStream", "open_stream", "run", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'telex.htty' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.htty.{_PLACES[name]}"), name)
