"""The person's terminal, or the pipes and files in its place; and its termios modes.

`take` makes the terminal raw, so that every key reaches the child. `give_back` restores it, on
every way out, because a `PersonTerminal` is entered by a `with`. If telex is killed, the guardian
restores the terminal and undoes the modes that the program has set: `showing` finds these modes in
the output, or `undone_by` sets the bytes that the guardian writes.

Modes are lists as `termios.tcgetattr` returns them, and never changed in place: `raw_modes` are for
the person's terminal while it is taken, `child_modes` for the child's terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import signal
import struct
import termios
from typing import TYPE_CHECKING, Any, Final

from telex.passthrough.terminal_io import reopened_nonblocking
from telex.processes import guardian
from telex.processes.ledger import TerminalState, encode_modes
from telex.terminal.cells import Size

if TYPE_CHECKING:
    from telex.terminal.pty import Pty


STDIN, STDOUT, STDERR = 0, 1, 2


class PersonTerminal:
    """Our stdin and stdout. Enter it; `reading` and `writing` are then non-blocking."""

    def __init__(self) -> None:
        self.typed = os.isatty(STDIN)
        """Whether stdin is a terminal."""
        self.shown = is_shown()
        """Whether output is drawn on a terminal that is raw meanwhile."""
        self.found = self._modes()
        """The modes of the terminal at start; None if there is no terminal."""
        self.reading = self.writing = -1
        self._taken = False
        self._tracker = ModeTracker()
        self.undo = b""
        """The bytes that undo the output so far."""
        self._held = False
        """Whether the guardian can reach the terminal."""
        self._open = contextlib.ExitStack()

    def __enter__(self) -> PersonTerminal:
        with self._open as opening:
            self.reading = opening.enter_context(reopened_nonblocking(STDIN, os.O_RDONLY))
            self.writing = opening.enter_context(reopened_nonblocking(STDOUT, os.O_WRONLY))
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._open:
            self.give_back()
            if self._held:
                guardian.drop_terminal()

    def take(self) -> None:
        """Make the terminal raw. In the background this stops us until we are in the foreground."""
        if self.typed and self.found is not None:
            self._taken = True  # first: a signal between the two must not leave the terminal raw
            wanted = raw_modes(self.found, output=self.shown)
            self._hold()
            self._note()
            termios.tcsetattr(STDIN, termios.TCSANOW, wanted)

    def give_back(self) -> None:
        """Restore the modes. Unread input is kept, and nothing here can block."""
        if not self._taken:
            return
        self._taken = False
        guardian.note_terminal(None)
        # A terminal that hung up needs no restore. If we are in the background, the terminal
        # belongs to the shell again, which has set its own modes.
        with contextlib.suppress(OSError, termios.error):
            if self.found is not None and os.tcgetpgrp(STDIN) == os.getpgrp():
                termios.tcsetattr(STDIN, termios.TCSANOW, self.found)

    def showing(self, data: bytes) -> None:
        """Track the modes in output that is being written to the terminal."""
        if self.shown and self._tracker.feed(data):
            self.undone_by(self._tracker.undo())

    def undone_by(self, undo: bytes) -> None:
        """Set the bytes by which the guardian undoes the output so far."""
        if undo != self.undo:
            self.undo = undo
            if self._taken:
                self._note()

    def _hold(self) -> None:
        """Hand the terminal to the guardian. Without a guardian, a kill leaves the terminal raw."""
        if not self._held:
            with contextlib.suppress(guardian.GuardianFailed):
                guardian.hold_terminal(STDIN)
                self._held = True

    def _note(self) -> None:
        if self._held and self.found is not None:
            taken = raw_modes(self.found, output=self.shown)
            guardian.note_terminal(TerminalState.of(self.found, taken, self.undo))

    def child_modes(self) -> str:
        """Return the modes of the child's terminal, encoded for `session_leader`; empty if there is
        no terminal to take them from.
        """
        if self.found is None:
            return ""
        return encode_modes(child_modes(self.found, typed=self.typed, shown=self.shown))

    def _modes(self) -> TermiosModes | None:
        for fd in (STDIN, STDOUT, STDERR):
            with contextlib.suppress(termios.error):
                return termios.tcgetattr(fd)
        return None


def is_shown() -> bool:
    return os.isatty(STDIN) and os.isatty(STDOUT)


def terminal_size() -> Size:
    """Return the size of the terminal on stdout, stdin or stderr; else the default size."""
    for fd in (STDOUT, STDIN, STDERR):
        with contextlib.suppress(OSError):
            packed = fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8)
            rows, cols, width, height = struct.unpack("4H", packed)
            if rows and cols:
                return Size(rows, cols, width, height)
    return Size()


TermiosModes = list[Any]
"""iflag, oflag, cflag, lflag, two speeds, and the list of control characters."""

IFLAG, OFLAG, CFLAG, LFLAG, CC = 0, 1, 2, 3, 6

_INPUT: Final = (
    termios.IGNBRK
    | termios.BRKINT
    | termios.PARMRK
    | termios.ISTRIP
    | termios.INLCR
    | termios.IGNCR
    | termios.ICRNL
    | termios.IXON
)
_LOCAL: Final = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN


def raw_modes(modes: TermiosModes, *, output: bool) -> TermiosModes:
    """Return raw modes: every key is passed as a byte, and the child's terminal interprets it.

    With `output`, output is not processed either. Without it (our output goes elsewhere, and other
    processes on the terminal still write plain lines), a newline keeps its carriage return.
    """
    wanted = _copied(modes)
    wanted[IFLAG] &= ~_INPUT
    wanted[LFLAG] &= ~_LOCAL
    if output:
        wanted[OFLAG] &= ~termios.OPOST
    wanted[CFLAG] = wanted[CFLAG] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    wanted[CC][termios.VMIN], wanted[CC][termios.VTIME] = 1, 0
    return wanted


def child_modes(modes: TermiosModes, *, typed: bool, shown: bool) -> TermiosModes:
    """Return the modes of the child's terminal, from those of the person's before it was raw.

    Input from a file or pipe is not echoed, and output to a file or pipe gets no carriage returns,
    so that a pipeline receives exactly what the program wrote.
    """
    wanted = _copied(modes)
    if not typed:
        wanted[LFLAG] &= ~termios.ECHO
    if not shown:
        wanted[OFLAG] &= ~termios.ONLCR
    return wanted


def _copied(modes: TermiosModes) -> TermiosModes:
    return [*modes[:CC], list(modes[CC])]


def person_shell() -> str:
    """Return the person's shell: SHELL, else that of the account, else /bin/sh. A path that cannot
    be run is skipped.
    """
    try:
        account = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:  # a user id without an account, as in containers
        account = ""
    for shell in (os.environ.get("SHELL", ""), account):
        if os.path.isabs(shell) and os.path.isfile(shell) and os.access(shell, os.X_OK):
            return shell
    return "/bin/sh"


# Tracks the modes that a program has set on a terminal, and makes the bytes that undo them.
#
# It keeps no screen: output costs one search for escape sequences. The guardian writes these bytes
# if telex is killed. When telex is not killed, the program resets its modes itself, or leaves them
# set on purpose. Sans-IO; used by `person_terminal`.


_SEQUENCE: Final = re.compile(
    rb"\x1b(?!\[[0-9;:]*+[mHKJABCDGd])(?:\[(?:"  # colours and moves, by far the most, set no mode
    rb"\?(?P<private>[0-9;]*+)(?P<switch>[hl])"
    rb"|(?P<keyboard>[<>=])(?P<flags>[0-9;:]*)(?P<kind>[um])"
    rb"|(?P<shape>[0-9]*) q"
    rb"|(?P<title>2[23])(?P<which>(?:;[0-9]*)*)t"
    rb"|(?P<margins>[0-9;]*+)r"
    rb"|(?P<ansi>[0-9;]*+)(?P<set>[hl])"
    rb")|(?P<short>[=>c])|\](?P<colour>4|1[0-9]|8);)"
)
_CUT: Final = re.compile(rb"\x1b(?:\[[0-9;:?<=>]*[ !]?|\][0-9]*)?\Z")
"""A sequence that continues in the next bytes."""
_LONGEST: Final = 64
_ALTERNATE: Final = (47, 1047, 1049)
_USUALLY_ON: Final = frozenset((7, 8, 25))
"""Autowrap, autorepeat, the cursor."""
_KEPT: Final = frozenset((3, 12, 40, 1048))
"""Not undone: the width, which would clear the screen; the blinking cursor; the saved cursor."""
_MODES: Final = 64
"""The most modes and titles to remember."""
_RESETS: Final = {
    4: b"104",
    8: b"8;;",
    **{number: b"%d" % (100 + number) for number in range(10, 20)},
}
"""The OSC that undoes each OSC; an open hyperlink is closed."""
_CANCEL: Final = b"\x18"
"""Ends a sequence that was cut when telex was killed."""


class ModeTracker:
    """Tracks the modes of one terminal. `feed` it all output; `undo` returns the bytes."""

    def __init__(self) -> None:
        self._cut = b""
        self._begin()

    def _begin(self) -> None:
        self._private: dict[int, bool] = {}
        self._ansi: set[int] = set()
        self._pushed = {False: 0, True: 0}
        """Pushed keyboard flags, on the primary and on the alternate screen: each has its stack."""
        self._flags = self._other_keys = self._shaped = self._keypad = self._margins = False
        self._titles: list[bytes] = []
        self._changed: set[int] = set()

    def feed(self, data: bytes) -> bool:
        """Read output. Return whether the result of `undo` may have changed."""
        if self._cut:
            data, self._cut = self._cut + data, b""
        if b"\x1b" not in data:
            return False
        if (cut := _CUT.search(data, max(0, len(data) - _LONGEST))) is not None:
            self._cut = cut[0]
        seen = False
        for found in _SEQUENCE.finditer(data):
            seen = True
            self._take(found)
        return seen

    def undo(self) -> bytes:
        """Return the bytes that reset all set modes; empty if none is set."""
        alternate = self._alternate
        parts = [self._keyboard(alternate)]
        parts += [b"\x1b[?%dl" % mode for mode in _ALTERNATE if self._private.get(mode)]
        parts += [self._keyboard(False)] if alternate else []
        parts += [
            b"\x1b[?%d%c" % (mode, b"h" if mode in _USUALLY_ON else b"l")
            for mode, on in self._private.items()
            if on != (mode in _USUALLY_ON) and mode not in _ALTERNATE
        ]
        parts += [b"\x1b[%dl" % mode for mode in sorted(self._ansi)]
        parts += [b"\x1b[>4m"] if self._other_keys else []
        parts += [b"\x1b[0 q"] if self._shaped else []
        parts += [b"\x1b>"] if self._keypad else []
        parts += [b"\x1b7\x1b[r\x1b8"] if self._margins else []
        parts += [b"\x1b]%b\x1b\\" % _RESETS[number] for number in sorted(self._changed)]
        parts += [b"\x1b[23%bt" % which for which in reversed(self._titles)]
        undo = b"".join(parts)
        return _CANCEL + undo + b"\x1b(B\x0f\x1b[m" if undo else b""

    @property
    def _alternate(self) -> bool:
        return any(self._private.get(mode) for mode in _ALTERNATE)

    def _keyboard(self, alternate: bool) -> bytes:
        count = self._pushed[alternate]
        return (b"\x1b[<%du" % count if count else b"") + (b"\x1b[=0u" if self._flags else b"")

    def _take(self, found: re.Match[bytes]) -> None:
        match found.lastgroup:
            case "switch":
                for mode in _numbers(found["private"]):
                    if mode not in _KEPT and (mode in self._private or len(self._private) < _MODES):
                        self._private[mode] = found["switch"] == b"h"
            case "kind":
                self._take_keyboard(found)
            case "shape":
                self._shaped = found["shape"] not in (b"", b"0")
            case "which":
                self._take_title(found["title"], found["which"])
            case "margins":
                self._margins = found["margins"] != b""
            case "set":
                self._ansi |= {mode for mode in _numbers(found["ansi"]) if mode in (4, 20)}
                if found["set"] == b"l":
                    self._ansi -= set(_numbers(found["ansi"]))
            case "short":
                self._take_short(found["short"])
            case _:
                self._changed.add(int(found["colour"]))

    def _take_keyboard(self, found: re.Match[bytes]) -> None:
        first, *_ = [*_numbers(found["flags"]), 0]
        match found["keyboard"], found["kind"]:
            case b">", b"u":
                self._pushed[self._alternate] += 1
            case b"<", b"u":
                left = self._pushed[self._alternate] - max(1, first)
                self._pushed[self._alternate] = max(0, left)
            case b"=", b"u":
                self._flags = first != 0
            case b">", b"m" if first == 4:
                self._other_keys = len(_numbers(found["flags"])) > 1
            case _:
                pass

    def _take_title(self, action: bytes, which: bytes) -> None:
        if action == b"22":
            self._titles = [*self._titles, which][-_MODES:]
        elif self._titles:
            self._titles.pop()

    def _take_short(self, letter: bytes) -> None:
        if letter == b"c":
            self._begin()  # RIS resets everything
        else:
            self._keypad = letter == b"="


def _numbers(parameters: bytes) -> list[int]:
    return [int(one) for one in re.split(rb"[;:]", parameters) if one and len(one) < 6]


# Stops telex when the program stops, and continues both.
#
# Ctrl-Z is a byte like any other. It goes to the child's terminal, whose line discipline turns it
# into a signal. The program may ignore it, handle it, or stop. If the program stops, its session
# leader stops too, and SIGCHLD reports that to us. Then the person's shell must get its terminal
# back. The shell takes it when its own job stops, so we stop our whole process group: a script that
# runs telex stops as well.


def has_stopped(pid: int) -> bool:
    """Whether a child has stopped since the last call. Does not consume its exit status."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    except ChildProcessError:
        return False  # it has exited and was reaped


def stop_process_group() -> None:
    """Stop our process group. Returns when it is continued.

    If no shell could continue us (`xterm -e telex run …`), the kernel does not stop us, and the
    program continues at once, as it would without telex.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.signal(signal.SIGCONT, signal.SIG_IGN)  # ignored or not, it continues us
        os.killpg(0, signal.SIGTSTP)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def relay_signal(pty: Pty, number: int) -> None:
    """Send a signal on to the foreground process group of the child's terminal."""
    group = pty.foreground()
    if group and pty.child.exit is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def continue_program(pty: Pty) -> None:
    """Continue a stopped program, and let it draw again, by a SIGWINCH."""
    if pty.child.exit is None:
        os.kill(pty.child.pid, signal.SIGCONT)
        relay_signal(pty, signal.SIGWINCH)
