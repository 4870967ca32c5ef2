"""What a UI puts before the person's text: the results of commands that they ran themselves. Pure.

After `!ls` a UI begins the next input with one block for each command, each an object in JSON:

    <shell_result>
    {"id": "bang_1", "command_preview": "ls", "exit_code": 0, "stdout": "README.md"}
    </shell_result>
    read README.md

They are context for whoever thinks, and nothing that the person said to do.
"""

from __future__ import annotations

import re
from typing import Final

_OPENING: Final = re.compile(r"\s*<shell_result>([ \t]*\r?(?=\n))?")
_CLOSING: Final = "</shell_result>"


def without_shell_results(text: str) -> str:
    """The text after the blocks it begins with; a block that does not end is no block.

    A block of several lines ends at a line that begins with the closing mark. JSON has no line
    breaks inside strings, so what a command printed cannot end it.
    """
    at = 0
    while (opening := _OPENING.match(text, at)) is not None:
        mark = _CLOSING if opening[1] is None else f"\n{_CLOSING}"
        end = text.find(mark, opening.end())
        if end < 0:
            break
        at = end + len(mark)
    return text[at:]
