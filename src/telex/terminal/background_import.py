"""Import a module in a daemon thread, for `automation` and `passthrough`.

At the end of the process, Python ends a daemon thread where it next needs the interpreter lock.
That is harmless in C, but re2 is C++ and releases the lock while it is loaded: there the thread's
end calls `std::terminate`, and the exit code becomes 134. So re2 is imported first, and the end of
the process waits for re2 alone: milliseconds, where the whole import takes a third of a second.
"""

from __future__ import annotations

import atexit
import threading
from importlib import import_module
from typing import Final

_WHOLE: Final = threading.Lock()
atexit.register(_WHOLE.acquire)  # never released: no import begins after this


def load_module(name: str) -> None:
    with _WHOLE:
        import_module("re2")
    import_module(name)
