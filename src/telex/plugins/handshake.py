"""The beginning of a conversation: `handshake`, and for generation A `initialize`, with deadlines.

`plugin` runs it; `introducing` says what the answer means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from telex.plugins import introducing, problems
from telex.protocols import plugin_v0 as spec

if TYPE_CHECKING:
    from telex.plugins.finding import Found
    from telex.plugins.settings import Settings

_METHOD_NOT_FOUND: Final = -32601

Ask = Callable[[str, object, float | None, Any], Awaitable[Any]]
"""Method, params, seconds and the result's type; raises a `PluginFailed`."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, and how."""

    found: Found
    settings: Settings
    ask: Ask
    suspicion: Callable[[], str]
    """What may be behind its silence."""

    def failed(self, what: str, hint: str = "") -> problems.NotIntroduced:
        return problems.NotIntroduced(self.found.name, what, hint)


async def introduce(asking: Asking, level: spec.Level) -> spec.Introduced:
    """What it is. Raises NotIntroduced, or why it is over."""
    seconds = asking.settings.deadlines.handshake
    try:
        async with asyncio.timeout(seconds):
            answer = await _shake_hands(asking)
    except TimeoutError:
        what = f"did not answer the handshake within {seconds:g} s"
        raise asking.failed(what, asking.suspicion()) from None
    except problems.Unexpected as failure:
        raise asking.failed(failure.what, failure.hint) from None
    try:
        said = introducing.introduced(answer, asking.found.manifest)
    except introducing.NotUnderstood as error:
        raise asking.failed(str(error)) from None
    if said.protocol == spec.PROTOCOL_A:
        await _initialize(asking, said, level)
    return said


async def _shake_hands(asking: Asking) -> object:
    """Its answer to the first handshake that it accepts. The first refusal is what is told."""
    refusals: list[problems.Refused] = []
    for offer in introducing.handshakes(asking.found.manifest):
        try:
            return await asking.ask("handshake", offer, None, Any)
        except problems.Refused as refusal:
            refusals.append(refusal)
        except problems.PluginOver:
            if not refusals:
                raise
            break  # it ended because of what it refused
    raise asking.failed(refusals[0].what)


async def _initialize(asking: Asking, said: spec.Introduced, level: spec.Level) -> None:
    values = asking.settings.config(asking.found, said)
    params = spec.Initialize(spec.Logging(enabled=True, level=level), values or None)
    try:
        await asking.ask("initialize", params, asking.settings.deadlines.initialize, Any)
    except problems.Refused as refusal:
        if refusal.code != _METHOD_NOT_FOUND:  # else it has nothing to initialise
            raise asking.failed(refusal.what) from None
    except (problems.TimedOut, problems.Unexpected) as failure:
        raise asking.failed(failure.what, failure.hint) from None
