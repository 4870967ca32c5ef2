"""The examples work as described, seen by an HTTP/2 client."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from htty.served import served

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_dashboard_keeps_sending_updates(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dashboard = example("dashboard")
    monkeypatch.setattr(dashboard, "EVERY", 0.01)
    async with served(dashboard.app) as client:
        page = await client.get("/")
        assert page["content-type"] == "text/html; charset=utf-8"
        assert b"http://" not in page.body.replace(b"http://www.w3.org", b"")
        http_stream = await client.ask("/events")
        looks: list[dict[str, float]] = []
        while len(looks) < 3:
            event = await http_stream.read()
            assert event.startswith(b"data: ")
            for line in event.decode().split("\n\n")[:-1]:
                looks += json.loads(line.removeprefix("data: "))
        http_stream.reset()
    assert all(0 <= look["cpu"] <= 100 and 0 < look["memory"] < 100 for look in looks)
    assert "cpu" in capsys.readouterr().out


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a&b <i>.txt").write_text("x")
    (tmp_path / "notes").write_text("x")
    return tmp_path


async def test_a_click_on_a_file_picks_it(root: Path) -> None:
    picker = example("pick_file").Picker(root)
    async with served(picker.app) as client:
        assert b'href="?in=inner"' in (await client.get("/")).body
        page = (await client.get("/?in=inner")).body.decode()
        assert "a&amp;b &lt;i&gt;.txt" in page
        action = re.search(r'action="([^"]*)"', page)
        assert action is not None
        assert not picker.done.is_set()
        assert (await client.get(f"/{action[1]}", "POST", body=b"")).status == 200
    assert picker.done.is_set()
    assert picker.chosen == root / "inner" / "a&b <i>.txt"


async def test_an_upload_picks_the_uploaded_file_and_overwrites_nothing(root: Path) -> None:
    picker = example("pick_file").Picker(root)
    async with served(picker.app) as client:
        taken = await client.get("/upload?in=&name=notes", "POST", body=b"new")
        assert taken.status == 409
        assert (root / "notes").read_text() == "x"
        body = bytes(3_000_000)
        done = await client.get("/upload?in=inner&name=../new.bin", "POST", body=body)
        assert done.status == 200
    assert picker.chosen == root / "inner" / "new.bin"
    assert picker.chosen.read_bytes() == body


async def test_an_interrupted_upload_leaves_no_file(root: Path) -> None:
    picker = example("pick_file").Picker(root)
    async with served(picker.app) as client:
        http_stream = await client.ask("/upload?in=&name=half", "POST", end=False)
        await http_stream.write(b"some")
        await client.http.ping()
        http_stream.reset()
        async with asyncio.timeout(60):
            while (root / "half").exists():
                await client.http.ping()
    assert picker.chosen is None


@pytest.mark.parametrize("path", ["/?in=..", "/?in=/etc", "/?in=notes"])
async def test_the_picker_stays_in_its_directory(root: Path, path: str) -> None:
    async with served(example("pick_file").Picker(root).app) as client:
        assert (await client.get(path)).status == 404
