"""The recorded conversation with ptywright, held with our server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from originals.shapes import missing
from serving import telex_child

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "corpus/pty_automation/ptywright.json").read_text("utf-8")
)


def test_recorded_ptywright_requests_are_answered_with_the_same_members(
    tmp_path: Path,
) -> None:
    environ = {"PATH": os.environ["PATH"], "TELEX_HOME": str(tmp_path / "home"), "TERM": "xterm"}
    with telex_child(environ, tmp_path, "serve") as child:
        assert child.stdin
        assert child.stdout
        for step in RECORDED:
            child.stdin.write(json.dumps(step["asked"]) + "\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline())
            assert answer["id"] == step["asked"]["id"]
            if "code" in step:
                assert answer["error"]["code"] == step["code"], step["asked"]
                assert not missing(step.get("data", {}), answer["error"].get("data", {}))
            else:
                assert "result" in answer, (step["asked"], answer)
                assert not missing(step["result"], answer["result"]), step["asked"]
