"""The seccomp filter of a confined child: which system calls it cannot make. Pure.

A filter is a program of classic BPF that the kernel runs before each call, with the call's number,
the architecture it was made for, and its six arguments. It cannot follow a pointer, so it decides
by kinds of calls and of sockets; paths are checked by Landlock. Used by `sandbox`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALL, _KIND, _ARGUMENTS = 0, 4, 16
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _AT_LEAST = 0x15, 0x35
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _EACCES = 1, 13
_OTHER_CALLS: Final = 0x40000000
"""From here on, x86_64 has a second set of calls under other numbers (x32)."""
_STREAM, _PACKETS, _TYPE = 1, 5, 0xF
"""Types of pairs that stay connected to each other. A datagram socket can be connected again."""
_IPV4, _IPV6, _NETLINK, _ROUTES = 2, 10, 16, 0
_FAMILY: Final = 0xFF00
"""The bits of an ioctl's number that name its driver or file system."""
_FILE_FAMILIES: Final = {
    "f": ord("f") << 8,  # flags, ext4, fscrypt, fsverity
    "v": ord("v") << 8,  # the version of a file
    "X": ord("X") << 8,  # XFS, and attributes of other file systems
    "r": ord("r") << 8,  # FAT
    "btrfs": 0x94 << 8,
    "f2fs": 0xF5 << 8,
}
"""Families that change the metadata of a file, by a descriptor that is open for reading only."""
_FILE_READING: Final = {
    "FS_IOC_GETFLAGS": 0x80086601,
    "FS_IOC32_GETFLAGS": 0x80046601,
    "FS_IOC_GETVERSION": 0x80087601,
    "FS_IOC32_GETVERSION": 0x80047601,
    "FS_IOC_FSGETXATTR": 0x801C581F,
    "FS_IOC_FIEMAP": 0xC020660B,
    # A copy that shares its blocks. The descriptor is open for writing, so Landlock has checked it.
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
}
"""The calls of these families that change nothing. All others are refused."""


class Sockets(Enum):
    """The kinds of sockets that a child may create."""

    ALL = "all"
    INTERNET = "internet"
    """IPv4 and IPv6, and the kernel's own about interfaces, which name lookup uses. No others:
    through a local socket, a container engine, a session bus or a key agent would do what the child
    may not."""
    NONE = "none"
    """Only pairs that are connected to each other."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The numbers of system calls of one architecture."""

    kind: int
    """AUDIT_ARCH_*. Calls of another architecture have other numbers, so they are not allowed."""
    socket: int
    socketpair: int
    refused: Mapping[str, int]
    own_only: Mapping[str, tuple[int, int]]
    """Calls about a process, by the argument that names it: 0 is the caller. They change another
    process's limits, processors or scheduling, although a signal to it is refused."""
    own_kind: Mapping[str, tuple[int, int]]
    """Calls about a process, a group or all processes of a user, by the first argument's value for
    a process. The second argument names it, and 0 is the caller, its group or its user."""
    ioctl: int
    has_other_calls: bool = False


_EVERYWHERE: Final = {
    # Its queues open sockets, and a filter cannot see the entries in them.
    "io_uring_setup": 425,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
_GENERIC: Final = {
    **_EVERYWHERE,
    "fchmod": 52,
    "fchmodat": 53,
    "fchownat": 54,
    "fchown": 55,
    "utimensat": 88,
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "removexattr": 14,
    "lremovexattr": 15,
    "fremovexattr": 16,
    # Landlock before version 3 does not check it.
    "truncate": 45,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "shmget": 194,
    "shmat": 196,
    "semget": 190,
    "msgget": 186,
    "mq_open": 180,
    # The id of another program's object is easily guessed, so the object need not be opened.
    "shmctl": 195,
    "semop": 193,
    "semtimedop": 192,
    "semctl": 191,
    "msgsnd": 189,
    "msgrcv": 188,
    "msgctl": 187,
    "mq_unlink": 181,
    "mq_timedsend": 182,
    "mq_timedreceive": 183,
    "mq_notify": 184,
    "mq_getsetattr": 185,
    "perf_event_open": 241,
    "open_by_handle_at": 265,
    "bpf": 280,
    "userfaultfd": 282,
}
_X86_64: Final = {
    **_EVERYWHERE,
    "chmod": 90,
    "fchmod": 91,
    "fchmodat": 268,
    "chown": 92,
    "fchown": 93,
    "lchown": 94,
    "fchownat": 260,
    "utime": 132,
    "utimes": 235,
    "futimesat": 261,
    "utimensat": 280,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "lremovexattr": 198,
    "fremovexattr": 199,
    "truncate": 76,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "shmget": 29,
    "shmat": 30,
    "semget": 64,
    "msgget": 68,
    "mq_open": 240,
    # The id of another program's object is easily guessed, so the object need not be opened.
    "shmctl": 31,
    "semop": 65,
    "semtimedop": 220,
    "semctl": 66,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "mq_unlink": 241,
    "mq_timedsend": 242,
    "mq_timedreceive": 243,
    "mq_notify": 244,
    "mq_getsetattr": 245,
    "perf_event_open": 298,
    "open_by_handle_at": 304,
    "bpf": 321,
    "userfaultfd": 323,
}
_GENERIC_OWN: Final = {
    "prlimit64": (261, 0),
    "sched_setaffinity": (122, 0),
    "sched_setscheduler": (119, 0),
    "sched_setparam": (118, 0),
    "sched_setattr": (274, 0),
    "migrate_pages": (238, 0),
    "move_pages": (239, 0),
}
_GENERIC_KIND: Final = {"setpriority": (140, 0), "ioprio_set": (30, 1)}
_X86_64_OWN: Final = {
    "prlimit64": (302, 0),
    "sched_setaffinity": (203, 0),
    "sched_setscheduler": (144, 0),
    "sched_setparam": (142, 0),
    "sched_setattr": (314, 0),
    "migrate_pages": (256, 0),
    "move_pages": (279, 0),
}
_X86_64_KIND: Final = {"setpriority": (141, 0), "ioprio_set": (251, 1)}
MACHINES: Final = {
    "x86_64": Machine(
        0xC000003E, 41, 53, _X86_64, _X86_64_OWN, _X86_64_KIND, 16, has_other_calls=True
    ),
    "aarch64": Machine(0xC00000B7, 198, 199, _GENERIC, _GENERIC_OWN, _GENERIC_KIND, 29),
    "riscv64": Machine(0xC00000F3, 198, 199, _GENERIC, _GENERIC_OWN, _GENERIC_KIND, 29),
}


def filter_of(machine: str, sockets: Sockets) -> bytes:
    """Return the program that refuses the calls that no confined child may make.

    All these architectures are little-endian, so an argument's low half comes first.
    """
    here = MACHINES[machine]
    refuse, deny, kill = _REFUSE | _EPERM, _REFUSE | _EACCES, _KILL
    program = [
        _bpf(_LOAD, _KIND),
        _bpf(_EQUAL, here.kind, yes=1),
        _bpf(_RETURN, kill),
        _bpf(_LOAD, _CALL),
    ]
    if here.has_other_calls:
        program += [_bpf(_AT_LEAST, _OTHER_CALLS, no=1), _bpf(_RETURN, kill)]
    for number in here.refused.values():
        program += [_bpf(_EQUAL, number, no=1), _bpf(_RETURN, refuse)]
    for number, argument in here.own_only.values():
        only = _own(argument, refuse)
        program += [_bpf(_EQUAL, number, no=len(only)), *only]
    for number, kind in here.own_kind.values():
        only = _own_kind(kind, refuse)
        program += [_bpf(_EQUAL, number, no=len(only)), *only]
    only = _ioctl(refuse)
    program += [_bpf(_EQUAL, here.ioctl, no=len(only)), *only]
    if sockets is not Sockets.ALL:
        for number, only in (
            (here.socketpair, _pairs(deny)),
            (here.socket, _sockets(sockets, deny)),
        ):
            program += [_bpf(_EQUAL, number, no=len(only)), *only]
    return b"".join([*program, _bpf(_RETURN, _ALLOW)])


def _own(argument: int, refuse: int) -> list[bytes]:
    return [
        _bpf(_LOAD, _ARGUMENTS + 8 * argument),
        _bpf(_EQUAL, 0, yes=1),
        _bpf(_RETURN, refuse),
        _bpf(_RETURN, _ALLOW),
    ]


def _own_kind(kind: int, refuse: int) -> list[bytes]:
    return [
        _bpf(_LOAD, _ARGUMENTS),
        _bpf(_EQUAL, kind, yes=1),
        _bpf(_RETURN, refuse),
        *_own(1, refuse),
    ]


def _ioctl(refuse: int) -> list[bytes]:
    program = [_bpf(_LOAD, _ARGUMENTS + 8)]
    for number in _FILE_READING.values():
        program += [_bpf(_EQUAL, number, no=1), _bpf(_RETURN, _ALLOW)]
    program.append(_bpf(_AND, _FAMILY))
    for family in _FILE_FAMILIES.values():
        program += [_bpf(_EQUAL, family, no=1), _bpf(_RETURN, refuse)]
    return [*program, _bpf(_RETURN, _ALLOW)]


def _pairs(deny: int) -> list[bytes]:
    return [
        _bpf(_LOAD, _ARGUMENTS + 8),
        _bpf(_AND, _TYPE),
        _bpf(_EQUAL, _STREAM, yes=2),
        _bpf(_EQUAL, _PACKETS, yes=1),
        _bpf(_RETURN, deny),
        _bpf(_RETURN, _ALLOW),
    ]


def _sockets(sockets: Sockets, deny: int) -> list[bytes]:
    if sockets is Sockets.NONE:
        return [_bpf(_RETURN, deny)]
    return [
        _bpf(_LOAD, _ARGUMENTS),
        _bpf(_EQUAL, _IPV4, yes=5),
        _bpf(_EQUAL, _IPV6, yes=4),
        _bpf(_EQUAL, _NETLINK, no=2),
        _bpf(_LOAD, _ARGUMENTS + 16),
        _bpf(_EQUAL, _ROUTES, yes=1),
        _bpf(_RETURN, deny),
        _bpf(_RETURN, _ALLOW),
    ]


def _bpf(code: int, operand: int, *, yes: int = 0, no: int = 0) -> bytes:
    """Encode struct sock_filter. A jump skips `yes` or `no` instructions, by its comparison."""
    return b"".join(
        number.to_bytes(size, "little")
        for number, size in ((code, 2), (yes, 1), (no, 1), (operand, 4))
    )
