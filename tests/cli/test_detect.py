"""`telex detect`: what the terminal says it can do, for people and for scripts."""

from __future__ import annotations

import json
import subprocess
import sys

from escapes.terminals import SILENT, Manners, ran, terminal

DETECT = ("-m", "telex", "detect")


async def test_detect_prints_the_capabilities_of_the_terminal() -> None:
    some = {
        "capabilities": {
            "term": {"level": 2, "include": ["term:*"], "exclude": ["term:resize"]},
            "clip": {"include": ["clip:write"]},
        },
        "maxframe": 4096,
    }
    async with terminal(Manners(detect=some)) as fake:
        code, out, err = await ran(fake, *DETECT)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == "JSON escapes: yes, by terminal"
        assert lines[1].startswith("  slowest answer: ")
        assert lines[2:] == [
            "  frames of up to 4096 bytes of JSON",
            "  term: level 2, term:*, without term:resize",
            "  clip: clip:write",
        ]
        assert fake.restored()


async def test_as_json_it_is_one_object() -> None:
    async with terminal() as fake:
        code, out, _ = await ran(fake, *DETECT, "--json")
        found = json.loads(out)
        assert code == 0
        assert 0 <= found.pop("round_trip_ms") < 5000
        assert found == {
            "supported": True,
            "via": "terminal",
            "maxframe": 65536,
            "capabilities": {"term": {"level": 2}},
        }


async def test_odd_capabilities_are_shown_as_far_as_they_make_sense() -> None:
    odd = {"capabilities": {"a\x1b[2J": 3, "b": {"include": [1, "\x07"], "exclude": "x"}}}
    async with terminal(Manners(detect=odd)) as fake:
        code, out, err = await ran(fake, *DETECT)
        assert (code, err) == (0, "")
        assert out.replace("\n", "").isprintable()


async def test_a_terminal_that_does_not_speak_it_is_3() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        code, out, err = await ran(fake, *DETECT)
        assert (code, out) == (3, "")
        assert err == (
            "telex: the terminal does not speak JSON escapes (no 23198); "
            "start a terminal with JSON escapes by: telex run -- bash\n"
        )
        code, out, err = await ran(fake, *DETECT, "--json")
        assert (code, err) == (3, "")
        assert json.loads(out) == {
            "supported": False,
            "reason": "the terminal does not speak JSON escapes (no 23198)",
            "advice": "start a terminal with JSON escapes by: telex run -- bash",
        }
        assert fake.restored()


def test_without_a_terminal_it_says_so_and_is_3() -> None:
    ran = subprocess.run(
        [sys.executable, *DETECT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("telex: no terminal to connect to: this program has none")
    assert ran.stderr.endswith("telex run -- bash\n")
