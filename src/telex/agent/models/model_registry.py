"""Finds the language models of a person, says why each was found, and opens them.

In this order: the tables `[models.NAME]` of the configuration; the providers of `presets.toml`
whose key is set or stored; the local servers of `presets.toml` that answer. Local servers are asked
once in the life of a registry, all at the same time, and only if the configuration has no model.
"""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from telex.agent.limits import MODEL_LIST_BYTES, MODEL_LISTED, MODEL_PROBE_SECONDS
from telex.agent.models.errors import ModelFailure, ModelNotFound
from telex.agent.models.model_keys import KeyFile, KeyReader
from telex.agent.models.token_estimate import estimate_request
from telex.agent.protocol.sessions import ModelDetails
from telex.config.errors import WrongValue
from telex.config.model_settings import ModelCosts, ModelSection, check_url
from telex.rpc.nearest import did_you_mean, nearest_names

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from pathlib import Path

    from telex.agent.models import ModelEvent, ModelRequest
    from telex.agent.models.model_client import HttpModel, World
    from telex.agent.models.model_dialect import ModelDialect
    from telex.agent.protocol.runs import Usage

DialectName = Literal["chat", "responses", "messages"]


class Preset(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider of `presets.toml`."""

    title: str
    dialect: DialectName
    base_url: str
    key_env: str = ""
    url_env: str = ""
    url_path: str = ""
    local: bool = False
    model: str = ""
    reasoning: bool = False
    cache_key: bool = False
    max_tokens_member: str = "max_tokens"
    thinking_budget: tuple[str, ...] = ()
    windows: dict[str, int] = {}

    def address(self, environ: Mapping[str, str]) -> str:
        """Return the base URL, which a variable may replace. Raises `WrongValue`."""
        found = environ.get(self.url_env, "").rstrip("/") if self.url_env else ""
        if not found:
            return self.base_url
        check_url(found, self.url_env)
        return found if found.endswith(self.url_path) else found + self.url_path


@cache
def presets() -> dict[str, Preset]:
    """Return the providers that are known, by name."""
    text = files("telex.agent.models").joinpath("presets.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Preset])


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that can be called."""

    name: str
    provider: str
    """The preset, or the name in the configuration if there is none."""
    dialect: DialectName
    base_url: str
    model: str
    """The provider's name of it."""
    section: ModelSection
    preset: Preset | None
    why: str
    """Why it was found, in words."""
    key_origin: str | None
    """Where its key comes from, in words; None if there is none."""

    @property
    def details(self) -> ModelDetails:
        costs = self.section.costs
        return ModelDetails(
            context_window=self.section.context_window or self._known_window(),
            max_output_tokens=self.section.max_output_tokens,
            cost_per_1m_input_tokens_usd=costs.input,
            cost_per_1m_output_tokens_usd=costs.output,
            supports_images=self.section.images,
        )

    def _known_window(self) -> int | None:
        windows = {} if self.preset is None else self.preset.windows
        known = [start for start in windows if self.model.startswith(start)]
        return windows[max(known, key=len)] if known else None

    def cost_usd(self, usage: Usage) -> float | None:
        """Return the price of a call; None if the prices are not configured."""
        return cost_usd(self.section.costs, usage)


def cost_usd(costs: ModelCosts, usage: Usage) -> float | None:
    """Return the price of a call in US dollars; None if a price that is needed is unknown. Pure."""
    if costs.input is None or costs.output is None:
        return None
    cached = usage.input_cached_tokens or 0
    written = usage.input_cache_creation_tokens or 0
    plain = max(0, usage.input_tokens - cached - written)
    at_cached = costs.input if costs.cached_input is None else costs.cached_input
    at_written = costs.input if costs.cache_write is None else costs.cache_write
    total = plain * costs.input + cached * at_cached + written * at_written
    return (total + usage.output_tokens * costs.output) / 1_000_000


@dataclass(frozen=True, slots=True)
class MissingProvider:
    """A provider that is known and cannot be used now."""

    provider: str
    why: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All models that were found, in order of preference, and the providers that were not."""

    models: tuple[FoundModel, ...]
    missing: tuple[MissingProvider, ...]


class RegisteredModel:
    """A model that was found. It is opened when it is first called: most of those that are listed
    never are. A `LanguageModel`."""

    def __init__(self, registry: ModelRegistry, found: FoundModel) -> None:
        self._registry = registry
        self.name = found.name
        self.details = found.details

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        model = await self._registry.open(self.name)
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                yield event

    def estimate_tokens(self, request: ModelRequest) -> int:
        return estimate_request(request)


class ModelRegistry:
    """The language models of one configuration. Close it with `aclose`."""

    def __init__(
        self,
        sections: Mapping[str, ModelSection],
        key_file: Path,
        environ: Mapping[str, str] = os.environ,
        *,
        list_models: Callable[[str], Awaitable[list[str]]] | None = None,
        load_image: Callable[[str], Awaitable[bytes]] | None = None,
    ) -> None:
        """
        Args:
            sections: The tables `[models.NAME]`.
            list_models: Asks a local server for its models. Raises `ModelFailure`.
            load_image: Returns the bytes of an image by its reference. Raises `OSError`.
        """
        self._sections = sections
        self._environ = environ
        self._file = KeyFile(key_file)
        self._keys = KeyReader(self._file, environ)
        self._list_models = list_models or list_served_models
        self._load_image = load_image
        self._asking: asyncio.Task[dict[str, list[str] | str]] | None = None
        self._opened: dict[str, HttpModel] = {}

    async def find(self) -> Findings:
        """Return the models. Raises `ConfigError` for a table that is not complete."""
        found = [self._configured(name, section) for name, section in self._sections.items()]
        missing: list[MissingProvider] = []
        for name, preset in presets().items():
            if name in self._sections or preset.local:
                continue
            try:
                address = preset.address(self._environ)
            except WrongValue as wrong:
                missing.append(MissingProvider(name, str(wrong)))
                continue
            origin = self._keys.origin(name, None, name, preset.key_env, address)
            if origin is None:
                missing.append(MissingProvider(name, f"{preset.key_env} is not set"))
            else:
                why = f"{origin} is set" if origin == preset.key_env else f"by {origin}"
                found.append(self._of_preset(name, name, preset, preset.model, why))
        if not self._sections:
            for name, answer in (await self._local_models()).items():
                preset = presets()[name]
                if isinstance(answer, str):
                    missing.append(MissingProvider(name, answer))
                    continue
                why = f"a server answers at {preset.base_url}"
                found += (
                    self._of_preset(f"{name}/{model}", name, preset, model, why) for model in answer
                )
        return Findings(tuple(found), tuple(missing))

    async def open(self, name: str, world: World | None = None) -> HttpModel:
        """Return the model of this name, as `find` lists it; the same object each time.

        Raises:
            ModelNotFound: There is no such model; the message has the nearest names.
        """
        if (opened := self._opened.get(name)) is not None:
            return opened
        models = {one.name: one for one in (await self.find()).models}
        if name not in models:
            near = did_you_mean(nearest_names(name, models))
            hint = near or "See: telex agent models"
            raise ModelNotFound(f"there is no model {name}. {hint}")
        return self._opened.setdefault(name, self._make(models[name], world))

    def logout(self) -> tuple[str, ...]:
        """Forget all stored keys, and return their names. Keys in variables are not ours."""
        self._keys.forget()
        return self._file.remove()

    async def aclose(self) -> None:
        """Close the connections of all models."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        opened, self._opened = self._opened, {}
        for model in opened.values():
            await model.aclose()

    def _configured(self, name: str, section: ModelSection) -> FoundModel:
        wanted = section.preset or (name if name in presets() else "")
        preset = presets().get(wanted)
        if wanted and preset is None:
            near = did_you_mean(nearest_names(wanted, presets()))
            hint = near or f"Presets are {', '.join(presets())}."
            raise WrongValue(f"models.{name}.preset: unknown preset {wanted}. {hint}")
        base_url = base_url_of(name, section, self._environ)
        model = section.model or ("" if preset is None else preset.model)
        for member, value in (("base_url", base_url), ("model", model)):
            if not value:
                raise WrongValue(f"models.{name}: {member} is missing")
        # The key of a provider must not go to another server.
        key_env = preset.key_env if preset is not None and not section.base_url else ""
        dialect = section.dialect or ("chat" if preset is None else preset.dialect)
        return FoundModel(
            name,
            wanted or name,
            dialect,
            base_url,
            model,
            section,
            preset,
            f"[models.{name}] in the configuration",
            self._keys.origin(name, section.key, wanted, key_env, base_url),
        )

    def _of_preset(
        self, name: str, provider: str, preset: Preset, model: str, why: str
    ) -> FoundModel:
        address = preset.address(self._environ)
        origin = self._keys.origin(provider, None, provider, preset.key_env, address)
        return FoundModel(
            name, provider, preset.dialect, address, model, ModelSection(), preset, why, origin
        )

    async def _local_models(self) -> dict[str, list[str] | str]:
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_local_servers())
        return await asyncio.shield(self._asking)

    async def _ask_local_servers(self) -> dict[str, list[str] | str]:
        local = {name: preset for name, preset in presets().items() if preset.local}
        answers = await asyncio.gather(*(self._ask(preset) for preset in local.values()))
        return dict(zip(local, answers, strict=True))

    async def _ask(self, preset: Preset) -> list[str] | str:
        try:
            return await self._list_models(preset.base_url) or "the server has no model"
        except ModelFailure as failure:
            return str(failure)

    def _make(self, found: FoundModel, world: World | None) -> HttpModel:
        from telex.agent.models.model_client import (
            DEFAULT_DEADLINES,
            HttpModel,
            World,
        )
        from telex.agent.models.model_dialect import Spelling

        section, preset = found.section, found.preset
        spelling = Spelling(
            found.model,
            f"{found.provider}/{found.dialect}",
            section.max_output_tokens,
            reasons=bool(preset and preset.reasoning)
            if section.reasoning is None
            else section.reasoning,
            effort=section.effort,
            thinking_budget=preset is not None and found.model.startswith(preset.thinking_budget),
            cache_key=preset is not None and preset.cache_key,
            max_tokens_member="max_tokens" if preset is None else preset.max_tokens_member,
        )
        deadlines = replace(
            DEFAULT_DEADLINES,
            first=section.first_seconds or DEFAULT_DEADLINES.first,
            silence=section.silence_seconds or DEFAULT_DEADLINES.silence,
        )
        own = not section.base_url
        key_env = preset.key_env if preset is not None and own else ""

        async def key() -> str:
            return await self._keys.read(
                found.name, section.key, found.provider, key_env, found.base_url
            )

        return HttpModel(
            found.name,
            dialect_of(found.dialect),
            found.base_url,
            spelling,
            found.details,
            key,
            deadlines=deadlines,
            world=world or World(load_image=self._load_image),
        )


def base_url_of(name: str, section: ModelSection | None, environ: Mapping[str, str]) -> str:
    """Return the server of a table or of a provider; empty if none is named."""
    if section is not None and section.base_url:
        return section.base_url
    preset = presets().get((section.preset if section is not None else "") or name)
    return "" if preset is None else preset.address(environ)


def dialect_of(name: DialectName) -> ModelDialect:
    """Return the dialect of this name. Each is imported when it is used."""
    match name:
        case "chat":
            from telex.agent.models.chat_dialect import ChatDialect

            return ChatDialect()
        case "responses":
            from telex.agent.models.responses_dialect import ResponsesDialect

            return ResponsesDialect()
        case "messages":
            from telex.agent.models.messages_dialect import MessagesDialect

            return MessagesDialect()


async def _check_listens(base_url: str) -> None:
    """Connect, and close again. Raises `ModelNotFound` if nothing listens there."""
    address = urlsplit(base_url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with asyncio.timeout(MODEL_PROBE_SECONDS):
            _, writer = await asyncio.open_connection(address.hostname, port)
            writer.close()
            await writer.wait_closed()
    except TimeoutError:
        raise ModelNotFound(f"the server at {address.netloc} did not answer") from None
    except OSError:
        raise ModelNotFound(f"nothing answers at {address.netloc}") from None


class _Listed(Struct, frozen=True):
    id: str


class _List(Struct, frozen=True):
    data: list[_Listed]


_NO_CHAT: Final = re.compile(r"embed|rerank|whisper", re.IGNORECASE)
"""Models that a server has beside those for conversations."""
_LIST: Final = msgspec.json.Decoder(_List)


async def list_served_models(base_url: str) -> list[str]:
    """Return the models for conversations that a server lists. Raises `ModelNotFound`."""
    host = urlsplit(base_url).netloc
    await _check_listens(base_url)
    import httpx  # imported here: most machines have no such server, and it takes 0.3 s

    body = bytearray()
    try:
        async with (
            asyncio.timeout(MODEL_PROBE_SECONDS),
            httpx.AsyncClient(trust_env=False, verify=False, timeout=MODEL_PROBE_SECONDS) as client,
            client.stream("GET", f"{base_url}/models") as response,
        ):
            chunks = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
            async with aclosing(chunks):
                async for chunk in chunks:
                    body += chunk
                    if len(body) > MODEL_LIST_BYTES:
                        raise ModelNotFound(f"the server at {host} lists too much")
        listed: Any = _LIST.decode(bytes(body)).data
    except TimeoutError:
        raise ModelNotFound(f"the server at {host} did not answer") from None
    except httpx.HTTPError:
        raise ModelNotFound(f"nothing answers at {host}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ModelNotFound(f"the server at {host} is not one for language models") from None
    names = [one.id for one in listed[:MODEL_LISTED] if one.id.isprintable()]
    return [name for name in names if not _NO_CHAT.search(name)]
