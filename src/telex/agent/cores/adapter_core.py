"""The core of another agent's TUI, which runs in a terminal and is driven by its adapter.

    the person's text ─> prompt of the adapter ─> states ─> events
                    dialog of the TUI ─> question to the person ─> the chosen option

The program of a thread is started once, after the person has allowed it, and answers every run of
the thread. It keeps the conversation itself. Nothing is decided here in place of the person: each
dialog of the TUI becomes a question with the options as the adapter read them, and its option is
typed only if the same dialog still stands. A screen that the adapter does not know is never taken
for a program at rest: the person gets the screen and the command to attach.

The text of the program is read from its screen in whole entries, so there are no deltas. A manifest
with a table `core` makes a plugin usable here (`telex.adapters.protocol.CoreIntents`).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from telex.agent.cores.adapter_run import AdapterRun, Unanswered
from telex.agent.cores.adapter_start import AdapterFailed
from telex.agent.cores.adapter_terminal import TerminalGone, TerminalProgramEnded
from telex.agent.protocol import events
from telex.agent.protocol.sessions import ModelDetails
from telex.agent.terminal_server import NoTerminalServer
from telex.automation.errors import SessionProblem
from telex.processes.shielded import run_shielded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from telex.adapters.protocol import CoreIntents, Manifest
    from telex.agent.cores import CoreContext, CoreOutput, RunInput
    from telex.agent.cores.adapter_terminal import AdapterTerminal
    from telex.agent.terminal_server import TerminalServer

RECOGNISED_WITHIN: Final = 20.0
"""Seconds after which a screen that is neither known nor busy is shown to the person."""
LOOK_SECONDS: Final = 1.0
"""The least time between two looks at a program that draws while it works."""


class AdapterCore:
    """A core for the program of one plugin."""

    details = ModelDetails(supports_images=False)

    def __init__(
        self,
        manifest: Manifest,
        server: TerminalServer,
        *,
        recognised_within: float = RECOGNISED_WITHIN,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`manifest` has a `core` and a `default_target`."""
        assert manifest.core is not UNSET
        assert manifest.default_target is not None
        self.name = manifest.name
        self.intents: CoreIntents = manifest.core
        self.argv = (manifest.default_target.program, *manifest.default_target.args)
        self.server = server
        self.recognised_within = recognised_within
        self.look_seconds = look_seconds
        self.terminals: dict[str, AdapterTerminal] = {}
        """The terminal of each thread."""
        self.kept: set[str] = set()
        """The threads whose run is resumed by the next runtime, with the same terminal."""
        self.allowed: set[str] = set()
        """The threads in which the person has allowed the program."""

    async def run(self, asked: RunInput, context: CoreContext) -> AsyncIterator[CoreOutput]:
        run = AdapterRun(self, context)
        try:
            async with aclosing(run.outputs(asked)) as outputs:
                async for output in outputs:
                    yield output
        except (asyncio.CancelledError, GeneratorExit):
            if context.is_suspended:
                self.kept.add(context.session_id)
            else:
                await run_shielded(run.interrupt())
            raise
        except Unanswered as unanswered:
            yield events.FinalEvent(str(unanswered))
        except TerminalProgramEnded as ended:
            await run_shielded(self.end_terminal(context.session_id))
            screen = f" Its last screen:\n{ended.screen.strip()}\n" if ended.screen.strip() else " "
            raise AdapterFailed(
                f"{self.name} {ended}.{screen}Send a message to start it again."
            ) from None
        except TerminalGone as gone:
            self.terminals.pop(context.session_id, None)
            raise AdapterFailed(f"{gone}; send a message to start {self.name} again") from None

    async def close(self) -> None:
        """End the programs, except those whose run is resumed."""
        ending = [thread for thread in self.terminals if thread not in self.kept]
        await asyncio.gather(*(self.end_terminal(thread) for thread in ending))

    async def end_terminal(self, thread: str) -> None:
        terminal = self.terminals.pop(thread, None)
        if terminal is not None:
            with suppress(SessionProblem, NoTerminalServer):  # it has ended already
                await terminal.close()
