"""Attachments: the output of a session as it is printed, with flow control.

    async with term.attach() as output:
        async for chunk in output: ...

Made by `Terminal.attach` and `AsyncTerminal.attach`.
"""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any, TypeVar

from telex import match
from telex.automation import protocol as spec
from telex.automation.arguments import checks_arguments
from telex.automation.client import DAY_SECONDS
from telex.automation.errors import SessionClosed, SessionProblem, TimedOut
from telex.automation.portal import OpenedTwice, hides_frames

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from telex.automation.caller import OutputChunk
    from telex.automation.client import AsyncTerminal
    from telex.automation.portal import Portal
    from telex.automation.protocol import Matched

T = TypeVar("T")
__tracebackhide__ = hides_frames


@checks_arguments
class AsyncAttachment:
    """The output of a session as it is printed, with flow control. Made by `Terminal.attach`.

    Enter it with `async with`, then iterate over it for `OutputChunk`s. The first chunk draws the
    current screen. Asking for the next chunk grants the server credit for the ones before; at most
    `credit` bytes are on the way. A reader that falls behind gets the newest screen instead of all
    output between. When the program ends, one last chunk draws the final screen, and the iteration
    stops.

    Example:
        async with term.attach() as output:
            screen = await output.read()  # draws the whole screen; the next ones add to it
    """

    __module__ = "telex"

    def __init__(self, terminal: AsyncTerminal, credit: int, redact: bool) -> None:
        self.exit_code: int | None = None
        self.exit_signal: int | None = None
        self._terminal = terminal
        self._chunks = terminal._caller.chunks  # two halves of one client
        self._asked = spec.Attach(session=terminal.id, credit=credit, redact=redact)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._id = ""
        self._queue: asyncio.Queue[OutputChunk | None] = asyncio.Queue()
        self._beginning: asyncio.Task[None] | None = None
        self._exit: asyncio.Task[Matched] | None = None
        self._redraw: asyncio.Task[None] | None = None
        """Draws the last screen. A task, so that a cancelled `read` does not stop it."""
        self._unacknowledged = 0
        self._finished = False

    def __repr__(self) -> str:
        state = "closed" if self._finished else "open" if self._exit else "not entered"
        return f"<{type(self).__name__} of {self._terminal.id}, {state}>"

    async def __aenter__(self) -> AsyncAttachment:
        if self._beginning is not None:
            raise OpenedTwice("already opened; call attach() again for another `with` block")
        self._beginning = _task(self._begin())
        try:
            await asyncio.shield(self._beginning)
        except BaseException:
            self._beginning.add_done_callback(lambda begun: self._abandon(begun))
            raise
        self._exit = _task(self._wait_exit())
        self._exit.add_done_callback(lambda _: self._queue.put_nowait(None))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncAttachment:
        return self

    async def __anext__(self) -> OutputChunk:
        if (chunk := await self.read()) is None:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> OutputChunk | None:
        """Return the next chunk, or None after the last one. It may be cancelled and repeated.

        Raises:
            SessionClosed: The session was closed.
            ServerGone: The connection to the server is closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        self._check_entered()
        while not self._finished:
            if self._redraw is not None:
                await asyncio.shield(self._redraw)
            await self._grant()
            chunk = await self._queue.get()
            if chunk is not None:
                self._unacknowledged += len(chunk.data)
                self._finished = self._redraw is not None and not chunk.more
                return chunk
            self._redraw = _task(self._show_last_screen())
        return None

    async def write(self, data: bytes) -> None:
        """Type bytes, as a keyboard sends them.

        Args:
            data: UTF-8. A character may be cut between two calls.

        Raises:
            SessionClosed: The program has ended, or the attachment was closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        self._check_open()
        await self._terminal.type(self._decoder.decode(data))

    async def resize(self, *, rows: int, cols: int) -> None:
        """Change the size of the terminal.

        Args:
            rows: The height, 1 to 1000.
            cols: The width, 1 to 1000.

        Raises:
            SessionClosed: The program has ended, or the attachment was closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        self._check_open()
        await self._terminal.resize(rows=rows, cols=cols)

    async def close(self) -> None:
        """Stop following the output. The program continues. A second call does nothing."""
        self._finished = True
        tasks = {task for task in (self._exit, self._redraw) if task is not None}
        self._exit = self._redraw = None
        if tasks:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._detach()

    def _check_open(self) -> None:
        self._check_entered()
        if self._finished:
            raise SessionClosed("the attachment was closed", {})

    def _check_entered(self) -> None:
        if self._exit is None and not self._finished:
            raise RuntimeError(
                "the attachment is not open: write `with term.attach() as output:` (or `async "
                "with`) and use `output` inside"
            )

    def _abandon(self, begun: asyncio.Task[None]) -> None:
        """Detach when entering was cancelled, but the server has attached."""
        self._finished = True
        if not begun.cancelled() and begun.exception() is None:
            self._redraw = _task(self._detach())  # kept, as a loop holds tasks weakly

    async def _begin(self) -> None:
        with self._chunks.expected():
            attached = await self._call("session.attach", self._asked, spec.Attached)
            self._id = attached.attachment
            self._queue = self._chunks.queue(self._id)

    async def _wait_exit(self) -> Matched:
        while True:  # one wait lasts a day at most
            try:
                return await self._terminal.wait(match.exited(), DAY_SECONDS)
            except TimedOut:
                continue

    async def _show_last_screen(self) -> None:
        """Attach again: a new attachment begins with the whole screen, however far the old one
        has come."""
        assert self._exit is not None
        exited = await self._exit
        await self._detach()
        self._unacknowledged = 0
        await self._begin()
        self.exit_code = exited.evidence["exit_code"]
        self.exit_signal = exited.evidence["signal"]

    async def _grant(self) -> None:
        """Grant credit for what was read, in steps of half the credit."""
        if self._unacknowledged >= self._asked.credit // 2:
            asked = spec.Credit(self._id, self._unacknowledged)
            self._unacknowledged = 0
            await self._terminal._caller.notify("session.credit", asked)

    async def _detach(self) -> None:
        try:
            await self._call("session.detach", spec.Detach(self._id), spec.Detached)
        except SessionProblem:
            pass  # the session was closed, and the attachment with it
        finally:
            self._chunks.forget(self._id)

    async def _call(self, method: str, params: object, returns: type[T]) -> T:
        return await self._terminal._call(method, params, returns)


@checks_arguments
class Attachment:
    """The output of a session as it is printed, with flow control. Made by `Terminal.attach`.

    Enter it with `with`, then iterate over it for `OutputChunk`s. The first chunk draws the
    current screen. Asking for the next chunk grants the server credit for the ones before; at most
    `credit` bytes are on the way. A reader that falls behind gets the newest screen instead of all
    output between. When the program ends, one last chunk draws the final screen, and the iteration
    stops.

    Example:
        with term.attach() as output:
            screen = output.read()  # draws the whole screen; the next ones add to it
    """

    __module__ = "telex"

    def __init__(self, attachment: AsyncAttachment, portal: Portal) -> None:
        self._attachment = attachment
        self._run = portal.run

    @property
    def exit_code(self) -> int | None:
        """The exit code, once the last screen is drawn; None if a signal ended the program."""
        return self._attachment.exit_code

    @property
    def exit_signal(self) -> int | None:
        """The signal that ended the program, once the last screen is drawn."""
        return self._attachment.exit_signal

    def __repr__(self) -> str:
        return repr(self._attachment).replace("Async", "", 1)

    def __enter__(self) -> Attachment:
        self._run(self._attachment.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Attachment:
        return self

    def __next__(self) -> OutputChunk:
        if (chunk := self.read()) is None:
            raise StopIteration
        return chunk

    def read(self) -> OutputChunk | None:
        """Return the next chunk, or None after the last one. It may be cancelled and repeated.

        Raises:
            SessionClosed: The session was closed.
            ServerGone: The connection to the server is closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        return self._run(self._attachment.read())

    def write(self, data: bytes) -> None:
        """Type bytes, as a keyboard sends them.

        Args:
            data: UTF-8. A character may be cut between two calls.

        Raises:
            SessionClosed: The program has ended, or the attachment was closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        self._run(self._attachment.write(data))

    def resize(self, *, rows: int, cols: int) -> None:
        """Change the size of the terminal.

        Args:
            rows: The height, 1 to 1000.
            cols: The width, 1 to 1000.

        Raises:
            SessionClosed: The program has ended, or the attachment was closed.
            RuntimeError: The attachment was not entered by `with`.
        """
        self._run(self._attachment.resize(rows=rows, cols=cols))

    def close(self) -> None:
        """Stop following the output. The program continues. A second call does nothing."""
        self._run(self._attachment.close())


def _task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task whose exception is raised where it is awaited, and not logged otherwise."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
