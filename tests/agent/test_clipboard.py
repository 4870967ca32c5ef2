"""The clipboard of the person: when it is asked for, of whom, and what the model gets."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_agents import Answer, Conversation, a_model
from agent.ui_side import ALL, an_agent
from telex.agent.limits import AGENT_CLIPBOARD_BYTES, AGENT_IMAGE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Message, Ui

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
IMAGE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
ABLE = {**ALL, "supports_clipboard_read": True}


def paste(conversation: Conversation) -> Answer:
    if "clipboard_read" not in conversation.tools:
        return Answer("there is no clipboard")
    asked = [text for text in conversation.said if "paste" in text]
    if len(conversation.results) == len(asked):
        return Answer(f"it says: {conversation.results[-1]}")
    kind = "image" if "image" in asked[-1] else "text"
    return Answer("", [("clipboard_read", {"kind": kind, "reason": "you\nasked"})])


async def allowed(ui: Ui, text: str = "paste it") -> tuple[str, Message]:
    """Start a run, allow the call, and return the run and the request for the clipboard."""
    run = await ui.start(text)
    ui.answer(await ui.until("ui.confirm.request", run_id=run), {"ok": True})
    return run, await ui.until("ui.clipboard.read", run_id=run)


def result(ui: Ui, run: str) -> Message:
    (found,) = [one["event"] for one in ui.events(run) if one["event"]["type"] == "tool_result"]
    return dict(found)


@pytest.mark.parametrize(
    ("answer", "said", "is_error"),
    [
        ({"ok": True, "items": [{"type": "text", "text": "rm -rf", "bytes": 6}]}, "rm -rf", False),
        ({"ok": True}, "[the clipboard is empty]", False),
        ({"ok": False, "cancelled": True}, "the person did not give the clipboard", True),
        (
            {"ok": False, "error": "no\x1b[2J display"},
            "the UI could not read the clipboard: no\\u{1b}[2J display",
            True,
        ),
        (
            {"ok": True, "items": [{"type": "text", "text": "x" * (AGENT_CLIPBOARD_BYTES + 1)}]},
            "the clipboard has a text of more than 1048576 bytes",
            True,
        ),
        (
            {"ok": True, "items": [{"type": "image", "data_url": "https://example.com/a.png"}]},
            "the clipboard: the data: URL must be in base64",
            True,
        ),
        ({"items": 1}, "the UI did not give the clipboard", True),
    ],
)
async def test_a_model_gets_what_the_person_copied_or_why_not(
    tmp_path: Path, answer: Any, said: str, is_error: bool
) -> None:
    async with a_model(paste) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ABLE)
        run, asked = await allowed(ui)
        assert asked["params"] == {
            "run_id": run,
            "purpose": "text_paste",
            "formats": ["text/plain"],
            "max_bytes": AGENT_CLIPBOARD_BYTES,
            "prompt": "you\\u{a}asked",
        }
        ui.answer(asked, answer)
        assert await ui.until_ended(run) == "completed"
        assert ui.statuses(run) == [
            *("running", "awaiting_ui", "running", "awaiting_ui", "running", "completed")
        ]
        found = result(ui, run)
        assert (found["result"][: len(said)], found.get("is_error", False)) == (said, is_error)
        assert said in ui.final(run)


async def test_a_model_sees_the_image_that_the_person_copied(tmp_path: Path) -> None:
    async with (
        a_model(paste, images=tmp_path / "images") as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        ui = await agent.connect(**ABLE)
        run, asked = await allowed(ui, "paste the image")
        assert asked["params"]["purpose"] == "image_attachment"
        assert asked["params"]["max_bytes"] == AGENT_IMAGE_BYTES
        ui.answer(asked, {"ok": True, "items": [{"type": "image", "data_url": IMAGE}]})
        assert await ui.until_ended(run) == "completed"
        assert result(ui, run)["result"] == "[an image from the clipboard]"
        assert IMAGE in json.dumps(server.requests[1])


async def test_the_person_is_asked_in_every_mode_and_the_answer_is_not_remembered(
    tmp_path: Path,
) -> None:
    async with (
        a_model(paste) as (choice, _),
        an_agent(tmp_path, choice, mode="full") as agent,
    ):
        ui = await agent.connect(**ABLE)
        for _ in range(2):
            run = await ui.start("paste it", new_session=True)
            question = await ui.until("ui.confirm.request")
            assert "allow_remember" not in question["params"]
            assert "the clipboard may contain anything" in question["params"]["message"]
            ui.answer(question, {"ok": False, "reason": "no", "remember": True})
            assert await ui.until_ended(run) == "completed"
            assert result(ui, run)["result"] == "Permission denied: no"
        assert all(one.get("method") != "ui.clipboard.read" for one in ui.heard)


async def test_only_the_ui_whose_person_said_yes_is_read(tmp_path: Path) -> None:
    async with a_model(paste) as (choice, _), an_agent(tmp_path, choice) as agent:
        first, second = await agent.connect(**ABLE), await agent.connect(**ABLE)
        run = await first.start("paste it")
        await second.call("run.attach", {"run_id": run})
        await first.until("ui.confirm.request")
        second.answer(await second.until("ui.confirm.request"), {"ok": True})
        asked = await second.until("ui.clipboard.read")
        second.answer(asked, {"ok": True, "items": [{"type": "text", "text": "mine"}]})
        assert await first.until_ended(run) == "completed"
        assert first.final(run) == "it says: mine"
        assert all(one.get("method") != "ui.clipboard.read" for one in first.heard)


async def test_the_tool_is_offered_only_where_a_ui_can_read_the_clipboard(tmp_path: Path) -> None:
    async with a_model(paste) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ALL)
        run = await ui.start("paste it")
        assert await ui.until_ended(run) == "completed"
        assert ui.final(run) == "there is no clipboard"
        asked = ui.send("tool.call", {"name": "clipboard_read"})
        ui.answer(await ui.until("ui.confirm.request"), {"ok": True})
        answer = await ui.reply(asked)
        assert answer == {
            "ok": False,
            "result": "no UI is connected that can read the clipboard",
        }


@pytest.mark.parametrize("half", [True, False])
async def test_a_ui_that_leaves_gives_no_clipboard(tmp_path: Path, half: bool) -> None:
    async with a_model(paste) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui, other = await agent.connect(**ABLE), await agent.connect(**ALL)
        run, _ = await allowed(ui)
        await other.call("run.attach", {"run_id": run})
        if half:
            ui.finish()
        else:
            await ui.leave()
        assert await other.until_ended(run) == "completed"
        assert "the UI left before it gave the clipboard" in result(other, run)["result"]


async def test_a_cancel_withdraws_the_request(tmp_path: Path) -> None:
    async with a_model(paste) as (choice, _), an_agent(tmp_path, choice) as agent:
        ui = await agent.connect(**ABLE)
        run, asked = await allowed(ui)
        await ui.call("run.cancel", {"run_id": run})
        withdrawn = await ui.until("ui.request.cancel") if not _told(ui) else _told(ui)
        assert withdrawn["params"] == {"id": asked["id"], "reason": "withdrawn", "run_id": run}
        assert await ui.until_ended(run) == "cancelled"
        ui.answer(asked, {"ok": True, "items": [{"type": "text", "text": "late"}]})
        run, asked = await allowed(ui)
        ui.answer(asked, {"ok": True})
        assert await ui.until_ended(run) == "completed", "the late answer has no effect"


def _told(ui: Ui) -> Message:
    return next((one for one in ui.heard if one.get("method") == "ui.request.cancel"), {})


async def test_a_client_answers_by_a_function(tmp_path: Path) -> None:
    copied: list[Any] = ["a text", PNG, None, "x" * (AGENT_CLIPBOARD_BYTES + 1)]
    async with (
        an_agent(tmp_path) as agent,
        agent.client(confirm=lambda _: True, clipboard=lambda _: copied.pop(0)) as client,
    ):
        results = [await client.tool_call("clipboard_read", {}) for _ in range(4)]
    assert [(one.ok, one.result) for one in results] == [
        (True, "a text"),
        (True, "[an image from the clipboard]"),
        (False, "the person did not give the clipboard"),
        (
            False,
            "the UI could not read the clipboard: it has 1048577 bytes, and may have 1048576",
        ),
    ]
