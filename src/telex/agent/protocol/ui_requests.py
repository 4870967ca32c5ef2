"""The runtime's requests to a UI (confirm, prompt, pick) and the UI's results (spec §7)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

CONFIRM = "ui.confirm.request"
PROMPT = "ui.prompt.request"
PICK = "ui.pick.request"


class UiConfirmRequestParams(Struct, frozen=True, omit_defaults=True):
    title: str
    message: str
    run_id: str | None = None
    confirm_label: str = "OK"
    cancel_label: str = "Cancel"
    danger_level: Literal["normal", "danger"] = "normal"
    allow_remember: bool = False
    allow_reason: bool = False
    details: Any = None
    """Ours: what will be done, for programs, with the digest that binds the answer to it."""


class UiConfirmResult(Struct, frozen=True, omit_defaults=True):
    ok: bool
    remember: bool | None = None
    reason: str | None = None


class UiPromptRequestParams(Struct, frozen=True, omit_defaults=True):
    title: str
    message: str
    run_id: str | None = None
    default_value: str | None = None
    multiline: bool = False
    secret: bool = False


class UiPromptResult(Struct, frozen=True):
    value: str | None
    """None: the person cancelled it."""


class PickItem(Struct, frozen=True, omit_defaults=True):
    id: str
    label: str
    detail: str | None = None


class UiPickRequestParams(Struct, frozen=True, omit_defaults=True):
    title: str
    items: list[PickItem]
    run_id: str | None = None
    multi: bool = False


class UiPickResult(Struct, frozen=True):
    ids: list[str]
    """Empty: the person cancelled it."""
