"""ptywright and telex, asked the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from originals.installing import from_crates
from originals.shapes import missing

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).parents[1] / "corpus/pty_automation/ptywright.json"


def answers(argv: list[str], home: Path, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """To each request, the last of them sent without a newline."""
    environ = {**os.environ, "TELEX_HOME": str(home), "PTYWRIGHT_HOME": str(home)}
    told = []
    with subprocess.Popen(
        argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        for request in asked[:-1]:
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            told.append(json.loads(server.stdout.readline()))
        rest, _ = server.communicate(json.dumps(asked[-1]), timeout=60)
    return [*told, json.loads(rest)]


def shape(value: Any) -> Any:
    match value:
        case dict():
            return {name: shape(member) for name, member in value.items()}
        case list():
            return [shape(value[0])] if value else []
        case bool():
            return "boolean"
        case str():
            return "text"
        case None:
            return "null"
    return "number"


@pytest.mark.counted
@pytest.mark.deadline(1800)
def test_telex_answers_what_ptywright_answers(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    original = from_crates(program, "ptywright", "0.3.0")
    asked = [step["asked"] for step in json.loads(RECORDED.read_text("utf-8"))]
    theirs = answers([str(original), "serve", "--stdio"], tmp_path / "a", asked)
    ours = answers([sys.executable, "-m", "telex", "serve"], tmp_path / "b", asked)
    own = ("builtin_plugins", "plugins", "manifest", "intents", "wait_matchers", "states")
    for request, one, other in zip(asked, theirs, ours, strict=True):
        assert one["id"] == other["id"]
        assert one.get("error", {}).get("code") == other.get("error", {}).get("code"), request
        wanted = shape(one.get("result", {}))
        wanted = {name: value for name, value in wanted.items() if name not in own}
        assert not missing(wanted, other.get("result", {})), request
    print(f"\nptywright 0.3.0: {len(asked)} requests, all answered with its members and its codes")
