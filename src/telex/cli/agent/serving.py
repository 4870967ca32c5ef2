"""An agent behind its doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telex.cli.agent.making import served_agent
from telex.cli.doors import serve
from telex.cli.logs import log_to_stderr
from telex.cli.redacting import redactor_of

if TYPE_CHECKING:
    from telex.cli.agent.making import Wanted
    from telex.cli.doors import Doors


async def serve_agent(wanted: Wanted, doors: Doors) -> None:
    """Its runs end before its doors close: who listens hears how."""
    config = wanted.load()
    log_to_stderr(config.settings.logging.level, redactor_of(config.settings))
    async with served_agent(wanted, config) as server:
        await serve("agent", server.converse, doors, stopping=server.close)
