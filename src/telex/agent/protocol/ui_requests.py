"""Requests from the runtime to a UI (confirm, prompt, pick, clipboard), and their results (§7).

`ui.clipboard.read` is planned in the spec (§4.2); its members are those of the original's plan.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

CONFIRM = "ui.confirm.request"
PROMPT = "ui.prompt.request"
PICK = "ui.pick.request"
CLIPBOARD = "ui.clipboard.read"


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


class UiClipboardReadParams(Struct, frozen=True, omit_defaults=True):
    """A request for the clipboard of the person, who allowed it. A UI may ask again, or refuse."""

    purpose: Literal["image_attachment", "text_paste"]
    formats: list[str]
    """The types that are useful: `text/plain`, or those of images."""
    run_id: str | None = None
    max_bytes: int | None = None
    """The most that is accepted: of a text in UTF-8, or of an image before base64."""
    prompt: str | None = None
    """Why the agent wants it, as the agent says."""


class ClipboardText(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="text"):
    """A text of the clipboard."""

    text: str
    bytes: int | None = None


class ClipboardImage(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="image"):
    """An image of the clipboard: PNG, JPEG, GIF or WebP."""

    data_url: str
    """A `data:` URL in base64."""
    media_type: str | None = None
    width: int | None = None
    height: int | None = None
    bytes: int | None = None


class UiClipboardReadResult(Struct, frozen=True, omit_defaults=True):
    """The clipboard, or why there is nothing to read."""

    ok: bool
    cancelled: bool | None = None
    """The person refused."""
    items: list[ClipboardText | ClipboardImage] | None = None
    error: str | None = None
