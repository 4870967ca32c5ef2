"""A verb as one call: its words in, and out what to print and the exit code, or the parts.

Exit codes: 0 done, 1 failed, 2 usage, 4 refused by policy, 124 timed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from telex.automation.screen_text import printable
from telex.automation.verb_commands import BadVerb, HelpRequest, parse_verb
from telex.automation.verb_protocol import VerbFailure, VerbOutput, VerbParts
from telex.server.verb_answers import VerbFailed, plain_facts, to_json, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.automation.verb_protocol import ExpectedFacts
    from telex.rpc.identity import Identity
    from telex.server.verbs import Verbs


@dataclass(frozen=True, slots=True)
class VerbCall:
    """One call of a verb, as the client sends it."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    """The caller's environment; for verbs that open no session, TELEX_SESSION alone."""
    stdin: str | None
    caller: Identity
    """The process that ran the verb."""
    expected: ExpectedFacts | None = None


async def run_call(verbs: Verbs, call: VerbCall, announce: Callable[[float], None]) -> VerbOutput:
    """Run one verb. `announce` is called with the seconds that it may take from then on, if they
    differ from the usual ones."""
    try:
        step = parse_verb(call.argv, call.stdin)
    except HelpRequest as asked:
        return VerbOutput(0, f"{asked}\n", "")
    except BadVerb as error:
        return VerbOutput(2, "", printable(f"telex: {error}\n"))
    with verbs.called_by(call.caller, call.cwd, call.env) as context:
        context.announce = announce
        try:
            answer = await verbs.perform(step.request, context)
        except VerbFailed as failed:
            if step.as_json:
                facts = {"code": failed.code, "message": str(failed), "data": failed.data}
                return VerbOutput(failed.code, to_json({"error": facts}), "")
            text = to_text(f"telex: {failed.told}", failed.screen, fence=step.fence)
            return VerbOutput(failed.code, "", text)
    if step.as_json:
        return VerbOutput(0, to_json(answer.facts), "")
    text = to_text(
        answer.line, answer.screen, fence=step.fence, title=answer.title, note=answer.note
    )
    return VerbOutput(0, text, "")


async def run_for_parts(
    verbs: Verbs, call: VerbCall, announce: Callable[[float], None]
) -> VerbOutput:
    """Run one verb, and return its answer or its failure in parts."""
    try:
        step = parse_verb(call.argv, call.stdin)
    except (HelpRequest, BadVerb) as error:
        return VerbOutput(2, "", "", failure=VerbFailure(2, str(error)))
    with verbs.called_by(call.caller, call.cwd, call.env, expected=call.expected) as context:
        context.announce = announce
        try:
            found = await verbs.perform(step.request, context)
        except VerbFailed as failed:
            data = plain_facts(failed.data)
            failure = VerbFailure(failed.code, str(failed), failed.reasons, failed.screen, data)
            return VerbOutput(failed.code, "", "", failure=failure)
    facts = plain_facts(found.facts)
    answer = VerbParts(found.line, found.screen, facts, found.title, found.note)
    return VerbOutput(0, "", "", answer=answer)
