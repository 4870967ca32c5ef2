"""Answers compared with the shape of an original's: each member, and what kind of value it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

KINDS = {"text": str, "number": (int, float), "boolean": bool}


def missing(shape: Any, answer: Any) -> list[str]:
    """The paths of what the shape has and the answer has not, or has otherwise."""
    return list(_missing(shape, answer, "$"))


def _missing(shape: Any, answer: Any, path: str) -> Iterator[str]:
    match shape:
        case dict():
            for name, member in shape.items():
                if not isinstance(answer, dict) or name not in answer:
                    yield f"{path}.{name}"
                else:
                    yield from _missing(member, answer[name], f"{path}.{name}")
        case [first]:
            if not isinstance(answer, list) or not answer:
                yield f"{path}[0]"
            else:
                yield from _missing(first, answer[0], f"{path}[0]")
        case []:
            if not isinstance(answer, list):
                yield path
        case "null":
            if answer is not None and not isinstance(answer, str):
                yield path
        case str(kind):
            if not isinstance(answer, KINDS[kind]):
                yield path
