"""Which models are found, where their keys come from, and what they cost."""

from __future__ import annotations

import asyncio
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from agent.model_servers import CANARY, Scripted, events_of, response
from telex.agent.models import errors
from telex.agent.models.model_keys import BadKey, KeyFile, KeyReader, StoredKey
from telex.agent.models.model_registry import (
    ModelRegistry,
    cost_usd,
    list_served_models,
    presets,
)
from telex.agent.protocol.runs import Usage
from telex.config.errors import ConfigError
from telex.config.model_settings import KeySource, ModelCosts, ModelSection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

URL = "https://api.example/v1"


class Local:
    """Local servers of a test: by base URL, the models they list. Counts the questions."""

    def __init__(self, **served: list[str]) -> None:
        self.served = {presets()[name].base_url: models for name, models in served.items()}
        self.asked: list[str] = []

    async def __call__(self, base_url: str) -> list[str]:
        self.asked.append(base_url)
        if base_url not in self.served:
            raise errors.ModelNotFound(f"nothing answers at {base_url}")
        return self.served[base_url]


def registry(
    tmp_path: Path,
    sections: Mapping[str, ModelSection] = {},
    environ: Mapping[str, str] = {},
    local: Local | None = None,
) -> ModelRegistry:
    return ModelRegistry(
        sections, tmp_path / "state" / "keys.json", environ, list_models=local or Local()
    )


async def test_without_anything_it_is_said_what_is_missing(tmp_path: Path) -> None:
    found = await registry(tmp_path).find()
    assert found.models == ()
    assert {one.provider: one.why for one in found.missing} == {
        "openai": "OPENAI_API_KEY is not set",
        "anthropic": "ANTHROPIC_API_KEY is not set",
        "openrouter": "OPENROUTER_API_KEY is not set",
        "ollama": "nothing answers at http://127.0.0.1:11434/v1",
        "llamacpp": "nothing answers at http://127.0.0.1:8080/v1",
        "vllm": "nothing answers at http://127.0.0.1:8000/v1",
        "lmstudio": "nothing answers at http://127.0.0.1:1234/v1",
    }


async def test_a_key_in_the_environment_or_a_local_server_is_enough(tmp_path: Path) -> None:
    local = Local(ollama=["qwen3:8b", "llama3"])
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/anthropic"}
    models = registry(tmp_path, {}, environ, local)
    found = await models.find()
    assert [(one.name, one.model, one.dialect, one.why) for one in found.models] == [
        ("anthropic", "claude-sonnet-5", "messages", "ANTHROPIC_API_KEY is set"),
        (
            "ollama/qwen3:8b",
            "qwen3:8b",
            "chat",
            "a server answers at http://127.0.0.1:11434/v1",
        ),
        ("ollama/llama3", "llama3", "chat", "a server answers at http://127.0.0.1:11434/v1"),
    ]
    assert found.models[0].base_url == "http://127.0.0.1:9/anthropic/v1"
    assert found.models[0].details.context_window == 200_000
    await asyncio.gather(models.find(), models.find())
    assert len(local.asked) == 4, "each local server is asked once"
    await models.aclose()


async def test_configured_models_come_first_and_no_local_server_is_asked(tmp_path: Path) -> None:
    sections = {
        "anthropic": ModelSection(model="claude-x"),
        "mine": ModelSection(base_url="http://127.0.0.1:9/v1", model="m", context_window=5),
    }
    local = Local(ollama=["x"])
    found = await registry(tmp_path, sections, {"OPENAI_API_KEY": "k"}, local).find()
    assert [(one.name, one.dialect, one.model, one.key_origin) for one in found.models] == [
        ("anthropic", "messages", "claude-x", None),
        ("mine", "chat", "m", None),
        ("openai", "responses", "gpt-5.6", "OPENAI_API_KEY"),
    ]
    assert found.models[1].details.context_window == 5
    assert local.asked == []


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (ModelSection(model="x"), "models.m: base_url is missing"),
        (ModelSection(preset="ollama"), "models.m: model is missing"),
        (ModelSection(preset="olama", model="x"), "unknown preset olama. Did you mean ollama?"),
    ],
)
async def test_an_incomplete_table_is_refused(
    tmp_path: Path, section: ModelSection, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await registry(tmp_path, {"m": section}).find()


async def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    models = registry(tmp_path, {"work": ModelSection(base_url="http://127.0.0.1:9", model="m")})
    with pytest.raises(errors.ModelNotFound, match=r"no model worc. Did you mean work\?"):
        await models.open("worc")
    assert await models.open("work") is await models.open("work")
    await models.aclose()


@pytest.mark.parametrize("url", ["http://ann:hunter2@127.0.0.1:9/v1", "127.0.0.1:9", "http://[::1"])
async def test_an_address_in_a_variable_is_checked_and_not_quoted(tmp_path: Path, url: str) -> None:
    models = registry(tmp_path, {}, {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": url})
    found = await models.find()
    await models.aclose()
    [why] = [one.why for one in found.missing if one.provider == "openai"]
    assert why.startswith("OPENAI_BASE_URL ")
    assert url not in why
    assert "openai" not in [one.name for one in found.models]


async def test_the_key_of_a_provider_does_not_go_to_another_server(tmp_path: Path) -> None:
    """A project's file may set base_url; it must not get the key of the person for that."""
    async with Scripted(response(400)).serving() as server:
        sections = {"openai": ModelSection(base_url=server.url)}
        models = registry(tmp_path, sections, {"OPENAI_API_KEY": CANARY})
        assert (await models.find()).models[0].key_origin is None
        model = await models.open("openai")
        with pytest.raises(errors.RequestRefused):
            await events_of(model)
        await models.aclose()
    assert len(server.requests) == 1
    assert CANARY.encode() not in server.requests[0]


@pytest.mark.parametrize("name", ["openai", "work"])
async def test_a_stored_key_goes_only_to_the_server_for_which_it_was_stored(
    tmp_path: Path, name: str
) -> None:
    async with Scripted(response(400)).serving() as server:
        sections = {name: ModelSection(base_url=server.url, model="m")}
        file = KeyFile(tmp_path / "state" / "keys.json")
        file.store(name, CANARY, "https://elsewhere.example/v1")
        models = registry(tmp_path, sections, {})
        assert (await models.find()).models[0].key_origin is None
        model = await models.open(name)
        with pytest.raises(errors.KeyMissing, match=f"telex agent login {name}"):
            await events_of(model)
        assert server.requests == []
        file.store(name, CANARY, server.url)
        with pytest.raises(errors.RequestRefused):
            await events_of(model)
        await models.aclose()
    assert CANARY.encode() in server.requests[0]


@pytest.mark.parametrize(
    ("preset", "model", "window"),
    [
        ("openai", "gpt-5.5", 1_050_000),
        ("openai", "gpt-5.4-mini-2026-03-05", 400_000),
        ("openai", "gpt-7", None),
        ("anthropic", "claude-opus-5", 200_000),
        ("ollama", "qwen3", None),
    ],
)
async def test_the_window_of_a_known_model_is_known(
    tmp_path: Path, preset: str, model: str, window: int | None
) -> None:
    section = ModelSection(preset=preset, model=model)
    (found, *_) = (await registry(tmp_path, {"m": section}).find()).models
    assert found.details.context_window == window


def test_every_preset_is_whole() -> None:
    assert set(presets()) == {
        *("openai", "anthropic", "ollama", "llamacpp", "vllm", "lmstudio", "openrouter")
    }
    for preset in presets().values():
        assert preset.base_url.startswith("http://127.0.0.1" if preset.local else "https://")
        assert bool(preset.key_env and preset.model) != preset.local


async def test_a_server_is_asked_for_its_models() -> None:
    answers = iter(
        [
            b'{"object":"list","data":[{"id":"a"},{"id":"b\\u001b"},{"id":"nomic-embed"},{"id":"c"}]}',
            b"<html>not for you</html>",
        ]
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(4000)
        if not head:  # it was only asked whether something listens
            writer.close()
            return
        assert head.startswith(b"GET /v1/models ")
        assert b"authorization" not in head.lower()
        body = next(answers)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        assert await list_served_models(url) == ["a", "c"]
        with pytest.raises(errors.ModelNotFound, match="is not one for language models"):
            await list_served_models(url)
    with pytest.raises(errors.ModelNotFound, match="nothing answers at 127"):
        await list_served_models(url)


def test_a_stored_key_is_private_and_can_be_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.json"
    keys = KeyFile(path)
    keys.store("openai", f"  {CANARY}\n", "https://me@API.example:8/v1")
    keys.store("work", "other", URL)
    assert (keys.get("openai"), keys.get("none"), keys.names()) == (
        StoredKey(CANARY, "https://api.example:8"),
        None,
        ("openai", "work"),
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.remove("none") == ()
    assert keys.remove("work") == ("work",)
    assert keys.remove() == ("openai",)
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "  ", "two words", "caf\u00e9", "a\x1bb", "x" * 20_000])
def test_a_text_that_is_no_key_is_refused_without_a_quote(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadKey) as refused:
        KeyFile(tmp_path / "k").store("x", text, URL)
    assert not text.strip() or text not in str(refused.value)


def test_a_damaged_file_of_keys_is_named_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.json"
    path.parent.mkdir(mode=0o700)
    path.write_text(f'{{"openai": {CANARY}')
    with pytest.raises(ConfigError, match="is damaged") as damaged:
        KeyFile(path).names()
    assert CANARY not in str(damaged.value)


async def test_a_key_comes_from_a_command_which_runs_once_in_a_while(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    script = tmp_path / "key.py"
    script.write_text(f"open({str(runs)!r}, 'a').write('x'); print('{CANARY}')")
    source = KeySource(command=f"{sys.executable} '{script}'")
    now = [0.0]
    reader = KeyReader(KeyFile(tmp_path / "none"), {}, clock=lambda: now[0])
    assert await reader.read("m", source, "", "", URL) == CANARY
    assert await reader.read("m", source, "", "", URL) == CANARY
    assert runs.read_text() == "x"
    now[0] += 301
    assert await reader.read("m", source, "", "", URL) == CANARY
    assert runs.read_text() == "xx"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"sh -c 'echo {CANARY}; echo {CANARY} >&2; exit 3'", "failed (exit code 3)"),
        (f"sh -c 'printf \"%s %s\" {CANARY} {CANARY}'", "printed no key"),
        ("sh -c 'kill -9 $$'", "failed (SIGKILL)"),
        ("true", "printed no key: the key is empty"),
        ("/no/such/program x", "cannot be started"),
        ("unclosed 'quote", "cannot be read"),
        (" ", "is empty"),
    ],
)
async def test_a_command_that_fails_is_named_without_its_output(
    tmp_path: Path, command: str, words: str
) -> None:
    reader = KeyReader(KeyFile(tmp_path / "none"), {"PATH": "/usr/bin:/bin"})
    with pytest.raises(errors.KeyMissing) as missing:
        await reader.read("m", KeySource(command=command), "", "", URL)
    assert words in str(missing.value)
    assert CANARY not in str(missing.value)


async def test_a_stored_key_wins_over_the_variable_of_the_provider(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "state" / "keys.json")
    reader = KeyReader(file, {"OPENAI_API_KEY": "from-the-variable"})
    assert await reader.read("gpt", None, "openai", "OPENAI_API_KEY", URL) == "from-the-variable"
    file.store("openai", "stored", URL)
    assert await reader.read("gpt", None, "openai", "OPENAI_API_KEY", URL) == "stored"
    file.store("gpt", "of-the-model", URL)
    assert await reader.read("gpt", None, "openai", "OPENAI_API_KEY", URL) == "of-the-model"
    assert await reader.read("x", None, "", "", URL) == ""
    with pytest.raises(errors.KeyMissing, match="X is not set; set it, or run: telex agent login"):
        await reader.read("x", KeySource(env="X"), "", "", URL)


def test_a_call_costs_what_its_tokens_cost() -> None:
    usage = Usage(1000, 100, 1100, input_cached_tokens=600, input_cache_creation_tokens=100)
    prices = ModelCosts(input=3, output=15, cached_input=0.3, cache_write=3.75)
    cost = cost_usd(prices, usage)
    assert cost == pytest.approx((300 * 3 + 600 * 0.3 + 100 * 3.75 + 100 * 15) / 1e6)
    assert cost_usd(ModelCosts(input=3, output=15), usage) == pytest.approx(0.0045)
    assert cost_usd(ModelCosts(input=3), usage) is None
