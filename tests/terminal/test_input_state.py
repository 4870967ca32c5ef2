"""The input that a program waits for: the answers that need no detection."""

from __future__ import annotations

import os
import signal

from telex.terminal.actions import Text
from telex.terminal.pty import Program
from telex.terminal.session import PtySession
from telex.terminal.waits.matchers import ContainsText


async def test_an_exited_program_wants_no_input_also_after_its_session_was_closed() -> None:
    async with PtySession(Program(("true",))) as session:
        await session.ended()
        assert session.input_state().state == "exited"
        assert not session.input_state().waiting
    assert session.input_state().state == "exited"


async def test_a_stopped_program_is_stopped_until_it_continues() -> None:
    async with PtySession(Program(("sh", "-c", "echo begun; exec cat"))) as session:
        await session.wait(ContainsText("begun"))
        os.kill(session.pty.child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, session.pty.child.pid, os.WSTOPPED | os.WNOWAIT)
        assert session.input_state().state == "stopped"
        os.kill(session.pty.child.pid, signal.SIGCONT)
        mark = await session.act(Text("back\n"))
        await session.wait(ContainsText("back\nback"), since=mark)
        assert session.input_state().state != "stopped"
