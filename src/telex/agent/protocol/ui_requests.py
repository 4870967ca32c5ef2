"""Requests from the runtime to a UI (confirm, prompt, pick), and their results (spec §7)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

CONFIRM = "ui.confirm.request"
PROMPT = "ui.prompt.request"
PICK = "ui.pick.request"


class UiConfirmRequestParams(Struct, frozen=True, omit_defaults=True):
    """A yes-or-no question. The answer is bound to `message`: show all of it."""

    title: str
    message: str
    run_id: str | None = None
    confirm_label: str = "OK"
    cancel_label: str = "Cancel"
    danger_level: Literal["normal", "danger"] = "normal"
    allow_remember: bool = False
    allow_reason: bool = False
    details: Any = None
    """Addition of telex: the call in a form for programs, with the digest that the answer is bound
    to."""


class UiConfirmResult(Struct, frozen=True, omit_defaults=True):
    """The answer to a confirm. A no with a `reason` lets the agent try something else."""

    ok: bool
    remember: bool | None = None
    reason: str | None = None


class UiPromptRequestParams(Struct, frozen=True, omit_defaults=True):
    """A question that is answered with a line of text, or several with `multiline`."""

    title: str
    message: str
    run_id: str | None = None
    default_value: str | None = None
    multiline: bool = False
    secret: bool = False


class UiPromptResult(Struct, frozen=True):
    """The answer to a prompt."""

    value: str | None
    """None: the person cancelled the prompt."""


class PickItem(Struct, frozen=True, omit_defaults=True):
    """An item that the person can choose."""

    id: str
    label: str
    detail: str | None = None


class UiPickRequestParams(Struct, frozen=True, omit_defaults=True):
    """A choice among items: one of them, or with `multi` several."""

    title: str
    items: list[PickItem]
    run_id: str | None = None
    multi: bool = False


class UiPickResult(Struct, frozen=True):
    """The answer to a pick: the ids of the chosen items."""

    ids: list[str]
    """Empty: the person cancelled the choice."""
