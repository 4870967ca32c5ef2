"""The same as `client`, for programs without an event loop. Each method waits for its answer.

Written out and not generated, so that it can be read, completed by an editor, and checked; a test
holds it to `client`, name by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from telex import match
    from telex.automation import protocol as spec
    from telex.automation.client import Server, Signal, Terminal
    from telex.automation.portal import Portal
    from telex.automation.protocol import Matched, ScreenSnapshot
    from telex.terminal import actions
    from telex.terminal.waits.matchers import Since


class BlockingTerminal:
    """One session: type, wait, look. See `Terminal`, whose methods these are."""

    def __init__(self, terminal: Terminal, portal: Portal) -> None:
        self._terminal = terminal
        self._run = portal.run
        self.id = terminal.id

    def __enter__(self) -> BlockingTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def type(self, text: str) -> str:
        return self._run(self._terminal.type(text))

    def press(self, *keys: str) -> str:
        return self._run(self._terminal.press(*keys))

    def paste(self, text: str, *, bracketed: bool = False) -> str:
        return self._run(self._terminal.paste(text, bracketed=bracketed))

    def click(self, row: int, col: int, **how: Any) -> str:
        return self._run(self._terminal.click(row, col, **how))

    def interrupt(self) -> str:
        return self._run(self._terminal.interrupt())

    def eof(self) -> str:
        return self._run(self._terminal.eof())

    def signal(self, name: Signal) -> str:
        return self._run(self._terminal.signal(name))

    def act(self, action: actions.Action) -> str:
        return self._run(self._terminal.act(action))

    def wait(
        self, what: match.What, timeout: float = 30.0, *, since: Since | None = None
    ) -> Matched:
        return self._run(self._terminal.wait(what, timeout, since=since))

    def wait_exit(self, timeout: float = 30.0) -> int | None:
        return self._run(self._terminal.wait_exit(timeout))

    def snapshot(self, *, cells: spec.Cells = "full", redact: bool = True) -> ScreenSnapshot:
        return self._run(self._terminal.snapshot(cells=cells, redact=redact))

    def text(self, *, redact: bool = True) -> str:
        return self._run(self._terminal.text(redact=redact))

    def transcript(self, *, strip: bool = True, redact: bool = True) -> str:
        return self._run(self._terminal.transcript(strip=strip, redact=redact))

    def scrollback(self, *, redact: bool = True) -> tuple[str, ...]:
        return self._run(self._terminal.scrollback(redact=redact))

    def resize(self, rows: int, cols: int) -> None:
        self._run(self._terminal.resize(rows, cols))

    def record(self, path: str | os.PathLike[str] | None, **how: Any) -> None:
        self._run(self._terminal.record(path, **how))

    def kill(self) -> None:
        self._run(self._terminal.kill())

    def close(self) -> None:
        self._run(self._terminal.close())


class BlockingServer:
    """A running server. See `Server`, whose methods these are."""

    def __init__(self, server: Server, portal: Portal) -> None:
        self._server = server
        self._portal = portal

    def __enter__(self) -> BlockingServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def spawn(self, command: str | Sequence[str], **how: Any) -> BlockingTerminal:
        terminal = self._portal.run(self._server.spawn(command, **how))
        return BlockingTerminal(terminal, self._portal)

    def sessions(self) -> tuple[str, ...]:
        return self._portal.run(self._server.sessions())

    def terminal(self, id: str) -> BlockingTerminal:
        return BlockingTerminal(self._server.terminal(id), self._portal)

    def close(self) -> None:
        self._portal.run(self._server.close())
