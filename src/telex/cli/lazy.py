"""A command whose file is imported when somebody asks for it, and not to list it."""

from __future__ import annotations

import importlib
from typing import Any

import click


class Lazy(click.Command):
    """Stands in a group for a command that is not imported yet.

    It knows its name and its line of help, which is all that help, completion and suggestions need.
    click enters a command through `make_context`, and what that returns names the real command as
    its own, so nothing behind it ever meets the stand-in.
    """

    def __init__(self, name: str, module: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._module = module

    def load(self) -> click.Command:
        """The real one: the file's `command`."""
        command: click.Command = importlib.import_module(self._module).command
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        return self.load().make_context(info_name, args, parent, **extra)
