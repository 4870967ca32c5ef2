#!/usr/bin/env python3
"""A telex plugin in Python, with telex's SDK: one command, one type of task, one tool.

    telex plugin check --run hello ./greet

The parameters of a function are its configuration. `print` and `logging` both reach the person:
standard output is for the protocol, so the SDK redirects `print` to standard error.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from telex.plugins.sdk import InvalidConfig, Plugin, TaskCall

plugin = Plugin("greet", version="1", description="Greets, and writes files.")


@plugin.command()
def hello(
    name: Annotated[str, "whom to greet"] = "world",
    loud: Annotated[bool, "in capitals"] = False,
) -> None:
    """Say hello."""
    greeting = f"Hello, {name}!"
    logging.info(greeting.upper() if loud else greeting)


@plugin.task()
def write(
    call: TaskCall,
    path: Annotated[Path, "which file"],
    text: Annotated[str, "what to write"] = "",
) -> None:
    """Write a file."""
    (call.directory / path).write_text(text)
    logging.info("wrote %s", call.directory / path)


@plugin.validate("write")
def check_write(path: Path) -> None:
    if path.name == "":
        raise InvalidConfig(f"path: {path} is no file to write to")


@plugin.tool()
def greeting(name: str) -> str:
    """Return a greeting."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    plugin.run()
