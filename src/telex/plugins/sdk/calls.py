"""What a function may know of the call it serves, what it may report meanwhile, and what it raises.

A call is used from the event loop or from a worker's thread alike: its notifications go through
`notify`, which the server makes safe for both. A function raises `Failed` to say no. Anything else
it raises is a failure too, and its traceback goes to the log.
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
    """Any call."""

    def __init__(self, name: str, tell: Callable[[str, object], None], token: Token) -> None:
        self.name = name
        self._tell = tell
        self._token = token
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants the result any more. `async def` sees CancelledError instead."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """From the service: the host gave up, or is gone."""
        self._cancelled.set()

    def wait_cancelled(self, seconds: float) -> bool:
        """Do nothing for so long, or until it is cancelled, which is then true."""
        return self._cancelled.wait(seconds)

    def progress(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell how far it is. Does nothing for a host that did not ask."""
        if self._token is not UNSET and not self.cancelled:
            self._tell("$/progress", spec.ProgressNotice(self._token, message, done, total))


class CommandCall(Call):
    """A command is run."""

    def __init__(
        self, name: str, tell: Callable[[str, object], None], token: Token, args: Sequence[str]
    ) -> None:
        super().__init__(name, tell, token)
        self.args = tuple(args)
        """What stood on the command line and was no option."""


class TaskCall(Call):
    """A task is validated or run."""

    def __init__(
        self, name: str, tell: Callable[[str, object], None], token: Token, directory: str
    ) -> None:
        super().__init__(name, tell, token)
        self.directory = Path(directory)
        """What relative paths are relative to."""


class ToolCall(Call):
    """A tool is called."""


class Failed(Exception):
    """It did not work. The sentence is for the person who asked."""

    def __init__(self, sentence: str, data: object = None) -> None:
        super().__init__(sentence)
        self.data = data
        """Any JSON, for programs."""


class InvalidConfig(Failed):
    """A value of the configuration is not one to work with."""
