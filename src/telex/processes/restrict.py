"""Applies the restrictions of a sandbox to the calling process, before it execs a program.

`sandbox` decides everything and encodes it as words; this module, in the child, only applies them.
It imports nothing of telex and little else, because every import delays each start. Two small
programs use it: `reaper`, which starts a restricted command, and the shim that execs a plugin.
"""

from __future__ import annotations

import ctypes
import os
import sys

_SET_SECCOMP, _FILTER = 22, 2
_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""These numbers are the same on every architecture."""
_PATH_BENEATH = 1
_CAPABILITY_VERSION = 0x20080522
_INSTRUCTION_BYTES = 8

Words = list[list[str]]


def split(words: list[str]) -> Words:
    """Split each word at `=`. A path is the last part of its word, and may contain `=`."""
    return [word.split("=", 2) for word in words]


def restrict(words: Words) -> None:
    """Apply all restrictions. Raises `OSError`; restrictions applied before the error remain."""
    import resource  # before Landlock, which may block the import; not needed without words

    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))))
    for (handled,) in _of("landlock", words):
        _landlock(libc, handled, _of("path", words))
    for number, value in _of("limit", words):
        held = _lower(int(value), resource.getrlimit(int(number)), resource.RLIM_INFINITY)
        resource.setrlimit(int(number), held)
    for (kept,) in _of("capabilities", words):
        _keep_capabilities(libc, int(kept))
    for (program,) in _of("filter", words):  # last: the filter may refuse calls made above
        _filter(libc, bytes.fromhex(program))


def _of(name: str, words: Words) -> Words:
    return [rest for word, *rest in words if word == name]


def _landlock(libc: ctypes.CDLL, handled: str, paths: Words) -> None:
    """Make the three calls of landlock(7).

    `handled` is struct landlock_ruleset_attr, as numbers.
    """
    attributes = b"".join(map(_u64, map(int, handled.split(","))))
    size = ctypes.c_size_t(len(attributes))
    ruleset = _check(libc.syscall(_CREATE_RULESET, attributes, size, 0))
    for access, path in paths:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # removed since `sandbox` checked: less is reachable, not more
            continue
        # struct landlock_path_beneath_attr is packed.
        rule = _u64(int(access)) + beneath.to_bytes(4, sys.byteorder)
        _check(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        os.close(beneath)
    _check(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _lower(wanted: int, now: tuple[int, int], unlimited: int) -> tuple[int, int]:
    """Return the new limits, never higher than the current ones."""
    soft, hard = (wanted if its == unlimited else min(wanted, its) for its in now)
    return soft, hard


def _keep_capabilities(libc: ctypes.CDLL, kept: int) -> None:
    """Drop all capabilities but these.

    `no_new_privs` prevents exec from giving them back to root.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(libc.capget(header, sets))
    for at in range(6):  # effective, permitted, inheritable: the low halves, then the high ones
        sets[at] &= kept if at < 3 else kept >> 32
    _check(libc.capset(header, sets))


def _filter(libc: ctypes.CDLL, program: bytes) -> None:
    """Install a filter by struct sock_fprog: a 2-byte count padded to 8 bytes, and a pointer."""
    instructions = ctypes.create_string_buffer(program, len(program))
    count = len(program) // _INSTRUCTION_BYTES
    both = (ctypes.c_uint64 * 2)(count, ctypes.addressof(instructions))
    nothing = ctypes.c_ulong(0)
    _check(libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), both, nothing, nothing))


def _u64(number: int) -> bytes:
    return number.to_bytes(8, sys.byteorder)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def environment() -> dict[bytes, bytes]:
    """Return the environment we were given: without a locale, Python sets LC_CTYPE for itself."""
    ours = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as file:
            whole = file.read().split(b"\0")
    except OSError:  # no /proc: an extra locale variable is better than no program
        return ours
    ours.pop(b"LC_CTYPE", None)
    for given in whole:
        if given.startswith(b"LC_CTYPE="):
            ours[b"LC_CTYPE"] = given.removeprefix(b"LC_CTYPE=")
    return ours


def say(what: str) -> None:
    os.write(2, f"telex: {what}\n".encode("utf-8", "surrogateescape"))
