"""Turns a response that is an error into the failure that it means. Pure.

Providers agree on few status codes; the rest is told by words in the body. The sentence of the
provider is part of the message, because it is often the only explanation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from telex.agent.models.errors import (
    ContextTooLong,
    FailedMidStream,
    KeyRefused,
    ModelFailure,
    ModelNotFound,
    ProviderFailed,
    QuotaSpent,
    RateLimited,
    RequestRefused,
)

if TYPE_CHECKING:
    from telex.agent.messages import AssistantMessage

_SHOWN_CHARS: Final = 500
_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|maximum context|(prompt|input) is too long"
    r"|too many (input )?tokens|request_too_large",
    re.IGNORECASE,
)
_NO_CREDIT: Final = re.compile(
    r"insufficient_(quota|credits|balance)|billing|credit balance|exceeded your current quota",
    re.IGNORECASE,
)
_TOO_OFTEN: Final = re.compile(r"rate.?limit", re.IGNORECASE)


def failure_of_status(status: int, body: bytes, retry_after: float | None) -> ModelFailure:
    """Return the failure for a response with this status.

    Args:
        retry_after: The seconds that the provider asked to wait, if it did.
    """
    error = _decoded(body)
    said = error_text(error) or f"status {status}"
    hint = f"{_codes(error)} {said}"
    match status:
        case 401 | 403:
            return KeyRefused(f"the provider refused the key: {said}")
        case 402:
            return QuotaSpent(f"the account has no credit left: {said}")
        case 404:
            return ModelNotFound(f"the server has no such model or address: {said}")
        case 429 if _NO_CREDIT.search(hint):
            return QuotaSpent(f"the account has no credit left: {said}")
        case 429:
            wait = "" if retry_after is None else f" {retry_after:.0f} s"
            return RateLimited(f"the provider asks to wait{wait}: {said}", retry_after=retry_after)
        case 400 | 413 | 422 if status == 413 or _TOO_LONG.search(hint):
            return ContextTooLong(f"the conversation is too long for the model: {said}")
        case 408 | 409 | 425:
            return ProviderFailed(f"the provider did not answer: {said}", retry_after=retry_after)
        case _ if status >= 500:
            return ProviderFailed(f"the provider failed: {said}", retry_after=retry_after)
    return RequestRefused(f"the provider refused the request: {said}")


def failure_mid_stream(error: Any, partial: AssistantMessage | None) -> ModelFailure:
    """Return the failure for an error that came in place of the rest of an answer."""
    said = error_text(error) or "it gave no reason"
    hint = f"{_codes(error)} {said}"
    kind: type[ModelFailure] = FailedMidStream
    if _TOO_LONG.search(hint):
        kind = ContextTooLong
    elif _NO_CREDIT.search(hint):
        kind = QuotaSpent
    elif _TOO_OFTEN.search(hint):
        kind = RateLimited
    return kind(f"the provider broke off the answer: {said}", partial=partial)


def error_text(error: Any) -> str:
    """Return the sentence in an error of a provider, whose shape varies."""
    match error:
        case {"error": inner} if inner:
            return error_text(inner)
        case {"message": str(text)} | {"detail": str(text)}:
            return text[:_SHOWN_CHARS]
        case str():
            return error.strip()[:_SHOWN_CHARS]
    return "" if error is None else msgspec.json.encode(error).decode()[:_SHOWN_CHARS]


def _codes(error: Any) -> str:
    """Return the words by which an error names its kind."""
    match error:
        case {"error": dict(inner)}:
            return _codes(inner)
        case dict():
            return " ".join(
                str(error[name]) for name in ("code", "type", "status") if name in error
            )
    return ""


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return None if "<html" in text.lower() else text
