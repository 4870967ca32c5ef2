"""The tool clipboard_read, which gives a model the clipboard of the person, from their UI.

The runtime may be on another machine than the person, so it never reads a clipboard itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from telex.agent.images import IMAGE_TYPES, decode_data_url
from telex.agent.limits import AGENT_CLIPBOARD_BYTES, AGENT_IMAGE_BYTES
from telex.agent.permissions import in_line
from telex.agent.protocol.ui_requests import (
    ClipboardImage,
    ClipboardText,
    UiClipboardReadParams,
    UiClipboardReadResult,
)
from telex.agent.tools.tool import ToolContext, ToolFailed, ToolResult, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_CLIPBOARD: Final = "no UI is connected that can read the clipboard"


class ClipboardReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read what the person has copied: a text, or an image. The person is asked each time. Use it
    only if the person speaks of something that they copied."""

    kind: Literal["text", "image"] = "text"
    reason: Annotated[str, Meta(max_length=200, description="Why, in a few words.")] = ""


async def _clipboard_read(asked: ClipboardReadArguments, context: ToolContext) -> ToolResult:
    if context.read_clipboard is None:
        raise ToolFailed(NO_CLIPBOARD)
    is_text = asked.kind == "text"
    answer = await context.read_clipboard(
        UiClipboardReadParams(
            "text_paste" if is_text else "image_attachment",
            ["text/plain"] if is_text else [*IMAGE_TYPES],
            max_bytes=AGENT_CLIPBOARD_BYTES if is_text else AGENT_IMAGE_BYTES,
            prompt=in_line(asked.reason) or None,
        )
    )
    if answer.cancelled:
        raise ToolFailed("the person did not give the clipboard")
    if not answer.ok:
        raise ToolFailed(_reason(answer))
    return _result(answer.items or ())


def _reason(answer: UiClipboardReadResult) -> str:
    why = in_line(answer.error or "it gave no reason")[:500]
    return f"the UI could not read the clipboard: {why}"


def _result(items: Sequence[ClipboardText | ClipboardImage]) -> ToolResult:
    """Return all texts, and the first image."""
    texts = [item.text for item in items if isinstance(item, ClipboardText)]
    images = [item for item in items if isinstance(item, ClipboardImage)]
    text = "\n".join(texts)
    if len(text.encode("utf-8", "replace")) > AGENT_CLIPBOARD_BYTES:
        raise ToolFailed(f"the clipboard has a text of more than {AGENT_CLIPBOARD_BYTES} bytes")
    if not images:
        return ToolResult(text) if text else ToolResult("[the clipboard is empty]")
    content = decode_data_url(images[0].data_url, "the clipboard")
    return ToolResult(text or "[an image from the clipboard]", image=content)


CLIPBOARD_READ: Final = tool("clipboard_read", ClipboardReadArguments, _clipboard_read)
