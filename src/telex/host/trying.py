"""The panel of `telex adapter try`: what a plugin says of the program above it, as it says it."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Final

from telex.adapters.lua.nursery import Nursery
from telex.adapters.watching import watch
from telex.host.beside import Line

if TYPE_CHECKING:
    from telex.adapters.asking import Said
    from telex.adapters.sources import Plugin
    from telex.host.beside import View

HEAD, BROKEN, DIM, RED = "7", "97;41", "2", "31"
EVIDENCE_ROWS: Final = 2


class Trying:
    """State, confidence and rule; the evidence; the metadata. A `beside.Panel`."""

    height = 2 + EVIDENCE_ROWS
    answer: str | None = None

    def __init__(self, plugin: Plugin, key: str) -> None:
        self._plugin = plugin
        self._key = key
        self._said: Said | None = None
        self._view: View | None = None

    async def live(self, view: View) -> None:
        self._view = view
        nursery = Nursery()
        try:
            await watch(view.session, nursery.instance(self._plugin), self._told)
        finally:
            await nursery.close()

    def pressed(self) -> None:
        if self._view is not None:
            self._view.leave()

    def typed(self, data: bytes) -> bytes:
        return data  # it asks nothing

    def lines(self) -> list[Line]:
        name, said = self._plugin.name, self._said
        if said is None or self._view is None:
            return [Line(f" {name} · not asked yet", f"{self._key} ends it ", HEAD)]
        hint = f"{_time(said.seconds)} · {self._key} ends it "
        head = Line(f" {name} · {summary(said)}", hint, BROKEN if said.problem else HEAD)
        if said.problem is not None:
            text = f"{said.problem.function}: {said.problem.problem}"
            return [head, *_wrapped(text, self._view.cols, RED, self.height - 1)]
        body = _wrapped(said.state.evidence, self._view.cols, "", EVIDENCE_ROWS)
        if isinstance(said.state.metadata, dict):
            shown = json.dumps(said.state.metadata, ensure_ascii=False, sort_keys=True)
            body += _wrapped(shown, self._view.cols, DIM, self.height - 1 - len(body))
        return [head, *body]

    def _told(self, said: Said) -> None:
        self._said = said
        if self._view is not None:
            self._view.changed()


def summary(said: Said) -> str:
    """A state in a few words."""
    state = said.state
    if said.problem is not None:
        return f"{state.state} ({said.problem.kind})"
    rule = f" · rule {state.rule}" if isinstance(state.rule, str) else ""
    return f"{state.state} {state.confidence:.2f}{rule}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.1f} s"


def _wrapped(text: str, cols: int, style: str, rows: int) -> list[Line]:
    """At most so many rows; the last one says whether there would be more."""
    found = textwrap.wrap(" ".join(text.split()), max(8, cols - 2))
    shown = [*found[: rows - 1], " ".join(found[rows - 1 :])] if found[rows:] else found
    return [Line(f" {line}", style=style) for line in shown]
