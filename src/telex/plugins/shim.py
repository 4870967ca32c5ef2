"""The small program that restricts itself and becomes a plugin.

`restricting` decides everything and writes it as words: `python -I -S shim.py WORD… -- PATH ARGV…`.
This only does it, in the child, where it counts, and imports nothing of telex: every module here is
paid for with each start of a plugin. What fails is said on standard error, which the host shows,
and the plugin starts all the same; `restricting` says why.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture."""
_PATH_BENEATH = 1


def main() -> None:
    end = sys.argv.index("--")
    words, (path, *argv) = sys.argv[1:end], sys.argv[end + 1 :]
    try:
        _restrict([word.split("=", 2) for word in words])
    except OSError as error:
        _say(f"this plugin runs with fewer restrictions than it asks for: {error.strerror}")
    try:
        os.execve(path, argv, _environment())
    except OSError as error:
        _say(
            f"{path} cannot be run: {error.strerror}; check its #! line, or whether it was built "
            "for this system"
        )
    os._exit(126)


def _restrict(words: list[list[str]]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for word, *rest in words:
        if word == "default":  # Python ignores some signals, and exec keeps what is ignored
            libc.signal(int(rest[0]), None)
    _check(libc.prctl(_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))))
    for word, *rest in words:
        if word == "landlock":
            _landlock(libc, rest[0], [rest for word, *rest in words if word == "path"])
    for word, *rest in words:
        if word == "limit":
            _limit(int(rest[0]), int(rest[1]))


def _limit(number: int, wanted: int) -> None:
    """Never higher than it was."""
    held = [wanted if its == resource.RLIM_INFINITY else min(wanted, its) for its in _now(number)]
    resource.setrlimit(number, (held[0], held[1]))


def _now(number: int) -> tuple[int, int]:
    return resource.getrlimit(number)


def _landlock(libc: ctypes.CDLL, handled: str, paths: list[list[str]]) -> None:
    """The three calls of landlock(7). `handled` is struct landlock_ruleset_attr, as numbers."""
    attributes = b"".join(map(_u64, map(int, handled.split(","))))
    size = ctypes.c_size_t(len(attributes))
    ruleset = _check(libc.syscall(_CREATE_RULESET, attributes, size, 0))
    for access, path in paths:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it was there when `restricting` looked: less is reachable, not more
            continue
        # struct landlock_path_beneath_attr is packed.
        rule = _u64(int(access)) + beneath.to_bytes(4, sys.byteorder)
        _check(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        os.close(beneath)
    _check(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _u64(number: int) -> bytes:
    return number.to_bytes(8, sys.byteorder)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _environment() -> dict[bytes, bytes]:
    """As it was given to us: without a locale, Python sets LC_CTYPE for itself."""
    environment = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read()
    except OSError:
        return environment
    if b"\0LC_CTYPE=" not in b"\0" + given:
        environment.pop(b"LC_CTYPE", None)
    return environment


def _say(what: str) -> None:
    os.write(2, f"telex: {what}\n".encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main()
