"""The call that a plugin's function serves, and the exceptions that the function may raise.

A call can be used from the event loop and from worker threads: it sends notifications by the
server's `notify`, which is safe for both. A function raises `Failed` for an expected failure. Any
other exception is a failure too, and its traceback goes to the log.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from telex.plugins import protocol as spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Token = int | str | UnsetType


class Call:
    """A call that a function of a plugin serves: its progress and whether it was cancelled."""

    __module__ = "telex.plugins.sdk"

    def __init__(self, name: str, notify: Callable[[str, object], None], token: Token) -> None:
        self.name = name
        self._notify = notify
        self._token = token
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the host cancelled the call. An `async def` function gets CancelledError
        instead."""
        return self._cancelled.is_set()

    def _cancel(self) -> None:
        """From the server: the host cancelled the call or disconnected."""
        self._cancelled.set()

    def wait_cancelled(self, seconds: float) -> bool:
        """Wait for some time, or until the call is cancelled.

        Args:
            seconds: How long to wait.

        Returns:
            Whether the call was cancelled.
        """
        return self._cancelled.wait(seconds)

    def progress(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Send progress. Does nothing if the host did not request progress.

        Args:
            done: How much is done.
            total: How much there is in all; None if unknown.
            message: A line for the person.
        """
        if self._token is not UNSET and not self.cancelled:
            self._notify("$/progress", spec.ProgressNotice(self._token, message, done, total))


class CommandCall(Call):
    """A call of a command."""

    __module__ = "telex.plugins.sdk"

    def __init__(
        self, name: str, notify: Callable[[str, object], None], token: Token, args: Sequence[str]
    ) -> None:
        super().__init__(name, notify, token)
        self.args = tuple(args)
        """The arguments on the command line, without options."""


class TaskCall(Call):
    """A call of a task, to validate or to run it."""

    __module__ = "telex.plugins.sdk"

    def __init__(
        self, name: str, notify: Callable[[str, object], None], token: Token, directory: str
    ) -> None:
        super().__init__(name, notify, token)
        self.directory = Path(directory)
        """The base of relative paths."""


class ToolCall(Call):
    """A call of a tool, mostly by a language model."""

    __module__ = "telex.plugins.sdk"


class Failed(Exception):
    """The call failed. The message is shown to the person."""

    __module__ = "telex.plugins.sdk"

    def __init__(self, sentence: str, data: object = None) -> None:
        super().__init__(sentence)
        self.data = data
        """Any JSON value, for programs."""


class InvalidConfig(Failed):
    """A value of the configuration is not valid."""

    __module__ = "telex.plugins.sdk"
