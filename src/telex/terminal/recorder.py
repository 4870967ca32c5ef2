"""Records a live session to a file: what it prints and, if asked, what is typed into it.

The lines are `recording`'s and the file is `raw_transcript`'s: ours alone, never in the place of
another, written at once, and a full disk ends the file and not the session: the file then ends with
its last whole line, and the session tells of it. What is typed while the
terminal does not echo is not written, unless nothing is to be hidden: so are passwords typed.
"""

from __future__ import annotations

import os
import time
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from telex.processes.child_environment import TERMINAL
from telex.terminal.raw_transcript import FileFailed, open_raw
from telex.terminal.recording import Header, Recorder
from telex.terminal.telling import drawn

if TYPE_CHECKING:
    from telex.protocols.pty_automation import Record
    from telex.redaction import Redactor
    from telex.terminal.cells import Size
    from telex.terminal.session import PtySession


class SessionRecorder:
    """One recording of one session, from now on until it ends or is stopped. Making one raises
    RawTranscriptRefused, or FileFailed if there is no room for the screen as it is."""

    def __init__(
        self, session: PtySession, path: str, asked: Record, redactor: Redactor | None
    ) -> None:
        self.path = os.path.abspath(path)
        self.failure: FileFailed | None = None
        """Why it is not whole."""
        self._session = session
        self._typed = asked.input
        self._hides = redactor is not None
        self._decoder = getincrementaldecoder("utf-8")("replace")
        header = Header(
            version=asked.format,
            size=session.size,
            timestamp=int(time.time()),
            term=TERMINAL["TERM"],
            command=" ".join(session.program.argv),
        )
        self._recorder = Recorder(header, time.monotonic(), redactor)
        before = session.transcript.before(session.transcript.cursor)
        screen = drawn(session, redactor).decode()
        self._file = open_raw(self.path, lines=True)
        self._file.write(self._recorder.header())
        self._file.write(self._recorder.go_on(before, screen, time.monotonic()))
        if self._file.failure is not None:
            self._file.discard()
            raise FileFailed("recording", self.path, self._file.failure)
        self._file.on_failure = self._failed
        self._decoder.decode(session.transcript.unfinished[1])  # the next read completes it
        session.taps.add(self._output)
        session.watchers.add(self._look)
        session.typists.add(self._input)
        session.labellers.add(self._marked)
        self._size = session.size
        self._stopped = False
        self._look()

    def stop(self) -> None:
        """Write what was held back, and let go. Stopping again does nothing."""
        if self._stopped:
            return
        self._stopped = True
        self._session.taps.discard(self._output)
        self._session.watchers.discard(self._look)
        self._session.typists.discard(self._input)
        self._session.labellers.discard(self._marked)
        self._file.write(self._recorder.finish(time.monotonic()))
        self._file.close()

    def _failed(self, error: OSError) -> None:
        self.failure = FileFailed("recording", self.path, error)
        self._session.fail(self.failure)

    def _marked(self, label: str) -> None:
        self._file.write(self._recorder.marker(label, time.monotonic()))

    def _output(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        self._file.write(self._recorder.output(text, time.monotonic()))

    def _input(self, data: bytes) -> None:
        if self._typed and not (self._hides and not self._session.pty.characters().echo):
            text = data.decode("utf-8", "replace")
            self._file.write(self._recorder.input(text, time.monotonic()))

    def _look(self) -> None:
        """Something changed: was it the size, or the end?"""
        if self._session.size != self._size:
            self._resized(self._session.size)
        if (ended := self._session.exit) is not None:
            code = ended.code if ended.code is not None else 128 + (ended.signal or 0)
            self._file.write(self._recorder.exit(code, time.monotonic()))
            self.stop()

    def _resized(self, size: Size) -> None:
        self._size = size
        self._file.write(self._recorder.resize(size, time.monotonic()))
