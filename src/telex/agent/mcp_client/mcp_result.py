"""The result of a call of an MCP server as the result of a tool. Pure.

Text is kept, an image becomes the image of the result, and everything else becomes a line of text
that says what it is. Structured content is in the details, and is the text if there is no other.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.images import ImageRefused, check_image
from telex.agent.limits import MCP_RESULT_CHARS, MCP_STRUCTURED_BYTES
from telex.agent.permissions import in_line, in_quotes
from telex.agent.tools.tool import ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.redaction import Redactor

_CUT: Final = "\n[cut: the server sent a longer result]"
_NOTHING: Final = "[the tool returned nothing]"


@dataclass(slots=True)
class _Read:
    """The parts of a result that were read."""

    texts: list[str]
    image: bytes = b""


def tool_result(
    blocks: Sequence[Any], structured: Any, is_error: bool, redactor: Redactor
) -> ToolResult:
    """Return the result of a tool. `blocks` are those of the SDK, which
    `mcp_streams` bounded. Blocks the caller for a long text."""
    read = _Read([])
    for block in blocks:
        _add(read, block)
    encoded = _encoded(structured, redactor)
    text = "\n".join(read.texts)
    if not read.texts and encoded:
        text = encoded
    if len(text) > MCP_RESULT_CHARS:
        text = text[:MCP_RESULT_CHARS] + _CUT
    details = {}
    if encoded and len(encoded.encode()) <= MCP_STRUCTURED_BYTES:
        details["structured"] = msgspec.json.decode(encoded)
    shown = redactor.redact(text) or ("" if read.image else _NOTHING)
    return ToolResult(shown, is_error, details, read.image)


def _encoded(structured: Any, redactor: Redactor) -> str:
    """Return structured content as JSON without secrets; empty if there is none."""
    if structured is None:
        return ""
    try:
        return msgspec.json.encode(_redacted(structured, redactor)).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""


def _redacted(value: Any, redactor: Redactor) -> Any:
    match value:
        case str():
            return redactor.redact(value)
        case dict():
            return {
                redactor.redact(str(key)): _redacted(inner, redactor)
                for key, inner in value.items()
            }
        case list():
            return [_redacted(inner, redactor) for inner in value]
        case _:
            return value


def _add(read: _Read, block: Any) -> None:
    match block.type:
        case "text":
            read.texts.append(block.text)
        case "image":
            _add_image(read, block.data)
        case "audio":
            read.texts.append(f"[audio of the type {in_quotes(block.mime_type)}, not shown]")
        case "resource_link":
            said = f": {in_line(block.description)}" if block.description else ""
            read.texts.append(f"[a link: {in_line(block.name)} at {in_line(str(block.uri))}{said}]")
        case "resource":
            _add_resource(read, block.resource)
        case other:
            read.texts.append(f"[content of the type {in_quotes(str(other))}, not shown]")


def _add_resource(read: _Read, resource: Any) -> None:
    where = in_line(str(resource.uri))
    if (text := getattr(resource, "text", None)) is not None:
        read.texts.append(f"[{where}]\n{text}")
    elif (resource.mime_type or "").startswith("image/"):
        _add_image(read, resource.blob)
    else:
        read.texts.append(f"[{where}: binary content, not shown]")


def _add_image(read: _Read, data: str) -> None:
    try:
        content = base64.b64decode(data, validate=True)
        check_image(content, "the image")
    except (binascii.Error, ValueError):
        read.texts.append("[an image that is not base64, not shown]")
    except ImageRefused as refused:
        read.texts.append(f"[{refused}; not shown]")
    else:
        if read.image:
            read.texts.append("[another image, not shown: a result has one]")
        else:
            read.image = content
