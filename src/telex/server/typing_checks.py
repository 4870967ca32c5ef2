"""Looks at a session for a client that judges before it types, and again before each input.

`typing_facts` is what the client judges by. `InputCheck` runs in the step of the event loop in
which the input is written, so that nothing of this process can come between. A program may still
change what it reads after the bytes are written; no terminal can take a byte back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from telex.automation import protocol as spec
from telex.automation.screen_text import one_line
from telex.automation.verb_protocol import TypingFacts
from telex.processes import proc
from telex.rpc.errors import RpcError

if TYPE_CHECKING:
    from telex.automation.verb_protocol import ExpectedFacts
    from telex.redaction import Redactor
    from telex.server.verb_sessions import VerbSession
    from telex.terminal.actions import Action
    from telex.terminal.input_state import InputState
    from telex.terminal.session import PtySession

_SENTENCES = {
    "inputs": "somebody else has used the terminal since",
    "program": "another program reads the terminal now",
    "password": "the program asks for a password now",
    "state": "the program waits for something else now",
}


def typing_facts(
    one: VerbSession,
    state: InputState,
    row: str,
    holder: str | None,
    redactor: Redactor,
) -> TypingFacts:
    """Return who reads the next input of a session. `state` and `row` are masked already."""
    session = one.session
    group = session.pty.foreground()
    executable, arguments, cwd = ("", "", "") if group is None else _process(group)
    return TypingFacts(
        name=one.name,
        id=one.id,
        program=one.program,
        exited=session.exit is not None,
        input=state,
        row=row,
        inputs=session.inputs.count,
        group=group,
        root=session.pty.child.pid,
        executable=executable,
        arguments=one_line(redactor.redact(arguments)),
        cwd=cwd,
        bracketed_paste=session.screen.bracketed_paste,
        holder=holder,
    )


def _process(pid: int) -> tuple[str, str, str]:
    """Return the file that a process runs, its command line and its directory; empty where the
    kernel does not tell."""
    try:
        words = proc.read(pid, "cmdline").decode("utf-8", "replace").rstrip("\0").split("\0")
        cwd = proc.link(pid, "cwd")
        cwd.encode()  # a directory that JSON cannot carry is an unknown one
        return proc.link(pid, "exe"), " ".join(words), cwd
    except (OSError, UnicodeEncodeError):
        return "", "", ""


class InputCheck:
    """Refuses the inputs of one verb when what was expected does not hold any more."""

    def __init__(self, expected: ExpectedFacts) -> None:
        self._expected = expected
        self._sent = 0

    def __call__(self, session: PtySession, action: Action) -> None:
        """Raises RpcError."""
        expected = self._expected
        if session.inputs.count != expected.inputs + self._sent:
            _refuse("inputs")
        if expected.group is not None and session.pty.foreground() != expected.group:
            _refuse("program")
        allowed = expected.states
        if session.pty.hides_typing() and "password" not in allowed:
            _refuse("password")
        if not self._sent:
            state = session.input_state().state
            if state == "password" and "password" not in allowed:
                _refuse("password")
            if allowed and state not in allowed:
                _refuse("state")
        self._sent += 1


def _refuse(what: str) -> NoReturn:
    sentence = f"{_SENTENCES[what]}; nothing more was typed"
    raise RpcError(spec.PERMISSION_DENIED, sentence, {"changed": what})
