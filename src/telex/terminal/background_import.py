"""Loading a module in a daemon thread that nobody waits for: `automation` and `passthrough` use it.

When the process ends, Python ends such a thread where it next wants the interpreter. In C that
does no harm, but re2 is C++, and gives the interpreter away while it is loaded: there it would be
`std::terminate`, and exit code 134 for a program that did well. So re2 is loaded first, by itself,
and the end of the process waits for that: milliseconds, where all of it takes a third of a second.
"""

from __future__ import annotations

import atexit
import threading
from importlib import import_module
from typing import Final

_WHOLE: Final = threading.Lock()
atexit.register(_WHOLE.acquire)  # for good: who has not begun by then does not begin


def load_module(name: str) -> None:
    with _WHOLE:
        import_module("re2")
    import_module(name)
