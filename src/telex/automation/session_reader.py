"""Converts screens and transcripts of a session to wire types, redacted unless asked otherwise.

Every read of the service passes here. Unchanged rows are the same objects as in the read before, so
that a repeated read costs only the changed rows.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from telex.automation import limits
from telex.automation import protocol as spec
from telex.redaction import Redactor
from telex.terminal import actions
from telex.terminal import limits as terminal_limits
from telex.terminal.input_state import InputState
from telex.terminal.redact import (
    Masker,
    RedactedMoment,
    mask_rows,
    masked_state,
    redact_values,
)
from telex.terminal.transcript import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from telex.automation.protocol import (
        ReadScrollback,
        ReadTranscript,
        RedactionRules,
        ScreenCell,
        ScreenRun,
        ScreenSnapshot,
    )
    from telex.processes.child import Exit
    from telex.terminal.cells import Row, Size, Snapshot, Style, StyledRun
    from telex.terminal.session import PtySession
    from telex.terminal.waits.compiler import Evidence
    from telex.terminal.waits.evidence import KeptMoment, LiveMoment


def select_redactor(
    default: Redactor, redact: bool, extra: RedactionRules | None
) -> Redactor | None:
    """Return the redactor for a read, or None. Raises RuleRefused for bad extra rules."""
    if not redact:
        return None
    if extra is None:
        return default
    return Redactor(
        extra_literals=(*default.extra_literals, *extra.extra_literals),
        extra_regexes=(*default.extra_regexes, *extra.extra_regexes),
        replacement=extra.replacement,
    )


class SessionReader:
    """Reads one session, with a cache of converted rows."""

    def __init__(self, session: PtySession, default: Redactor) -> None:
        self._session = session
        self._default = default
        self._masker = Masker(default)
        self._cells: dict[tuple[int, Row], tuple[ScreenCell, ...]] = {}

    def snapshot(self, cells: spec.Cells, redactor: Redactor | None) -> ScreenSnapshot:
        """Read the visible screen."""
        self._session.note_use()
        self._session.mark_sequence()
        state = self._session.input_state()
        seen = self._session.snapshot()
        if redactor is not None and (masker := self._masker_of(redactor)) is not None:
            seen = masker.snapshot(seen, self._session.rows_above())
            state = masked_state(state, seen, redactor)
        return self.to_wire(seen, cells, state)

    def inputs(self, asked: spec.ReadInputs) -> spec.Inputs:
        """Read who typed what. The text is always masked."""
        found, dropped = self._session.inputs.read(self._default, asked.since, asked.limit)
        inputs = [
            spec.SessionInput(one.number, one.sequence, one.at, one.who, one.kind, text)
            for one, text in found
        ]
        return spec.Inputs(tuple(inputs), dropped)

    def properties(self, redactor: Redactor | None) -> spec.Properties:
        """Read the state of the terminal that is not in its cells."""
        self._session.note_use()
        screen, seen = self._session.screen, self._session.snapshot()
        if (masker := self._masker_of(redactor)) is not None:
            seen = masker.snapshot(seen, self._session.rows_above())

        def clean(text: str) -> str:
            return text if redactor is None else redactor.redact(text)

        links = []
        for row, col, width, uri in screen.links():
            cells = seen.rows[row].cells[col : col + width]
            text = "".join([cell.text or " " for cell in cells if cell.width])
            links.append(spec.ScreenLink(row, col, width, text, clean(uri)))
        grounds, colours = screen.colours()
        return spec.Properties(
            title=seen.title,
            bells=screen.bells,
            clipboard=None if screen.clipboard is None else clean(screen.clipboard),
            links=tuple(links),
            palette=spec.ScreenPalette(**grounds, colours=colours),
            clipboard_cut=screen.clipboard_cut,
        )

    def moment_keeper(self, redactor: Redactor | None) -> Callable[[LiveMoment], KeptMoment]:
        """Return a function that stores the moment at which a wait ends, redacted if there is a
        redactor."""
        masker = self._masker_of(redactor)
        return lambda moment: moment.keep(redactor, masker)

    def to_wire(
        self, seen: Snapshot, cells: spec.Cells, state: InputState | UnsetType = UNSET
    ) -> ScreenSnapshot:
        """Convert a snapshot to its wire type."""
        cursor = seen.cursor
        if cells == "full" and seen.size.rows * seen.size.cols > limits.CELLS_TOLD:
            cells = "runs"  # a match must not be lost because its screen is too large
        return spec.ScreenSnapshot(
            size=terminal_size(seen.size),
            cursor=spec.CursorState(cursor.row, cursor.col, cursor.visible),
            sequence=seen.sequence,
            plain_text=seen.plain_text,
            cells=self._all_cells(seen.rows) if cells == "full" else (),
            alternate_screen=seen.alternate_screen,
            application_cursor=seen.application_cursor,
            application_keypad=seen.application_keypad,
            title=seen.title,
            runs=tuple(_runs(seen.rows)) if cells == "runs" else UNSET,
            wrapped=(
                tuple([at for at, row in enumerate(seen.rows) if row.wrapped])
                if cells == "runs"
                else UNSET
            ),
            input_state=state,
        )

    def transcript(self, asked: ReadTranscript, redactor: Redactor | None) -> spec.TranscriptText:
        """Read the printed text, all that is kept or from a cursor on."""
        self._session.note_use()
        transcript = self._session.transcript
        begin = 0 if asked.cursor is None else asked.cursor
        if redactor is None:
            delta = transcript.since(begin)
        else:
            delta = transcript.redacted(redactor, begin)
        text = strip_escapes(delta.text) if asked.strip else delta.text
        return spec.TranscriptText(text, delta.cursor, delta.dropped)

    def scrollback(self, asked: ReadScrollback, redactor: Redactor | None) -> spec.Scrollback:
        """Read rows of the scrollback. A negative start counts from the newest."""
        self._session.note_use()
        screen = self._session.screen
        total = screen.scrollback_length
        start = min(max(total + asked.start if asked.start < 0 else asked.start, 0), total)
        rows = screen.scrollback(start, min(asked.count, total - start))
        if redactor is not None:
            first = max(start - terminal_limits.MASKED_ABOVE_ROWS, 0)
            above, below = screen.scrollback(first, start - first), self._below(start + len(rows))
            rows = mask_rows((*rows, *below), redactor, above)[: len(rows)]
        return spec.Scrollback(
            total=total,
            start=start,
            lines=tuple(row.text for row in rows),
            wrapped=tuple(row.wrapped for row in rows),
            cells=tuple(_cells(rows)) if asked.cells == "full" else UNSET,
            runs=tuple(_runs(rows)) if asked.cells == "runs" else UNSET,
        )

    def _below(self, end: int) -> tuple[Row, ...]:
        """Return the rows after some rows of the scrollback: a secret may continue there."""
        screen, count = self._session.screen, terminal_limits.MASKED_ABOVE_ROWS
        below = screen.scrollback(end, count)
        return below if len(below) == count else (*below, *screen.rows())[:count]

    def _masker_of(self, redactor: Redactor | None) -> Masker | None:
        if redactor is None:
            return None
        return self._masker if redactor is self._default else Masker(redactor)

    def _all_cells(self, rows: tuple[Row, ...]) -> tuple[ScreenCell, ...]:
        kept = self._cells
        self._cells = {
            place: kept[place] if place in kept else tuple(_cells([row], place[0]))
            for place in enumerate(rows)
            for row in (place[1],)
        }
        return tuple([cell for cells in self._cells.values() for cell in cells])


def evidence_data(found: Evidence, moment: KeptMoment, redactor: Redactor | None) -> dict[str, Any]:
    """Convert the evidence of a match to its wire form.

    A group of a pattern is sent if the redacted screen still shows it. The text of a predicate
    need not be on the screen: it is sent unless it quotes a hidden secret.
    """
    if redactor is None:
        return found.render()
    redacted = RedactedMoment(moment, redactor)

    def kept(value: str, key: str) -> bool:
        return key != "capture" or redacted.shows(value)

    def own(value: str, key: str) -> bool:
        return redacted.shows(value) or not redacted.quotes_secret(value)

    def branch(one: Evidence) -> dict[str, Any]:
        if one.kind == "input_wanted":
            seen = masked_state(msgspec.convert(one.facts, InputState), moment.snapshot, redactor)
            return {"kind": one.kind, **dataclasses.asdict(seen)}
        facts = redact_values(one.facts, redactor, own if one.kind == "lua" else kept)
        if isinstance(groups := one.facts.get("groups"), dict):
            facts["groups"] = {
                name: redact_values(text, redactor, kept, "capture")
                for name, text in groups.items()
            }
        shape: dict[str, Any] = {"kind": one.kind, **facts}
        match one.matched:
            case None:
                return shape
            case tuple() as several:
                return {**shape, "matched": [branch(each) for each in several]}
            case single:
                return {**shape, "matched": branch(single)}

    return branch(found)


def wait_failure_data(
    moment: KeptMoment, explanation: dict[str, object], ended: Exit | None
) -> dict[str, Any]:
    """Return why a wait did not match. The stored moment is already redacted if it has to be."""
    lines = moment.text.split("\n")
    return {
        "elapsed_ms": round(moment.elapsed * 1000),
        "sequence": moment.sequence,
        "why": explanation,
        "child": child_state(ended),
        "screen_tail": "\n".join(lines[-limits.TOLD_TAIL_ROWS :]),
        "cursor": {"row": moment.cursor.row, "col": moment.cursor.col},
        "last_change_ms": round((moment.now - moment.last_change) * 1000),
    }


def child_state(ended: Exit | None) -> dict[str, Any]:
    """Return whether the program runs, and its exit code or signal."""
    if ended is None:
        return {"state": "running"}
    return {"state": "exited", "exit_code": ended.code, "signal": ended.signal}


def terminal_size(size: Size) -> actions.TerminalSize:
    return actions.TerminalSize(size.rows, size.cols, size.pixel_width, size.pixel_height)


def _cells(rows: Iterable[Row], first: int = 0) -> Iterable[ScreenCell]:
    for at, row in enumerate(rows, first):
        for col, cell in enumerate(row.cells):
            wide, covered = cell.width == 2, cell.width == 0
            yield spec.ScreenCell(at, col, cell.text, wide, covered, _style(cell.style))


def _runs(rows: Iterable[Row]) -> Iterable[ScreenRun]:
    for at, row in enumerate(rows):
        for run in row.runs:
            widths = UNSET if run.text.isascii() else _widths(row, run)
            yield spec.ScreenRun(at, run.col, run.width, run.text, _style(run.style), widths)


def _widths(row: Row, run: StyledRun) -> tuple[int, ...] | UnsetType:
    cells = [cell for cell in row.cells[run.col : run.col + run.width] if cell.width]
    widths = [n for cell in cells for n in (cell.width, *[0] * (len(cell.text) - 1))]
    return UNSET if set(widths) == {1} else tuple(widths)


_styles: dict[Style, spec.CellStyle] = {}


def _style(style: Style) -> spec.CellStyle:
    if (made := _styles.get(style)) is None:
        if len(_styles) >= limits.STYLES_KEPT:
            _styles.clear()
        made = _styles[style] = spec.CellStyle(
            style.foreground,
            style.background,
            style.bold,
            style.dim,
            style.italic,
            style.underline,
            style.inverse,
            style.strikethrough,
            style.blink,
            style.invisible,
            style.underline_style,
            style.underline_color,
        )
    return made
