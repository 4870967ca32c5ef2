"""`detect` reports only abilities that the person's terminal has shown."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passthrough.person import at_terminal
from passthrough.seat import RUN, Kitty, frame, printing, seated
from telex.passthrough import person_surface
from telex.passthrough.person_surface import ProbeFindings

Program = Callable[[str], str]

ASKS = """
import json, sys
from telex import escapes
from telex.rpc.errors import CallError
said = {}
with escapes.connect() as term:
    names = ("clip:read", "clip:write", "image:show", "term:title", "term:sync")
    said["supports"] = {name: term.supports(name) for name in names}
    said["clip"] = term.capabilities.get("clip")
    for name, data in (("clip:read", {}), ("image:show", {"data64": "iVBORw0KGgo="})):
        try:
            answer = term.call(name, data)
            said[name] = answer if isinstance(answer, dict) else {}
        except CallError as error:
            said[name] = str(error)
json.dump(said, open(sys.argv[1], "w"))
"""
NO_CLIPBOARD = "The person's terminal does not let programs read its clipboard. (ECUNSUP)"
NO_PICTURES = "The person's terminal does not show such pictures. (ECUNSUP)"


def asks(path: Path) -> tuple[str, ...]:
    return (*RUN, "--", sys.executable, "-c", ASKS, str(path / "said"))


def said(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "said").read_text())
    return found


def is_true_of_a_terminal_that_does_nothing(told: dict[str, Any]) -> None:
    assert told["supports"]["clip:read"] is False
    assert told["supports"]["image:show"] is False
    assert told["clip:read"] == NO_CLIPBOARD
    assert told["image:show"] == NO_PICTURES
    assert told["clip"]["unverified"] == ["clip:write"]
    assert told["supports"]["term:title"], "it is passed on, and said to be unverified"


async def test_on_a_bare_pty_nothing_is_reported_and_requests_fail_with_a_reason(
    tmp_path: Path,
) -> None:
    """A terminal that replies to nothing; the program reaches telex by the socket."""
    home = {"TELEX_HOME": str(tmp_path / "home")}
    async with at_terminal(*asks(tmp_path), TMPDIR=str(tmp_path), **home) as person:
        assert await person.leaves() == 0, bytes(person.seen)
        assert b"Allow?" not in person.seen, "nobody is asked for what cannot be done"
    is_true_of_a_terminal_that_does_nothing(said(tmp_path))


async def test_inside_a_real_tmux_only_abilities_of_tmux_are_reported(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / "tmux.conf").write_text("set -g update-environment ''\n")
    server = (program("tmux"), "-S", str(tmp_path / "s"), "-f", str(tmp_path / "tmux.conf"))
    command = shlex.join(asks(tmp_path))
    told = ("set-option", "-g", "set-titles", "on")
    argv = (*server, "new-session", command, ";", *told)
    async with seated(*argv, home=tmp_path, TMUX=None, TERM="xterm-256color") as person:
        assert await person.leaves() == 0, bytes(person.seen)
        assert b"i=31" not in person.seen, "tmux would take kitty's question for a title"
    is_true_of_a_terminal_that_does_nothing(said(tmp_path))


async def test_the_reported_abilities_of_a_terminal_are_used(tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('[[rule]]\ncommand = "clip:read"\ndecision = "allow"\n')
    run, separator, *rest = asks(tmp_path)[len(RUN) - 1 :]
    argv = (*RUN, "--policy", str(rules), separator, *rest)
    assert run == "run"
    async with seated(*argv, home=tmp_path, kind=Kitty) as person:
        person.clipboard = b"aGVsbG8="
        assert await person.leaves() == 0, bytes(person.seen)
        assert b"\x1b_Ga=T,f=100" in person.seen
    told = said(tmp_path)
    assert told["supports"]["clip:read"]
    assert told["supports"]["image:show"]
    assert told["clip:read"] == {"text": "hello"}
    assert told["image:show"] == {}


async def test_a_picture_is_shown_at_its_place_in_the_output(tmp_path: Path) -> None:
    detect = frame('{"command":"detect","rpcid":"d"}')
    picture = frame('{"command":"image:show","data":{"data64":"iVBORw0KGgo="}}')
    (tmp_path / "out").write_bytes(b"before" + picture + b"after")
    script = f"printf %s '{detect.decode()}'; head -c 20 > /dev/null; cat {tmp_path / 'out'}"
    argv = ("sh", "-c", f"stty raw -echo; {script}")
    async with seated(*RUN, *argv, home=tmp_path, kind=Kitty) as person:
        assert await person.leaves() == 0
    assert person.seen.index(b"before\x1b_Ga=T") < person.seen.index(b"\x1b\\after")


async def test_a_picture_without_a_probe_is_refused_on_a_terminal_without_pictures(
    tmp_path: Path,
) -> None:
    picture = frame('{"command":"image:show","data":{"data64":"iVBORw0KGgo="}}')
    async with seated(*RUN, *printing(tmp_path / "out", picture), home=tmp_path) as person:
        assert await person.leaves() == 0
        assert b"\x1b_Ga=T" not in person.seen


# Replies of real terminals.

ANSWERS: dict[str, tuple[bytes, bytes, bool | None, bool, bool]] = {
    "kitty": (b"\x1b[?62;c\x1bP>|kitty(0.42.1)\x1b\\", b"\x1b_Gi=31;OK\x1b\\", True, True, False),
    "foot": (b"\x1b[?62;4;22;28;29;52c\x1bP>|foot(1.22.3)\x1b\\", b"", True, False, False),
    "xterm": (b"\x1b[?64;1;2;6;9;15;18;21;22c\x1bP>|XTerm(390)\x1b\\", b"", None, False, False),
    "alacritty": (b"\x1b[?6c", b"", None, False, False),
    "wezterm": (
        b"\x1b[?65;4;6;18;22;52c\x1bP>|WezTerm 20240203\x1b\\",
        b"\x1b_Gi=31;OK\x1b\\\x1b]1337;ReportCellSize=16;8;1\x07",
        False,
        True,
        True,
    ),
    "iterm2": (
        b"\x1b[?64;1;2;4;6;17;18;21;22;52c\x1bP>|iTerm2 3.5.10\x1b\\",
        b"\x1b]1337;ReportCellSize=17.0;8.0;2.0\x1b\\",
        True,
        False,
        True,
    ),
    "kitty that refuses": (b"\x1b[?62c", b"\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\", None, False, False),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_replies_of_real_terminals_are_understood(name: str) -> None:
    attributes, more, clipboard, kitty, iterm = ANSWERS[name]
    found = person_surface.second_findings(person_surface.first_findings(attributes, {}), more)
    assert found.reads_clipboard is clipboard
    assert (found.shows("png"), found.shows("gif")) == (kitty, iterm)
    assert ("clip:read" in found.lacks) is (clipboard is not True)
    assert ("image:show" in found.lacks) is (not kitty and not iterm)


@pytest.mark.parametrize(
    ("answer", "environ"),
    [
        (b"\x1b[?1;2;4c\x1bP>|tmux 3.5a\x1b\\", {}),
        (b"\x1b[?1;2c", {"TERM": "screen-256color"}),
        (b"\x1b[?62;52c", {"TMUX": "/tmp/tmux-0/default,1,0"}),
        (None, {}),
    ],
)
def test_a_multiplexer_or_a_silent_terminal_has_neither_pictures_nor_clipboard(
    answer: bytes | None, environ: dict[str, str]
) -> None:
    found = person_surface.first_findings(answer, environ)
    assert found.reads_clipboard is False
    assert {"clip:read", "image:show"} <= found.lacks
    assert "clip:write" in found.unverified


def test_the_reported_modes_of_a_terminal_decide_about_events() -> None:
    said = b"\x1b[?1004;0$y\x1b[?2004;2$y\x1b[?2026;0$y\x1b[?1000;2$y\x1b[?1003;2$y\x1b[?1006;2$y"
    found = person_surface.second_findings(person_surface.first_findings(b"\x1b[?62c", {}), said)
    assert {"event:focus", "term:sync"} <= found.lacks
    assert not {"event:focus", "event:paste", "event:mouse"} & {*found.unverified}
    assert "event:focus" in ProbeFindings().unverified
    assert "term:report" in ProbeFindings().unverified, "nothing was answered at all"
    assert "term:report" not in ProbeFindings(answered=True).unverified
    assert "term:report" in ProbeFindings(answered=True, multiplexer=True).unverified
