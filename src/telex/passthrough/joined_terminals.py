"""The person's terminal and the program's, joined: the last step of both directions.

`write_to_terminal` and `write_control` end at the person's terminal, `write_to_program` ends at the
program's. Both ends push back: a slow terminal pauses the program's output, and a program that does
not read pauses the person's input.

Made by `program_run`; the filters between the two terminals write here and nowhere else.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Protocol

from telex.passthrough import limits
from telex.passthrough.person_terminal import terminal_size
from telex.passthrough.terminal_io import OutputWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from telex.passthrough.person_terminal import PersonTerminal
    from telex.terminal.cells import Size
    from telex.terminal.pty import Pty


class RunWitness(Protocol):
    """Receives a copy of all input and output before the terminals do, and changes nothing."""

    @property
    def raw(self) -> bool:
        """Whether the copy includes frames in the output and the input that a page sends."""
        ...

    def output(self, data: bytes) -> None: ...
    def input(self, data: bytes, pty: Pty) -> None: ...
    def resized(self, size: Size) -> None: ...


class JoinedTerminals:
    """The two terminals of one run.

    Args:
        own: The person's terminal, entered.
        witness: Receives a copy of the output, if given.
        output_failed: Called once if the person's terminal takes no more output.
        input_full: Called when the program leaves too much input unread.
    """

    pty: Pty
    """The program's terminal. Set when the program has been started."""

    def __init__(
        self,
        own: PersonTerminal,
        witness: RunWitness | None,
        *,
        output_failed: Callable[[OSError], None],
        input_full: Callable[[], None],
    ) -> None:
        self.size = terminal_size()
        self.person = own.shown
        """Whether a person sees the output and can be asked."""
        self._own = own
        self._witness = witness
        self._input_full = input_full
        self._pause_reasons: set[str] = set()
        """The reasons why the program's output is not read now."""
        self._batch: list[bytes] | None = None
        """Output that `batched_output` collects."""
        full, empty = partial(self.pause_output, "full"), partial(self.resume_output, "full")
        self._writer = OutputWriter(own.writing, full=full, empty=empty, broken=output_failed)

    # --- to the person's terminal

    def write_to_terminal(self, data: bytes) -> None:
        """Write output that the person sees."""
        if self._batch is not None:
            self._batch.append(data)
            return
        if self._witness is not None and not self._witness.raw:
            self._witness.output(data)
        self._own.showing(data)
        self._writer.write(data)

    def write_control(self, data: bytes) -> None:
        """Write queries and mode switches: the person does not see them, no recording has them."""
        if self._batch:
            batch, self._batch = self._batch, None
            self.write_to_terminal(b"".join(batch))
            self._batch = []
        self._writer.write(data)

    @contextlib.contextmanager
    def batched_output(self) -> Iterator[None]:
        """Collect the output of this block and write it at once, so that it is drawn at once."""
        self._batch = []
        try:
            yield
        finally:
            batch, self._batch = self._batch, None
            if batch:
                self.write_to_terminal(b"".join(batch))

    async def flushed(self) -> None:
        """Wait until the person's terminal has taken all output."""
        await self._writer.flushed()

    def pause_output(self, reason: str) -> None:
        """Stop reading the program's output until `resume_output` with the same reason."""
        self._pause_reasons.add(reason)
        self.pty.pause()

    def resume_output(self, reason: str) -> None:
        self._pause_reasons.discard(reason)
        if not self._pause_reasons:
            self.pty.resume()

    def close(self) -> None:
        """Drop the output that the person's terminal has not taken."""
        self._writer.close()

    # --- to the program

    def write_to_program(self, data: bytes) -> None:
        """Write input for the program."""
        if self._overtakes(data):
            self.pty.interrupt()
        else:
            self.pty.write(data)
        if self.pty.unsent > limits.PERSON_BYTES:
            self._input_full()

    def _overtakes(self, data: bytes) -> bool:
        """Whether this is a lone interrupt, which must not wait behind a paste that the program
        does not read.
        """
        if len(data) > 1 or not self.pty.unsent:
            return False
        characters = self.pty.line_settings()
        return characters.signals and data == characters.interrupt

    def page_input_written(self, data: bytes) -> None:
        """Report bytes of a page that were written to the program: no person typed them."""
        if self._witness is not None and self._witness.raw:
            self._witness.input(data, self.pty)
