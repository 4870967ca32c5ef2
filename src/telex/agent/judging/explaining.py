"""A judgement as JSON, for `permission.explain` and for a confirm's details. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telex.agent.judging.rules import Decision, Rule, to_table
from telex.agent.judging.showing import in_line, in_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.judging.commands import Piece
    from telex.agent.judging.judge import Judge, Judgement, Request
    from telex.agent.judging.paths import Touched


def explain(judge: Judge, request: Request) -> dict[str, Any]:
    """Judges, runs nothing, and says all that had a part in it."""
    return explained(judge, judge.judge(request))


def explained(judge: Judge, judged: Judgement) -> dict[str, Any]:
    unread = judged.not_understood
    return {
        "decision": str(judged.decision),
        "why": in_sentence(judged.why),
        "rule": _rule(judged.rule),
        "mode": str(judge.mode),
        "trusted": judge.trusted,
        "root": in_line(judge.root),
        "not_understood": unread and {"why": unread.why, "at": unread.at},
        "why_not_automatic": [in_sentence(why) for why in _objections(judged)],
        "pieces": [_piece(piece) for piece in judged.pieces],
        "paths": [_path(one) for piece in judged.pieces for one in piece.touched],
        "remember": [
            {"kind": str(scope.kind), "says": in_sentence(scope.says), "rule": _rule(scope.rule)}
            for scope in judged.remember
        ],
        "ignored_layers": [layer.name for layer in judge.layers if not layer.trusted],
    }


def _objections(judged: Judgement) -> Iterator[str]:
    if judged.decision is Decision.ALLOW:
        return
    found = [p.verdict.why for p in judged.pieces if p.verdict.decision is not Decision.ALLOW]
    yield from dict.fromkeys([judged.why, *found])


def _rule(rule: Rule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    said = {
        key: in_line(value) if isinstance(value, str) else value
        for key, value in to_table(rule).items()
    }
    return {**said, "layer": rule.layer, "place": rule.place}


def _piece(piece: Piece) -> dict[str, Any]:
    return {
        "kind": piece.kind,
        "source": in_line(piece.source),
        "argv": [in_line(word) for word in piece.argv],
        "decision": str(piece.verdict.decision),
        "why": in_sentence(piece.verdict.why),
        "rule": _rule(piece.verdict.rule),
    }


def _path(one: Touched) -> dict[str, Any]:
    return {
        "access": str(one.access),
        "path": in_line(one.path),
        "real": in_line(one.real),
        "secret": one.is_secret,
        "decision": str(one.verdict.decision),
    }
