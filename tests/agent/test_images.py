"""Images in inputs and of tools: what is refused and stored, and what models and UIs get."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent.model_agents import Answer, Conversation, a_model, scripted_model
from agent.model_servers import DIALECTS
from agent.ui_side import ALL, an_agent
from telex.agent import InvalidParams
from telex.agent.content_store import ContentStore
from telex.agent.images import ImageRefused, image_type, read_input
from telex.agent.limits import AGENT_IMAGE_BYTES, AGENT_INPUT_IMAGES, AGENT_SCREENSHOT_BYTES
from telex.agent.messages import ImagePart, TextPart
from telex.agent.runtime_access import in_process
from telex.agent.sandbox_files import sha256_hex
from telex.cli.agent.composition import Wanted, served_agent
from telex.config import places
from telex.wire.limits import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from agent.ui_side import Ui

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
REFERENCE = f"image:{sha256_hex(PNG)}"


def url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def parts(*images: str, text: str = "what is this?", **more: Any) -> dict[str, Any]:
    shown = [{"type": "image_url", "image_url": {"url": one, **more}} for one in images]
    return {"type": "parts", "parts": [{"type": "text", "text": text}, *shown]}


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (url(b"GIF89a"), ""),
        (url(b"RIFF....WEBP"), ""),
        (url(b"\xff\xd8\xff\xe0"), ""),
        ("https://example.com/a.png", ""),
        ("DATA:x", "begins with data: or https://"),
        ("http://example.com/a.png", "begins with data: or https://"),
        ("file:///etc/passwd", "begins with data: or https://"),
        (f"image:{'../' * 21}x", "begins with data: or https://"),
        ("data:image/png,abc", "must be in base64"),
        ("data:image/png;base64,a!b", "is not base64"),
        (url(b"<svg/>"), "is not an image of the type PNG, JPEG, GIF or WebP"),
        (url(b""), "is not an image"),
        (url(PNG + bytes(AGENT_IMAGE_BYTES)), "has more than 5 MiB"),
    ],
)
def test_an_image_of_another_type_or_size_is_refused(tmp_path: Path, image: str, why: str) -> None:
    store = ContentStore(tmp_path / "images", MIB)
    raw = json.dumps(parts(url(PNG), image)).encode()
    if not why:
        read = read_input(raw, store)
        assert read.text == "what is this?\n[image]\n[image]"
        return
    with pytest.raises(ImageRefused, match=f"part 3 of the input.*{why}"):
        read_input(raw, store)
    assert not store.directory.exists(), "nothing is stored of an input that is refused"


def test_an_input_has_a_bounded_number_of_images(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "images", MIB)
    read_input(json.dumps(parts(*[url(PNG)] * AGENT_INPUT_IMAGES)).encode(), store)
    with pytest.raises(ImageRefused, match="11 images; one may have 10"):
        read_input(json.dumps(parts(*[url(PNG)] * (AGENT_INPUT_IMAGES + 1))).encode(), store)


def test_an_input_is_stored_with_references_and_all_its_other_members(tmp_path: Path) -> None:
    asked = {**parts(url(PNG), detail="low", mine=[1]), "x": 1e300}
    read = read_input(json.dumps(asked).encode(), ContentStore(tmp_path / "images", MIB))
    asked["parts"][1]["image_url"]["url"] = REFERENCE
    assert json.loads(read.input) == asked
    assert read.message.parts == (
        TextPart("what is this?"),
        ImagePart(REFERENCE, "image/png", "low"),
    )


def test_a_store_of_contents_loads_nothing_but_hashes(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    store = ContentStore(tmp_path / "images", MIB)
    assert store.load(store.save(PNG)) == PNG
    for name in ("", "../secret", "..", "a" * 64, sha256_hex(PNG).upper()):
        assert store.load(name) is None


async def asked(ui: Ui, given: dict[str, Any], **more: object) -> str:
    run = (await ui.call("run.start", {"input": given, **more}))["run_id"]
    assert await ui.until_ended(run) == "completed"
    return str(run)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_model_sees_the_image_and_a_replay_says_that_there_was_one(
    tmp_path: Path, dialect: str
) -> None:
    images = tmp_path / "images"
    async with (
        a_model(lambda _: Answer("a cat"), dialect=dialect, images=images) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        ui = await agent.connect(**ALL)
        run = await asked(ui, parts(url(PNG)))
        assert base64.b64encode(PNG).decode() in json.dumps(server.requests[0])
        assert (images / sha256_hex(PNG)).stat().st_mode & 0o777 == 0o600
        (session,) = (await ui.call("session.list"))["sessions"]
        assert session["last_user_message"] == "what is this?\n[image]"
        await ui.call("session.history", {"session_id": session["session_id"]})
        replayed = [one["event"] for one in ui.events(run) if one["seq"] == -1]
        assert [one["content"] for one in replayed] == ["what is this?\n[image]"]
        stored = await agent.runtime.store.run(run)
        assert REFERENCE in stored.input.decode()
        read = await ui.call("artifact.read", {"artifact_id": REFERENCE, "limit": 20})
        more = {"artifact_id": REFERENCE, "offset": read["next_offset"]}
        rest = await ui.call("artifact.read", more)
        assert base64.b64decode(read["data"]) + base64.b64decode(rest["data"]) == PNG
        assert (read["media_type"], read["size"]) == ("image/png", len(PNG))
        exported = b"".join([part async for part in agent.runtime.store.export()])
        assert REFERENCE.encode() in exported
        assert base64.b64encode(PNG) not in exported
        (images / sha256_hex(PNG)).unlink()
        await asked(ui, {"type": "text", "text": "and now?"})
        assert "[image no longer stored]" in json.dumps(server.requests[-1])
        for gone in (REFERENCE, "image:../x"):
            assert "not stored" in str(await ui.refusal("artifact.read", {"artifact_id": gone}))


async def test_a_model_that_sees_no_images_refuses_them_before_the_run(tmp_path: Path) -> None:
    images = tmp_path / "images"
    async with (
        a_model(lambda _: Answer("a cat"), name="sees", images=images) as (sees, _),
        a_model(lambda _: Answer("what?"), name="blind", sees=False) as (blind, server),
        an_agent(tmp_path, sees, blind) as agent,
    ):
        ui = await agent.connect(**ALL)
        await asked(ui, parts(url(PNG)))
        await ui.call("model.set", {"name": "blind"})
        refused = await ui.refusal("run.start", {"input": parts(url(PNG))})
        assert refused.code == -32602
        assert "the model blind does not see images; choose another" in refused.message
        # The image of the turn before is a text for this model.
        await asked(ui, {"type": "text", "text": "and now?"})
        assert "an image, which this model does not see" in json.dumps(server.requests[0])
        details = (await ui.call("model.list", {"include_details": True}))["details"]
        assert details["blind"]["supports_images"] is False
        assert "supports_images" not in details["sees"]


async def test_a_run_with_an_image_goes_on_after_a_restart(tmp_path: Path) -> None:
    def decide(conversation: Conversation) -> Answer:
        if conversation.results:
            return Answer("done")
        return Answer("", [("shell", {"command": "touch made"})])

    returning = {**ALL, "supports_run_attach": True}
    async with a_model(decide, images=tmp_path / "images") as (choice, server):
        async with an_agent(tmp_path, choice) as agent:
            ui = await agent.connect(**returning)
            run = (await ui.call("run.start", {"input": parts(url(PNG))}))["run_id"]
            await ui.until("ui.confirm.request")
            await ui.leave()
        async with an_agent(tmp_path, choice) as agent:
            back = await agent.connect(**returning)
            await back.call("run.attach", {"run_id": run})
            back.answer(await back.until("ui.confirm.request"), {"ok": True})
            assert await back.until_ended(run) == "completed"
        assert base64.b64encode(PNG).decode() in json.dumps(server.requests[-1])


async def test_the_configured_models_load_images_from_the_state_of_telex(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEX_HOME", str(tmp_path))
    root = tmp_path / "work"
    root.mkdir()
    found = places.find()
    async with scripted_model.serve(lambda _: Answer("a cat")) as model:
        table = f'[models.{{}}]\ndialect = "chat"\nbase_url = "{model.url}"\nmodel = "m"\n'
        found.config_file.write_text(
            f"{table.format('sees')}{table.format('blind')}images = false\n"
        )
        async with (
            served_agent(Wanted(root=root)) as server,
            in_process(server.converse) as client,
        ):
            assert (await (await client.run_start("what?", images=[PNG])).wait()).answer == "a cat"
            assert base64.b64encode(PNG).decode() in json.dumps(model.requests[0])
            assert (found.state / "images" / sha256_hex(PNG)).read_bytes() == PNG
            await client.model_set("blind")
            with pytest.raises(InvalidParams, match="the model blind does not see images"):
                await client.run_start("what?", images=[PNG])


async def test_the_builtin_core_sees_no_images(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent, agent.client() as client:
        file = tmp_path / "a.png"
        file.write_bytes(PNG)
        for image in (file, str(file), PNG, url(PNG), "https://example.com/a.png"):
            with pytest.raises(InvalidParams, match="does not see images"):
                await client.run_start("look", images=[image])
        with pytest.raises(InvalidParams, match="is not an image"):
            await client.run_start("look", images=[b"text"])
        with pytest.raises(FileNotFoundError):
            await client.run_start("look", images=["/nowhere"])


def test_the_type_of_an_image_is_that_of_its_first_bytes() -> None:
    assert [image_type(one) for one in (PNG, b"", b"RIFF", b"GIF87a", b"%PDF")] == [
        *("image/png", None, None, "image/gif", None)
    ]


# Images of tools, and what UIs show.


def look(conversation: Conversation) -> Answer:
    """Look at the image, and at two files that are none."""
    if conversation.results:
        return Answer("a cat")
    names = ("a.png", "a.txt", "large.png")
    return Answer("", [("view_image", {"file_path": name}) for name in names])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_model_looks_at_a_file_and_only_uis_that_show_images_get_it(
    tmp_path: Path, dialect: str
) -> None:
    async with (
        a_model(look, dialect=dialect, images=tmp_path / "images") as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        (agent.root / "a.png").write_bytes(PNG)
        (agent.root / "a.txt").write_text("text")
        (agent.root / "large.png").write_bytes(PNG + bytes(AGENT_SCREENSHOT_BYTES))
        shown = await agent.connect(**ALL, supports_images=True)
        run = await asked(shown, {"type": "text", "text": "what is in a.png?"})
        assert base64.b64encode(PNG).decode() in json.dumps(server.requests[1])
        other = await agent.connect(**ALL)
        session = (await other.call("session.list"))["sessions"][0]["session_id"]
        await other.call("session.history", {"session_id": session})
        await other.call("run.attach", {"run_id": run})
        await other.until_ended(run)
        for ui, times, image in ((shown, 1, base64.b64encode(PNG).decode()), (other, 2, None)):
            results = [one for one in ui.events(run) if one["event"]["type"] == "tool_result"]
            by_text = {one["event"]["result"]: one for one in results}
            assert len(results) == 3 * times
            seen = by_text.pop(f"a.png: image/png, {len(PNG)} bytes")
            assert seen["event"].get("screenshot_base64") == image
            assert seen["meta"]["details"]["image"] == REFERENCE
            refused = by_text.pop("a.txt is not an image of the type PNG, JPEG, GIF or WebP")
            assert refused["event"]["is_error"]
            ((_, large),) = by_text.items()
            assert "screenshot_base64" not in large["event"]
            read = await ui.call(
                "artifact.read", {"artifact_id": large["meta"]["details"]["image"]}
            )
            assert read["size"] == len(PNG) + AGENT_SCREENSHOT_BYTES


async def test_an_image_that_cannot_be_stored_is_said_in_the_result(tmp_path: Path) -> None:
    async with a_model(look) as (choice, _), an_agent(tmp_path, choice) as agent:
        (agent.root / "a.png").write_bytes(PNG)
        (tmp_path / "images").write_text("a file is in the way")
        ui = await agent.connect(**ALL, supports_images=True)
        run = await asked(ui, {"type": "text", "text": "what is in a.png?"})
        results = [one["event"] for one in ui.events(run) if one["event"]["type"] == "tool_result"]
        assert any("[the image could not be stored: " in one["result"] for one in results)
        assert not any("screenshot_base64" in one for one in results)


async def test_view_image_is_judged_as_a_read_and_offered_to_models_that_see(
    tmp_path: Path,
) -> None:
    async with (
        a_model(lambda _: Answer("yes"), name="sees") as (sees, first),
        a_model(lambda _: Answer("no"), name="blind", sees=False) as (blind, second),
        an_agent(tmp_path, sees, blind) as agent,
    ):
        (agent.root / "a.png").write_bytes(PNG)
        (agent.root / "id_rsa").write_bytes(PNG)
        ui = await agent.connect(**ALL)
        for name in ("sees", "blind"):
            await ui.call("model.set", {"name": name})
            await asked(ui, {"type": "text", "text": "look"})
        offered = ["view_image" in json.dumps(one.requests[0]["tools"]) for one in (first, second)]
        assert offered == [True, False]
        for path, decision in (("a.png", "allow"), ("id_rsa", "ask")):
            call = {"tool": "view_image", "arguments": {"file_path": path}}
            assert (await ui.call("permission.explain", call))["decision"] == decision
        for images in (True, False):
            ui = await agent.connect(supports_images=images)
            call = {"name": "view_image", "arguments": {"file_path": "a.png"}}
            assert ("screenshot_base64" in (await ui.call("tool.call", call))["result"]) is images


async def test_a_model_is_asked_for_plain_text_if_a_ui_shows_no_markdown(tmp_path: Path) -> None:
    async with (
        a_model(lambda _: Answer("yes")) as (choice, server),
        an_agent(tmp_path, choice) as agent,
    ):
        for markdown in (True, False):
            ui = await agent.connect(**ALL, supports_markdown=markdown)
            await asked(ui, {"type": "text", "text": "hello"})
            system = json.dumps(server.requests[-1]["messages"][0])
            assert ("Write no Markdown" in system) is not markdown
