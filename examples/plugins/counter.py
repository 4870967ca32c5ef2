#!/usr/bin/env python3
"""A plugin with everything there is, written with telex's SDK.

telex plugin check --run count examples/plugins/counter.py
telex plugin run counter count --up-to 5
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import msgspec

from telex.plugins.sdk import CommandCall, InvalidConfig, Plugin, TaskCall


class Config(msgspec.Struct):
    pause: Annotated[int, "milliseconds between two numbers"] = 20


plugin = Plugin("counter", version="1", description="Counts.", config=Config)


@plugin.command()
async def count(call: CommandCall, up_to: Annotated[int, "the last number"] = 10) -> None:
    """Count, slowly enough to watch or to cancel."""
    for number in range(1, up_to + 1):
        await asyncio.sleep(plugin.config.pause / 1000)
        call.progress(number, up_to)
        logging.info("%d", number)


@plugin.task()
def write(call: TaskCall, path: Path, text: str = "") -> None:
    """Write a file."""
    (call.directory / path).write_text(text)


@plugin.validate("write")
def check(path: Path, text: str = "") -> None:
    if path.name in ("", ".."):
        raise InvalidConfig(f"path: {path} is no file to write to")


@plugin.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


if __name__ == "__main__":
    plugin.run()
