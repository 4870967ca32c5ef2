"""Agents with language models that a test scripts: real HTTP, real dialects, no provider."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.model_servers import DIALECTS, SOON
from telex.agent.content_store import ContentStore
from telex.agent.cores.model import ModelCore
from telex.agent.images import image_loader
from telex.agent.model_catalogue import ModelChoice
from telex.agent.models.model_client import HttpModel, World
from telex.agent.models.model_dialect import Spelling
from telex.agent.protocol.sessions import ModelDetails
from telex.wire.limits import MIB

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import fix_a_bug  # noqa: E402  an example
import scripted_model  # noqa: E402  an example
from scripted_model import Answer, Conversation, ScriptedModel  # noqa: E402  an example

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


__all__ = ["Answer", "Conversation", "ScriptedModel", "a_model", "fix_a_bug", "scripted_model"]
WINDOW = 20_000
TOO_LONG = Answer(error="maximum context length")
"""The provider refuses the conversation."""


async def no_key() -> str:
    return ""


@asynccontextmanager
async def a_model(
    decide: Callable[[Conversation], Answer],
    *,
    dialect: str = "chat",
    name: str = "scripted",
    provider: str = "here",
    window: int | None = WINDOW,
    images: Path | None = None,
    sees: bool | None = None,
    **core: Any,
) -> AsyncIterator[tuple[ModelChoice, ScriptedModel]]:
    """A model for `an_agent`, and its server. `images` is the directory of the stored images."""
    load = None if images is None else image_loader(ContentStore(images, MIB))
    async with scripted_model.serve(decide) as server:
        model = HttpModel(
            name,
            DIALECTS[dialect],
            server.url,
            Spelling(name, f"{provider}/{dialect}"),
            ModelDetails(context_window=window, supports_images=sees),
            no_key,
            policy=SOON,
            world=World(random=lambda: 0.0, load_image=load),
        )
        try:
            yield ModelChoice(provider, ModelCore(model, provider, **core)), server
        finally:
            await model.aclose()
