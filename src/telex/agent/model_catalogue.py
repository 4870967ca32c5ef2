"""The cores of one runtime by provider and name, and the model that a run uses.

A session may have a model of its own (`model.set` with the scope `session`), which is stored with
the session. Every other run uses the model of the runtime: the one that was chosen last, at first
the first one of the catalogue.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from telex.agent.cores import ClosableCore
from telex.agent.errors import NoSuchModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from telex.agent.cores import Core
    from telex.agent.protocol.sessions import ModelSource
    from telex.agent.run_settings import RunSettings
    from telex.agent.store import Store

BUILTIN: Final = "builtin"
"""The provider of the cores without a language model. They continue only runs of their own."""
ADAPTER: Final = "adapter"
"""The provider of the TUIs of other agents. They continue only runs of their own, and no other core
continues theirs: an open question of such a run belongs to a dialog on its terminal."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A core with its provider. `source`: for whom it was chosen."""

    provider: str
    core: Core
    source: ModelSource = "config"

    @property
    def name(self) -> str:
        return self.core.name


class ModelName(msgspec.Struct, frozen=True):
    """A model as it is stored with a session."""

    provider: str
    name: str


class _ThreadMeta(msgspec.Struct):
    model: ModelName | None = None


class ModelCatalogue:
    """The models of one runtime. The list is made when it is first needed."""

    def __init__(
        self,
        store: Store,
        discover: Callable[[], Awaitable[Sequence[ModelChoice]]],
        forget_keys: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        """`discover` returns the models, at least one; the first one is the default. `forget_keys`
        deletes the stored keys of all providers, and returns their names; it blocks."""
        self._store = store
        self._discover = discover
        self.forget_keys = forget_keys
        self._discovering = asyncio.Lock()
        self._choices: Sequence[ModelChoice] = ()
        self._default: ModelChoice | None = None

    async def all(self) -> Sequence[ModelChoice]:
        async with self._discovering:
            if not self._choices:
                self._choices = await self._discover()
                self._default = self._choices[0]
        return self._choices

    async def of_provider(self, provider: str) -> list[ModelChoice]:
        """Return the models of a provider: the newest first, those without a date after them."""
        found = [choice for choice in await self.all() if choice.provider == provider]
        found.sort(key=lambda choice: choice.core.details.release_date or "", reverse=True)
        return found

    async def current(self, session_id: str | None, chosen: ModelName | None) -> ModelChoice:
        """Return the model of the next run in a session. `chosen` counts for a session that does
        not exist yet. A stored choice whose model is gone is passed over."""
        wanted = chosen if session_id is None else await self._of_session(session_id)
        found = None if wanted is None else await self._named(wanted)
        if found is not None:
            return replace(found, source="session")
        await self.all()
        assert self._default is not None
        return self._default

    async def for_resume(self, session_id: str, settings: RunSettings) -> ModelChoice | None:
        """Return the model that continues a stored run: the model of its session, the one that
        began the run, or the default. None if none of them can continue it."""
        began = ModelName(settings.provider or BUILTIN, settings.model)
        current = await self.current(session_id, None)
        of_session = current if current.source == "session" else None
        if began.provider == ADAPTER:
            return await self._named(began)
        for choice in (of_session, await self._named(began), current):
            if choice is not None and (
                choice.provider not in (BUILTIN, ADAPTER) or _is(choice, began)
            ):
                return choice
        return None

    async def find(self, name: str, provider: str | None) -> ModelChoice:
        """Return a model by its name. Without a provider the current one's counts first. Raises
        `NoSuchModel`."""
        choices = await self.all()
        assert self._default is not None
        providers = list(dict.fromkeys((self._default.provider, *(c.provider for c in choices))))
        if provider is not None and provider not in providers:
            raise NoSuchModel(
                f"unknown provider {provider!r}; known providers: {', '.join(providers)}"
            )
        for searched in providers if provider is None else [provider]:
            if (found := await self._named(ModelName(searched, name))) is not None:
                return found
        known = ", ".join(c.name for c in choices if provider in (None, c.provider))
        raise NoSuchModel(f"unknown model {name!r}; known models: {known}")

    def set_default(self, choice: ModelChoice) -> None:
        """Use a model in every session without a choice of its own, from the next run on."""
        self._default = choice

    async def set_for_session(self, session_id: str, choice: ModelChoice | None) -> None:
        """Store the model of a session; None removes the choice. Raises `UnknownThread`."""
        named = None if choice is None else ModelName(choice.provider, choice.name)
        value = None if named is None else msgspec.json.encode(named)
        await self._store.set_thread_member(session_id, "model", value)

    async def close(self) -> None:
        """End what the cores hold, after all runs have stopped."""
        closing = [one.core.close() for one in self._choices if isinstance(one.core, ClosableCore)]
        await asyncio.gather(*closing)

    async def _named(self, wanted: ModelName) -> ModelChoice | None:
        return next((choice for choice in await self.all() if _is(choice, wanted)), None)

    async def _of_session(self, session_id: str) -> ModelName | None:
        meta = (await self._store.thread(session_id)).meta
        try:
            return msgspec.json.decode(meta or b"{}", type=_ThreadMeta).model
        except msgspec.ValidationError:  # an imported session may have any meta
            return None


def _is(choice: ModelChoice, named: ModelName) -> bool:
    return (choice.provider, choice.name) == (named.provider, named.name)
