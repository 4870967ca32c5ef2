"""The text and the questions of a screen of another agent's TUI, as values. Pure.

`adapter` makes events and questions of them, and stores `AskedQuestion` with each question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from telex.agent.conversation import message_text
from telex.agent.cores.adapter_terminal import TerminalPlace
from telex.agent.messages import AssistantMessage, ReasoningPart, ToolResultMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.adapters.protocol import AdapterState
    from telex.agent.messages import Message


@dataclass(frozen=True, slots=True)
class ShownDialog:
    """A dialog as the person is asked about it. Equal means that the same one still stands."""

    state: str
    dialog_id: str
    options: tuple[str, ...]
    text: str

    @staticmethod
    def of(state: AdapterState) -> ShownDialog | None:
        """Return the dialog of a state; None if it shows no options."""
        facts = state.metadata
        options = tuple(str(one) for one in facts.get("options") or ())
        if not options:
            return None
        text = str(facts.get("dialog") or "\n".join(options))
        return ShownDialog(state.state, str(facts.get("dialog_id") or ""), options, text)

    def option(self, answer: str) -> str:
        """Return the label that an answer means: a number of an option, yes, or no."""
        if answer in ("yes", "no"):
            return self.options[0 if answer == "yes" else -1]
        return self.options[int(answer) - 1]

    @property
    def is_yes_or_no(self) -> bool:
        first, last = self.options[0].lower(), self.options[-1].lower()
        return len(self.options) == 2 and first.startswith("yes") and last.startswith("no")


class AskedQuestion(Struct, frozen=True, omit_defaults=True):
    """The subject of a question, stored with it to continue after a restart. Two equal ones mean
    that the program still asks the same."""

    terminal: TerminalPlace | None = None
    """None for the question whether the program may be started."""
    dialog: ShownDialog | None = None
    panel: str | None = None
    """The state of a panel that is to be closed."""
    line: str | None = None
    """A question that is answered with a line of text."""


def subject(state: AdapterState) -> str:
    """Return what a dialog is about, in a few words."""
    asked = state.metadata.get("permission")
    if isinstance(asked, dict) and asked.get("tool"):
        return ": ".join(str(asked[key]) for key in ("tool", "summary") if asked.get(key))
    return state.state.replace("_", " ")


def said_entries(given: Any) -> list[dict[str, Any]]:
    """Return what a plugin says the program said, as a list of tables."""
    if isinstance(given, str):
        return [{"text": given}] if given.strip() else []
    return [one for one in given or () if isinstance(one, dict)]


def without_open_call(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries without a call at the end that still runs, or is asked about. Pure."""
    open_call = said and "tool" in said[-1] and "result" not in said[-1]
    return said[:-1] if open_call else said


def unseen(
    before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]
) -> Sequence[dict[str, Any]]:
    """Return the part of `now` that comes after `before`. The beginning may have scrolled away, so
    `now` may begin in the middle of `before`, and its first entry may be cut. Pure."""
    if any(list(before[at : at + len(now)]) == list(now) for at in range(len(before))):
        return ()
    first = 1 if before and now and now[0].get("cut") else 0
    whole = now[first:]
    for count in range(min(len(before), len(whole)), 0, -1):
        if list(before[len(before) - count :]) == list(whole[:count]):
            return whole[count:]
    return whole if first and len(before) > 0 else now


def stored_answer(
    messages: Sequence[Message], name: str
) -> tuple[AskedQuestion | None, str | None]:
    """Return the last question of this core in a run that is resumed, and its answer; None without
    an answer. Pure."""
    for at in range(len(messages) - 1, 0, -1):
        result, said = messages[at], messages[at - 1]
        if isinstance(result, ToolResultMessage) and isinstance(said, AssistantMessage):
            for part in said.parts:
                if isinstance(part, ReasoningPart) and part.provider == name:
                    question = msgspec.json.decode(part.opaque, type=AskedQuestion)
                    return question, None if result.is_error else message_text(result) or None
    return None, None
