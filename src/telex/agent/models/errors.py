"""The failures of a call of a language model, named for the condition.

Messages are for a person and contain no key: they are made here and in `model_client`, from texts
out of which the key was removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telex.agent.messages import AssistantMessage


class ModelFailure(Exception):
    """A call of a model failed. The message has no secret, and can be shown to a person."""

    retryable = False
    """Whether the same request may succeed later."""
    code = "model_failed"
    """The name of the failure for programs."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        partial: AssistantMessage | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """The seconds that the provider asked to wait."""
        self.partial = partial
        """The texts that were yielded before the failure, and no tool call."""


class ModelUnreachable(ModelFailure):
    """No connection to the server: refused, unknown host, broken TLS."""

    retryable = True
    code = "unreachable"


class ModelTimedOut(ModelFailure):
    """The server sent nothing for too long."""

    retryable = True
    code = "timed_out"


class RateLimited(ModelFailure):
    """The provider refused the call because of too many calls or tokens (429)."""

    retryable = True
    code = "rate_limited"


class ProviderFailed(ModelFailure):
    """The provider failed or is overloaded (5xx)."""

    retryable = True
    code = "provider_failed"


class KeyRefused(ModelFailure):
    """The provider wants a key, or refused the one that it got (401, 403)."""

    code = "key_refused"


class KeyMissing(ModelFailure):
    """There is no key for a model that needs one, or it cannot be read."""

    code = "key_missing"


class QuotaSpent(ModelFailure):
    """The account has no credit left (402, `insufficient_quota`)."""

    code = "quota_spent"


class ModelNotFound(ModelFailure):
    """The server has no such model, or no such address (404)."""

    code = "model_not_found"


class ContextTooLong(ModelFailure):
    """The conversation is longer than the context window of the model."""

    code = "context_too_long"


class RequestRefused(ModelFailure):
    """The provider refused the request as invalid (other 4xx)."""

    code = "request_refused"


class StreamEndedEarly(ModelFailure):
    """The connection ended before the answer did."""

    retryable = True
    code = "stream_ended_early"


class MalformedChunk(ModelFailure):
    """A piece of the answer is not what the dialect allows."""

    retryable = True
    code = "malformed_chunk"


class MissingStopReason(ModelFailure):
    """The answer ended in order, but without the reason; it may be cut off."""

    retryable = True
    code = "missing_stop_reason"


class EmptyAnswer(ModelFailure):
    """The answer ended in order, and has neither text nor tool call."""

    retryable = True
    code = "empty_answer"


class FailedMidStream(ModelFailure):
    """The provider sent an error in place of the rest of the answer."""

    retryable = True
    code = "failed_mid_stream"


class AnswerTooLarge(ModelFailure):
    """The answer is larger than our limits."""

    code = "answer_too_large"
