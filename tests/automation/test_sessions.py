"""Sessions from `session.create` to `session.close`, and what can be read of them meanwhile."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from automating import SECRET, Serving, alive
from telex.automation.limits import DESCRIPTORS_KEPT
from telex.automation.server import AutomationService
from telex.terminal import limits
from telex.version import __version__

SPEC_METHODS = [
    "server.capabilities",
    "server.set_notifications",
    *(
        f"session.{name}"
        for name in (
            "create",
            "list",
            "close",
            "kill",
            "resize",
            "input",
            "snapshot",
            "transcript",
            "wait",
        )
    ),
]
STYLE = {
    "foreground": "default",
    "background": "default",
    "bold": False,
    "dim": False,
    "italic": False,
    "underline": False,
    "inverse": False,
}


async def test_capabilities_name_the_server_its_methods_and_its_notifications(
    automation: Serving,
) -> None:
    async with automation() as client:
        told = await client.call("server.capabilities")
    assert list(told) == ["name", "version", "framing", "methods", "notifications", "strict_params"]
    assert (told["name"], told["version"]) == ("telex", __version__)
    assert told["framing"] == ["ndjson", "lsp"]
    assert told["methods"][: len(SPEC_METHODS)] == SPEC_METHODS
    spoken = ["changed", "output", "input_state", "exited", "recording_failed", "escape", "page"]
    assert told["notifications"] == [f"session.{name}" for name in spoken]


async def test_every_method_that_is_named_is_there() -> None:
    service = AutomationService()
    assert {method.name for method in service.methods} >= {
        *SPEC_METHODS,
        "session.scrollback",
        "session.cancel_wait",
        "session.record",
        "session.attach",
        "session.lease",
    }


async def test_a_session_from_its_first_to_its_last_moment(automation: Serving) -> None:
    async with automation() as client:
        created = await client.call(
            "session.create", program="sh", args=["-c", "printf ready; exec cat"]
        )
        assert created == {"session": "s1"}
        matcher = {"type": "contains_text", "value": "ready"}
        found = await client.call("session.wait", session="s1", matcher=matcher, timeout_ms=5000)
        assert found["matched"] is True
        assert (await client.act("s1", "text", "help\n"))["sent"] is True
        await client.shows("s1", "help\nhelp")
        assert await client.transcript("s1") == "readyhelp\r\nhelp\r\n"
        resized = await client.call("session.resize", session="s1", rows=40, cols=120)
        assert resized == {"resized": True}
        assert await client.call("session.kill", session="s1") == {"killed": True}
        assert await client.screen("s1") == "readyhelp\nhelp"
        assert await client.call("session.list") == {"sessions": ["s1"]}
        assert await client.call("session.close", session="s1") == {"closed": True}
        assert await client.call("session.list") == {"sessions": []}
        assert (await client.refused("session.snapshot", session="s1")).code == -32602


async def test_a_terminal_is_24_by_80_without_pixels_unless_asked_otherwise(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("stty size; cat")
        await client.shows(session, "24 80")
        snapshot = await client.call("session.snapshot", session=session, cells="none")
        assert snapshot["size"] == {"rows": 24, "cols": 80, "pixel_width": 0, "pixel_height": 0}


async def test_arguments_directory_environment_and_size_are_the_programs(
    automation: Serving, tmp_path: Path
) -> None:
    script = """
import fcntl, os, struct, sys, termios
print(sys.argv[1:], os.getcwd(), os.environ.get("GIVEN"), os.environ.get("PATH"), os.environ["TERM"])
print(struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\\0" * 8)), os.ttyname(0)[:9])
"""
    async with automation() as client:
        session = await client.start(
            sys.executable,
            "-c",
            script,
            "one two",
            "",
            cwd=str(tmp_path),
            env={"GIVEN": "yes", "PATH": None},
            rows=30,
            cols=400,
            pixel_width=640,
            pixel_height=480,
        )
        await client.over(session)
        first, second = (await client.screen(session)).splitlines()
        snapshot = await client.call("session.snapshot", session=session, cells="none")
    assert first == f"['one two', ''] {tmp_path} yes None xterm-256color"
    assert second == "(30, 400, 640, 480) /dev/pts/"
    size = {"rows": 30, "cols": 400, "pixel_width": 640, "pixel_height": 480}
    assert snapshot["size"] == size


async def test_a_transcript_keeps_as_many_characters_as_was_asked(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("seq 1000; printf end", transcript_max_chars=20)
        await client.over(session)
        text = await client.transcript(session)
        assert len(text) == 20
        assert text.endswith("999\r\n1000\r\nend")


@pytest.mark.parametrize("method", ["server.capabilities", "session.list", "adapter.list"])
async def test_a_method_without_parameters_takes_an_empty_array_of_them(
    automation: Serving, method: str
) -> None:
    async with automation() as client:
        assert await client.peer.call(method, [], timeout=20) == await client.call(method)


async def test_a_transcript_that_was_cut_says_so(automation: Serving) -> None:
    async with automation() as client:
        for command, cut in (
            ("seq 1000; printf end", True),
            ("printf 'twenty characters...'", False),
        ):
            session = await client.start(command, transcript_max_chars=20)
            await client.over(session)
            for redact in (True, False):
                read = await client.call("session.transcript", session=session, redact=redact)
                assert (len(read["text"]), read["dropped"]) == (20, cut)
                rest = {"session": session, "cursor": read["cursor"] - 3, "redact": redact}
                assert (await client.call("session.transcript", **rest))["dropped"] is False


async def test_a_transcript_keeps_128_kib_of_characters_unless_asked_otherwise(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("yes 0123456789012 | head -n 10000 | tr -d '\\n'")
        await client.over(session)
        assert len(await client.transcript(session)) == 130_000
        session = await client.start("yes 0123456789012 | head -n 11000 | tr -d '\\n'")
        await client.over(session)
        assert len(await client.transcript(session)) == limits.TRANSCRIPT_CHARS == 128 * 1024


async def test_the_list_is_in_numeric_order_and_holds_the_exited_until_they_are_closed(
    automation: Serving,
) -> None:
    async with automation() as client:
        ids = [await client.start("true") for _ in range(11)]
        assert ids == [f"s{n}" for n in range(1, 12)]
        for id in ids:
            await client.over(id)
        assert (await client.call("session.list"))["sessions"] == ids
        await client.call("session.close", session="s3")
        assert (await client.call("session.list"))["sessions"] == [i for i in ids if i != "s3"]
        assert await client.start("true") == "s12", "an id is used once"


async def test_an_exited_session_takes_no_input_and_no_size_but_can_be_read(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("printf last; exit 3")
        await client.over(session)
        typed = await client.refused(
            "session.input", session=session, action={"type": "text", "value": "x"}
        )
        resized = await client.refused("session.resize", session=session, rows=10, cols=10)
        for refusal in (typed, resized):
            assert refusal.code == -32002
            assert refusal.data["child"] == {"state": "exited", "exit_code": 3, "signal": None}
        assert typed.message.endswith("nothing reads what is typed")
        assert resized.message.endswith("its terminal keeps the size it had")
        signal = {"type": "signal", "value": "term"}
        late = await client.refused("session.input", session=session, action=signal)
        assert late.message.endswith("there is nothing left to signal")
        assert await client.screen(session) == "last"
        assert await client.transcript(session) == "last"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.input", {"action": {"type": "text", "value": "x"}}),
        ("session.wait", {"matcher": {"type": "process_exited"}}),
        ("session.snapshot", {}),
        ("session.transcript", {}),
        ("session.resize", {"rows": 10, "cols": 10}),
        ("session.kill", {}),
        ("session.close", {}),
        ("session.scrollback", {}),
        ("session.record", {}),
        ("session.attach", {}),
        ("session.attachments", {}),
        ("session.inputs", {}),
        ("session.lease", {"holder": "me"}),
    ],
)
async def test_a_closed_id_and_an_unknown_one_are_invalid_params(
    automation: Serving, method: str, params: dict[str, Any]
) -> None:
    async with automation() as client:
        session = await client.start("cat")
        await client.call("session.close", session=session)
        for id in (session, "s77", "no session at all"):
            refusal = await client.refused(method, session=id, **params)
            assert refusal.code == -32602
            assert f"unknown session: {id}" in refusal.message


async def test_a_program_that_cannot_be_started_is_an_error_with_the_program_and_the_reason(
    automation: Serving, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    async with automation() as client:
        missing = await client.refused("session.create", program="no-such-program-here")
        assert missing.code == -32603
        assert missing.data == {
            "kind": "no_such_program",
            "errno": errno.ENOENT,
            "program": "no-such-program-here",
        }
        refused = await client.refused("session.create", program=str(plain))
        assert (refused.code, refused.data["errno"]) == (-32603, errno.EACCES)
        assert refused.data == {
            "kind": "not_executable",
            "errno": errno.EACCES,
            "program": str(plain),
        }
        nowhere = await client.refused("session.create", program="true", cwd="/no/such/place")
        assert nowhere.code == -32603
        assert nowhere.data == {
            "kind": "no_such_directory",
            "errno": errno.ENOENT,
            "program": "true",
        }
        assert (await client.call("session.list"))["sessions"] == []
        assert await client.start("true") == "s1", "what did not start took no id"


async def test_a_server_without_free_descriptors_refuses_sessions_and_ends_those_it_has(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Serving("stdio, ndjson", tmp_path)() as client:
        session = await client.start("cat", "-")
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + DESCRIPTORS_KEPT - 1, hard))
        try:
            told = await client.refused("session.create", program="cat")
            assert "close sessions, or start it with a higher limit (ulimit -n)" in told.message
            await client.call("session.close", session=session)
            await client.start("cat", "-")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_snapshot_has_exactly_the_members_of_the_spec(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("printf ready; cat")
        await client.shows(session, "ready")
        snapshot = await client.call("session.snapshot", session=session)
    assert snapshot.pop("input_state")["state"] in ("line", "busy")  # our addition
    assert list(snapshot) == [
        "size",
        "cursor",
        "sequence",
        "plain_text",
        "cells",
        "alternate_screen",
        "application_cursor",
        "application_keypad",
        "title",
    ]
    cells = snapshot.pop("cells")
    sequence = snapshot.pop("sequence")
    assert isinstance(sequence, int)
    assert sequence > 0
    assert snapshot == {
        "size": {"rows": 24, "cols": 80, "pixel_width": 0, "pixel_height": 0},
        "cursor": {"row": 0, "col": 5, "visible": True},
        "plain_text": "ready",
        "alternate_screen": False,
        "application_cursor": False,
        "application_keypad": False,
        "title": None,
    }
    assert [(cell["row"], cell["col"]) for cell in cells] == [
        (row, col) for row in range(24) for col in range(80)
    ]
    assert "".join(cell["text"] for cell in cells) == "ready"
    assert all(
        list(cell) == ["row", "col", "text", "wide", "wide_continuation", "style"] for cell in cells
    )
    assert all(cell["style"] == STYLE for cell in cells)


async def test_cells_contain_colours_attributes_and_wide_characters(automation: Serving) -> None:
    script = (
        r"printf '\033[1;3;4;7;38;5;9;48;2;1;2;3mA\033[0;2mB\033[0m漢\n\033]0;the title\007';"
        r"printf '\033[?1h\033=\033[?25l'; printf end; cat"
    )
    async with automation() as client:
        session = await client.start(script)
        await client.shows(session, "end")
        snapshot = await client.call("session.snapshot", session=session)
        first, second, wide, rest = snapshot["cells"][:4]
        assert first["style"] == {
            **STYLE,
            "foreground": "idx:9",
            "background": "rgb:1:2:3",
            **dict.fromkeys(("bold", "italic", "underline", "inverse"), True),
        }
        assert second["style"] == {**STYLE, "dim": True}
        assert (wide["text"], wide["wide"], wide["wide_continuation"]) == ("漢", True, False)
        assert (rest["text"], rest["wide"], rest["wide_continuation"]) == ("", False, True)
        assert snapshot["title"] == "the title"
        assert (snapshot["application_cursor"], snapshot["application_keypad"]) == (True, True)
        assert snapshot["cursor"] == {"row": 1, "col": 3, "visible": False}


async def test_the_alternate_screen_is_reported_and_leaves_no_trace(automation: Serving) -> None:
    script = r"printf before; printf '\033[?1049h\033[Hinside'; read x; printf '\033[?1049l'; cat"
    async with automation() as client:
        session = await client.start(script)
        await client.shows(session, "inside")
        snapshot = await client.call("session.snapshot", session=session, cells="none")
        assert (snapshot["plain_text"], snapshot["alternate_screen"]) == ("inside", True)
        await client.act(session, "key", "enter")
        await client.shows(session, "before")
        snapshot = await client.call("session.snapshot", session=session, cells="none")
        assert (snapshot["plain_text"], snapshot["alternate_screen"]) == ("before", False)


async def test_reads_hide_secrets_unless_redaction_is_off(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start(f"printf '{SECRET} end'; cat")
        found = await client.shows(session, "end")
        hidden = "password=[REDACTED]"
        assert SECRET not in str(found)
        assert hidden in found["transcript_tail"]
        snapshot = await client.call("session.snapshot", session=session)
        assert "hunter2" not in str(snapshot)
        assert "hunter2" not in "".join(cell["text"] for cell in snapshot["cells"])
        assert hidden in await client.transcript(session)
        assert await client.screen(session, redact=False) == f"{SECRET} end"
        assert await client.transcript(session, redact=False) == f"{SECRET} end"
        raw = await client.shows(session, "end", redact=False)
        assert raw["snapshot"]["plain_text"] == raw["transcript_tail"] == f"{SECRET} end"


async def test_a_read_may_bring_rules_of_its_own(automation: Serving) -> None:
    rules = {
        "enabled": False,  # part of the wire, and changes nothing
        "replacement": "<gone>",
        "extra_literals": ["blue"],
        "extra_regexes": ["gr[a-z]+n"],
    }
    async with automation() as client:
        session = await client.start(f"printf 'blue green {SECRET}'; cat")
        await client.shows(session, "green")
        text = await client.transcript(session, redaction=rules)
        assert text == "<gone> <gone> password=<gone>"
        screen = await client.screen(session, redaction=rules)
        assert not any(word in screen for word in ("blue", "green", "hunter2"))
        found = await client.shows(session, "", redaction=rules)
        assert found["transcript_tail"] == text
        assert (await client.transcript(session)).startswith("blue green"), "for one read only"
        raw = await client.transcript(session, redaction=rules, redact=False)
        assert raw == f"blue green {SECRET}", "the flag outside decides"


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"replacement": "x"}, "enabled"),
        ({"enabled": True}, "replacement"),
        ({"enabled": True, "replacement": "x", "extra_regexes": ["("]}, "("),
        ({"enabled": True, "replacement": "x", "extra_literals": "no list"}, "extra_literals"),
        ("not an object", "redaction"),
    ],
)
@pytest.mark.parametrize("method", ["session.snapshot", "session.transcript"])
async def test_rules_that_are_none_are_invalid_params(
    automation: Serving, rules: Any, says: str, method: str
) -> None:
    async with automation() as client:
        session = await client.start("cat")
        refusal = await client.refused(method, session=session, redaction=rules)
        assert refusal.code == -32602
        assert says in refusal.message


async def test_a_raw_transcript_has_every_byte_and_is_for_its_owner_alone(
    automation: Serving, tmp_path: Path
) -> None:
    path = tmp_path / "raw"
    async with automation() as client:
        script = rf"printf '{SECRET}\033[1m\377\033]23198;0;x\007'"
        session = await client.start(script, raw_transcript_path=str(path))
        await client.over(session)
        assert path.read_bytes() == SECRET.encode() + b"\x1b[1m\xff\x1b]23198;0;x\x07"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        refusal = await client.refused(
            "session.create", program="true", raw_transcript_path=str(path)
        )
        assert refusal.code == -32602
        assert "exists" in refusal.message
        assert path.read_bytes().startswith(SECRET.encode()), "nothing was overwritten"
        path.chmod(0o640)
        session = await client.start(
            "printf more", raw_transcript_path=str(path), raw_transcript_append=True
        )
        await client.over(session)
        assert path.read_bytes().endswith(b"\x07more")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, "an old file keeps its mode"


async def test_a_raw_transcript_needs_a_path_that_can_be_written(
    automation: Serving, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    async with automation() as client:
        asked: list[dict[str, Any]] = [
            {"raw_transcript_append": True},
            {"raw_transcript_path": str(tmp_path)},
            {"raw_transcript_path": str(tmp_path / "no" / "such")},
            {"raw_transcript_path": str(link)},
            {"raw_transcript_path": "a\0b"},
        ]
        for params in asked:
            refusal = await client.refused("session.create", program="true", **params)
            assert refusal.code == -32602, params
        assert (await client.call("session.list"))["sessions"] == []


async def test_a_new_size_reaches_the_program_and_raises_the_sequence(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("trap 'stty size' WINCH; echo ready; while :; do read x; done")
        await client.shows(session, "ready")
        before = await client.call("session.snapshot", session=session, cells="none")
        await client.call(
            "session.resize", session=session, rows=40, cols=120, pixel_width=7, pixel_height=9
        )
        after = await client.call("session.snapshot", session=session, cells="none")
        assert after["sequence"] > before["sequence"]
        size = {"rows": 40, "cols": 120, "pixel_width": 7, "pixel_height": 9}
        assert after["size"] == size
        await client.shows(session, "40 120")
        await client.call("session.resize", session=session, rows=41, cols=120)
        last = await client.call("session.snapshot", session=session, cells="none")
        assert last["size"] == {"rows": 41, "cols": 120, "pixel_width": 0, "pixel_height": 0}


async def test_kill_ends_the_program_with_all_it_started_and_leaves_the_screen(
    automation: Serving,
) -> None:
    async with automation() as client:
        session = await client.start("sleep 1000 & echo $$ $! .; wait")
        await client.shows(session, ".")
        pids = [int(pid) for pid in (await client.screen(session)).split()[:2]]
        assert all(map(alive, pids))
        await client.call("session.kill", session=session)
        assert not any(map(alive, pids))
        assert (await client.screen(session)).startswith(" ".join(map(str, pids)))
        assert await client.call("session.kill", session=session) == {"killed": True}


async def test_close_ends_the_program_and_its_pending_waits(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("echo $$ .; cat")
        await client.shows(session, ".")
        pid = int((await client.screen(session)).split()[0])
        waiting = asyncio.create_task(
            client.refused(
                "session.wait", session=session, matcher={"type": "contains_text", "value": "never"}
            )
        )
        await client.call("server.capabilities")  # the wait was read before this
        await client.call("session.close", session=session)
        assert not alive(pid)
        assert (await waiting).code == -32002
