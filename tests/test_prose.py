"""Docstrings and comments are plain English: a sentence has a noun as its subject.

A sentence that begins with a bare "What", "Who" or "One that" hides its subject: "What leaks" is
"Descriptors that would leak". CONTRIBUTING.md has the rules; this test finds the commonest breach.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent.parent / "src/telex"

_BARE = re.compile(
    r"(?:Who|Whose|What|Whoever|Whatever|Which|Nobody|Somebody|Everybody"
    r"|One(?= (?:that|who|which|is|may|can|has|does|of|to|in|with|for|by|at)\b))\b"
)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] ", re.sub(r"`[^`]*`", "X", text)):
        for sentence in re.split(r"(?<=[.!:]) +", " ".join(paragraph.split())):
            yield sentence.strip(" *")


def docstrings() -> Iterator[tuple[str, ast.AST, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}", node, text


def test_no_sentence_of_a_docstring_begins_with_a_bare_pronoun() -> None:
    found = [
        f"{where}: {sentence}"
        for where, _, text in docstrings()
        for sentence in sentences(text)
        if _BARE.match(sentence) and not sentence.endswith("?")
    ]
    assert not found, "give these sentences a noun as their subject:\n" + "\n".join(found)


def test_the_docstring_of_a_class_says_what_the_object_is() -> None:
    short = [
        f"{where}: {text}"
        for where, node, text in docstrings()
        if isinstance(node, ast.ClassDef) and len(text.split()) < 3
    ]
    assert not short, "say what these objects are:\n" + "\n".join(short)


def test_the_check_itself_sees_bare_subjects_only() -> None:
    text = "What leaks. One terminal is open: one that hung up.\n\nOne of them. Whose screen."
    found = [sentence for sentence in sentences(text) if _BARE.match(sentence)]
    assert found == ["What leaks.", "One of them.", "Whose screen."]
