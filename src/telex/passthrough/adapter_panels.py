"""The panels of `telex adapter try` and `telex adapter record`."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, structs

from telex.adapters.classification import classify, watch_state
from telex.adapters.context import session_context
from telex.adapters.fixtures import NAME, Expected, Fixture, FixtureTaken, free_name, save_fixture
from telex.adapters.lua.worker_pool import WorkerPool
from telex.adapters.protocol import COMPLETED_TURN_STABLE_MS
from telex.passthrough.panel_view import PanelLine
from telex.terminal import limits
from telex.terminal.redact import Masker

if TYPE_CHECKING:
    from pathlib import Path

    from telex.adapters.classification import Classified
    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.passthrough.panel_view import PanelView
    from telex.redaction import Redactor
    from telex.terminal.session import PtySession


HEAD, BROKEN, DIM, RED = "7", "97;41", "2", "31"
EVIDENCE_ROWS: Final = 2


class TryPanel:
    """Shows a plugin's classification of the program above: state, confidence, rule, evidence and
    metadata. A `panel_view.Panel`.
    """

    height = 2 + EVIDENCE_ROWS
    answer: str | None = None

    def __init__(self, plugin: LuaPlugin, key: str) -> None:
        self._plugin = plugin
        self._key = key
        self._classified: Classified | None = None
        self._view: PanelView | None = None

    async def live(self, view: PanelView) -> None:
        self._view = view
        pool = WorkerPool()
        try:
            await watch_state(view.session, pool.instance(self._plugin), self._update)
        finally:
            await pool.close()

    def pressed(self) -> None:
        if self._view is not None:
            self._view.leave()

    def typed(self, data: bytes) -> bytes:
        return data  # this panel asks nothing

    def lines(self) -> list[PanelLine]:
        name, found = self._plugin.name, self._classified
        if found is None or self._view is None:
            return [PanelLine(f" {name} · not asked yet", f"{self._key} quits ", HEAD)]
        hint = f"{_time(found.seconds)} · {self._key} quits "
        head = PanelLine(f" {name} · {summary(found)}", hint, BROKEN if found.problem else HEAD)
        if found.problem is not None:
            text = f"{found.problem.function}: {found.problem.problem}"
            return [head, *_wrapped(text, self._view.cols, RED, self.height - 1)]
        body = _wrapped(found.state.evidence, self._view.cols, "", EVIDENCE_ROWS)
        if isinstance(found.state.metadata, dict):
            shown = json.dumps(found.state.metadata, ensure_ascii=False, sort_keys=True)
            body += _wrapped(shown, self._view.cols, DIM, self.height - 1 - len(body))
        return [head, *body]

    def _update(self, found: Classified) -> None:
        self._classified = found
        if self._view is not None:
            self._view.changed()


def summary(found: Classified) -> str:
    """Summarize a classification: state, confidence and rule, or the problem."""
    state = found.state
    if found.problem is not None:
        return f"{state.state} ({found.problem.kind})"
    rule = f" · rule {state.rule}" if isinstance(state.rule, str) else ""
    return f"{state.state} {state.confidence:.2f}{rule}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.1f} s"


def _wrapped(text: str, cols: int, style: str, rows: int) -> list[PanelLine]:
    """Wrap a text into at most so many rows. The last row gets the rest, and is cut when drawn."""
    found = textwrap.wrap(" ".join(text.split()), max(8, cols - 2))
    shown = [*found[: rows - 1], " ".join(found[rows - 1 :])] if found[rows:] else found
    return [PanelLine(f" {line}", style=style) for line in shown]


UNKNOWN: Final = "unknown"
_PROMPT: Final = " save as: "
_KEY: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)
"""The bytes of one key: an escape sequence, or a single byte."""
_ENTER, _RUB_OUT = (b"\r", b"\n"), (b"\x7f", b"\b")
_NO: Final = (b"\x1b", b"\x03")


@dataclass(frozen=True, slots=True)
class CapturedScreen:
    """The state of a session at one moment, redacted, and as the plugin receives it."""

    text: str
    attributes: dict[str, Any]
    """Attributes of the screen beside its text: cursor, size, title."""
    transcript: str
    context: dict[str, Any]
    """The context that the plugin received."""


def capture_screen(
    session: PtySession, redactor: Redactor, plugin: LuaPlugin | None, now: float
) -> CapturedScreen:
    """Capture the session now."""
    shown = Masker(redactor).snapshot(session.snapshot(), session.rows_above())
    permissions = frozenset() if plugin is None else plugin.permissions
    cursor, size = shown.cursor, shown.size
    attributes: dict[str, Any] = {
        "screen_cursor": {"row": cursor.row, "col": cursor.col, "visible": cursor.visible},
        "size": {"rows": size.rows, "cols": size.cols},
    }
    if shown.alternate_screen:
        attributes["alternate_screen"] = True
    if shown.title is not None:
        attributes["title"] = shown.title
    transcript = session.transcript
    first = max(transcript.start, transcript.cursor - limits.TRANSCRIPT_TAIL_CHARS)
    recent = transcript.redacted(redactor, first).text if _reads_transcript(plugin) else ""
    return CapturedScreen(
        shown.plain_text, attributes, recent, session_context(session, permissions, now)
    )


def _reads_transcript(plugin: LuaPlugin | None) -> bool:
    return plugin is not None and "transcript.read" in plugin.permissions


async def expectation(taken: CapturedScreen, instance: Instance | None) -> Expected:
    """Return the expectation that is saved with a captured screen."""
    if instance is None:
        return _unknown(taken)
    bare = Expected(state=UNKNOWN, context=taken.attributes)
    live = await classify(instance, taken.context)
    saved = await _classify_saved(taken, bare, instance)
    if _state_and_rule(live) != _state_and_rule(saved):
        # The screen alone did not decide. Only then save more: a transcript makes a long fixture.
        bare = structs.replace(bare, context=taken.attributes | _more_context(taken))
        saved = await _classify_saved(taken, bare, instance)
    if saved.problem is not None:
        return structs.replace(_unknown(taken), context=bare.context)
    return structs.replace(bare, state=saved.state.state, rule=saved.state.rule)


def _unknown(taken: CapturedScreen) -> Expected:
    """Return an expectation for the person to edit: no plugin classified the screen."""
    note = "edit: name the state that this screen shows"
    return Expected(state=UNKNOWN, context=taken.attributes, note=note)


async def _classify_saved(
    taken: CapturedScreen, expected: Expected, instance: Instance
) -> Classified:
    """Classify the screen as it will be read from the fixture."""
    return await classify(instance, Fixture("", taken.text, expected).context())


def _state_and_rule(found: Classified) -> tuple[object, object]:
    return found.state.state, found.state.rule


def _more_context(taken: CapturedScreen) -> dict[str, Any]:
    """Return context beside the screen that the plugin may have used."""
    found: dict[str, Any] = {}
    if (stable := taken.context["stable_ms"]) < COMPLETED_TURN_STABLE_MS:
        found["stable_ms"] = stable
    return {**found, "transcript": taken.transcript} if taken.transcript else found


class RecordPanel:
    """Saves the screen above as a fixture when its key is pressed. A `panel_view.Panel`.

    The screen is captured when the key is pressed, whatever the program does while the person types
    a name. Secrets are masked before anything is written. The expected state is the plugin's
    classification of the masked screen, read as `telex adapter test` will read it: the test then
    passes, and the person corrects a wrong state.
    """

    height = 2

    def __init__(
        self,
        name: str,
        key: str,
        directory: Path,
        redactor: Redactor,
        plugin: LuaPlugin | None,
        problem: str,
    ) -> None:
        self.saved: list[str] = []
        """The names of the fixtures that were written."""
        self._name = name
        self._key = key
        self._directory = directory
        self._redactor = redactor
        self._plugin = plugin
        self._problem = problem
        self._news = PanelLine(f" fixtures go to {directory}")
        self._typed: str | None = None
        self._taken: CapturedScreen | None = None
        self._classified: Classified | None = None
        self._view: PanelView | None = None
        self._unsaved: deque[tuple[str, CapturedScreen]] = deque()
        self._more = asyncio.Event()

    @property
    def answer(self) -> str | None:
        return None if self._typed is None else _PROMPT + self._typed

    def lines(self) -> list[PanelLine]:
        if self._typed is not None:
            hint = f"enter saves as {self._typed or free_name(self._directory)} · esc does not "
            return [PanelLine(_PROMPT + self._typed, hint, HEAD), self._news]
        style, now = HEAD, ""
        if (found := self._classified) is not None:
            style, now = BROKEN if found.problem else HEAD, f" · now {summary(found)}"
        count = f"{len(self.saved)} saved"
        head = PanelLine(f" {self._name} · {count}{now}", f"{self._key} saves this screen ", style)
        return [head, PanelLine(f" {self._problem}", style=RED) if self._problem else self._news]

    # Keys.

    def pressed(self) -> None:
        if self._view is not None:
            now = asyncio.get_running_loop().time()
            self._taken = capture_screen(self._view.session, self._redactor, self._plugin, now)
            self._typed = ""

    def typed(self, data: bytes) -> bytes:
        for key in _KEY.finditer(data):
            self._press(key[0])
            if self._typed is None:
                return data[key.end() :]
        return b""

    def _press(self, key: bytes) -> None:
        typed = self._typed or ""
        if key in _ENTER:
            self._enqueue(typed)
        elif key in _NO:
            self._typed = self._taken = None
        elif key in _RUB_OUT:
            self._typed = typed[:-1]
        elif key == b"\x15":
            self._typed = ""
        elif len(key) == 1 and NAME.fullmatch(more := typed + key.decode("latin-1")):
            self._typed = more

    def _enqueue(self, typed: str) -> None:
        if self._taken is not None:
            self._unsaved.append((typed, self._taken))
            self._more.set()
        self._typed = self._taken = None

    # Background work.

    async def live(self, view: PanelView) -> None:
        self._view = view
        pool = WorkerPool()
        instance = None if self._plugin is None else pool.instance(self._plugin)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._save_all(instance))
                if instance is not None:
                    both.create_task(watch_state(view.session, instance, self._update))
        finally:
            while self._unsaved:  # the program exited before the plugin had classified it
                self._save_next(_unknown(self._unsaved[0][1]))
            await pool.close()

    async def _save_all(self, instance: Instance | None) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            while self._unsaved:
                self._save_next(await expectation(self._unsaved[0][1], instance))

    def _save_next(self, expected: Expected) -> None:
        typed, taken = self._unsaved.popleft()
        self._save(typed or free_name(self._directory), taken, expected)
        if self._view is not None:
            self._view.changed()

    def _save(self, name: str, taken: CapturedScreen, expected: Expected) -> None:
        self._problem = ""
        try:
            save_fixture(self._directory, name, taken.text, expected)
        except FixtureTaken as there:
            self._news = PanelLine(f" not saved: {there}", style=RED)
        except OSError as error:
            why = f"{error.filename}: {error.strerror}"
            self._news = PanelLine(f" not saved: {why}", style=RED)
        else:
            self.saved.append(name)
            note = "" if expected.note is UNSET else " (edit its state)"
            self._news = PanelLine(f" saved {name} as {expected.state}{note}")

    def _update(self, found: Classified) -> None:
        self._classified = found
        if self._view is not None:
            self._view.changed()
