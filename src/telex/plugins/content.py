"""What a plugin answered with, as text for a person. Pure; for results of commands and of tools."""

from __future__ import annotations

import json
from typing import Any


def text_of(result: Any) -> str | None:
    """The text of a result that has some: itself, its `content`, or the parts of that."""
    match result:
        case str() as text:
            return text or None
        case {"content": content}:
            return text_of(content)
        case [*parts]:
            texts = [part["text"] for part in parts if _is_text(part)]
            return "\n".join(texts) or None
        case _:
            return None


def shown(content: object) -> str:
    """Any content: its text, or what it is as JSON."""
    text = text_of(content)
    return json.dumps(content, ensure_ascii=False) if text is None else text


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
