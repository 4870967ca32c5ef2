"""The plugin of telex's SDK with which the original hosts were recorded: see `tests/corpus/plugin_v0`."""

import logging
from pathlib import Path
from typing import Annotated

import msgspec

from telex.plugins.sdk import CommandCall, Failed, Flag, Plugin, TaskCall


class Config(msgspec.Struct):
    greeting: str = "Hello"
    loud: bool = False


plugin = Plugin("hey", version="1.2.3", config=Config)
log = logging.getLogger("hey")


@plugin.command()
def hello(
    call: CommandCall,
    name: Annotated[str, "whom to greet", Flag(shorthand="n")] = "world",
    times: int = 1,
) -> None:
    """Say hello."""
    log.log(5, "at trace")
    log.debug("at debug")
    log.info("at info", extra={"who": name, "deep": {"a": [1, None]}})
    log.warning("at warning")
    log.error("at error")
    call.progress(1, 2)
    greeting = f"{plugin.config.greeting} {name}"
    print("\n".join([greeting.upper() if plugin.config.loud else greeting] * times))


@plugin.command()
def fail() -> None:
    """Fail."""
    raise Failed("it went wrong")


@plugin.task()
def write(call: TaskCall, path: Path, text: str = "nothing") -> None:
    """Write a file."""
    log.info("writing %s", path)
    (call.directory / path).write_text(text)


if __name__ == "__main__":
    plugin.run()
