"""The program that applies restrictions to its own process and then executes the plugin.

`restrictions` decides the restrictions and passes them as words: `python -I -S shim.py WORD… --
PATH ARGV…`. This program applies them by `telex.processes.restrict`, in the child process. It
imports nothing else of telex, because each import slows every start of a plugin. A failure is
reported on standard error, which the host shows, and the plugin starts all the same; `restrictions`
has the reason.
"""

from __future__ import annotations

import ctypes
import os
import sys


def main() -> None:
    telex = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(os.path.join(telex, "processes"))
    import restrict  # type: ignore[import-not-found]  # by its own name: see above

    end = sys.argv.index("--")
    words, (path, *argv) = restrict.split(sys.argv[1:end]), sys.argv[end + 1 :]
    for word, *rest in words:
        if word == "default":  # Python ignores some signals, and ignored signals survive exec
            ctypes.CDLL(None).signal(int(rest[0]), None)
    try:
        restrict.restrict(words)
    except OSError as error:
        restrict.say(f"this plugin runs without all of its restrictions: {error.strerror}")
    try:
        os.execve(path, argv, restrict.environment())
    except OSError as error:
        restrict.say(
            f"{path} cannot be run: {error.strerror}; check its #! line, or whether it was built "
            "for this system"
        )
    os._exit(126)


if __name__ == "__main__":
    main()
