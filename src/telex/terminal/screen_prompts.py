"""Prompts, menus, pagers and editors, recognised on a screen.

Pure functions of rows and cursor. A screen alone proves nothing: a program may print a prompt and
then work. `input_state` asks the kernel first, and uses these shapes to tell the kinds of waiting
apart, or where the kernel does not tell.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telex.terminal.cells import Cell, Cursor, Row

_POINTERS: Final = "❯›▸►➤➜→▶»⏵‣>*"
_BOXES: Final = r"[◯◉○●◌☐☑☒◻◼✔✓]|\[[ xX*✓✔-]\]|\([ xX*•●-]\)"
_POINTED: Final = re.compile(rf"^(\s*[{re.escape(_POINTERS)}]\s*)((?:{_BOXES})\s*)?(\S.*)$")
_UNPOINTED: Final = re.compile(rf"^(\s+)((?:{_BOXES})\s*)?(\S.*)$")
_NUMBERED: Final = re.compile(r"(\d{1,3})[).]\s+(\S(?:.*?\S)??)(?=\s{2,}\d{1,3}[).]\s|\s*$)")
_BUTTONS: Final = re.compile(r"<\s*([^<>│┃|]{1,24}?)\s*>|\[\s*(\w[^\[\]│┃|]{0,22}?)\s*\]")
_BORDERS: Final = re.compile(r"[\u2500-\u257f]")
_RULE: Final = re.compile(r"[\s\u2500-\u257f=_.-]*")
_PASSWORD: Final = re.compile(
    r"(?i)\b(password|passphrase|passcode|pin|secret)\b|"
    r"\(press TAB for no echo\)|口令|密码"
)
_ASKED: Final = re.compile(r"(?i)(\?|\?.*[\])>:]|\[[^\]]{1,24}\]:?|\([^)]{1,24}\)\s*[:?]?)$")
_LABEL: Final = re.compile(
    r"(?i)\b(name|user|login|e-?mail|address|number|choice|option|selection|answer|input|value|enter|"
    r"type|select|choose|url|host|port|path|file|date|message|search|query|token|code|key)\b[^:]*:$"
)
_READY: Final = re.compile(r"(?:^|[^\s>])\s?(?:[$#❯➜λ»›]|(?<!\d)(?<!\d )%)$|>{1,3}$|^\.\.\.$")
_SHELL_PROMPT: Final = re.compile(
    r"(?:\(\S+\) )?(?:\[?[\w.+-]+@[\w.-]+\b.*|[~/]\S*|\w*sh-[\d.]+|\S*[^\s\d$#%>]|) ?[$#%❯➜λ]|"
    r"[\w.()=-]{0,32}>{1,3}"
)
"""Prompts that other output hardly has: a user and a machine, a path, or one word."""
_PASSWORD_PROMPT: Final = re.compile(
    r"(?:\[sudo\] password for \S+|(?:\S+@\S+'s p|(?:\(\S+\) )?P)assword(?: for \S+)?|"
    r"Enter passphrase for .+) ?:"
)
"""The prompts of `sudo`, `su`, `login` and `ssh`."""
_FORM_PROMPT: Final = re.compile(
    r"(?i).{0,120}[\[(](?:y(?:es)?/no?|no?/y(?:es)?)(?:/[^)]*)?[\])][:?]?|"
    r"(?:(?:please|enter|your|the|new|full|first|last|user|host|file) ?)*"
    r"(?:name|login|e-?mail|address|choice|selection|answer|password) ?:"
)
"""A yes or no in brackets, or the label of a form and nothing else."""
_ANY_KEY: Final = re.compile(
    r"(?i)\b(any|a|enter|return|space) ?(?:key|bar)?\b.*\b(?:continue|proceed|exit|quit|close)|"
    r"\b(?:press|hit|strike)\b"
)
_PAGER: Final = re.compile(
    r"(?i)^(?:\(END\)|:|.*\(END\)|.*--More--.*|-- more --.*|lines \d+.*|.*\(press h for help.*)$"
)
_NANO: Final = re.compile(r"\^G (?:Get )?Help\b")
_VIM_MODE: Final = re.compile(r"^-- (?:INSERT|VISUAL|REPLACE|VISUAL LINE|VISUAL BLOCK) --")
_MOST_CHOICES: Final = 200
_WIDE: Final = 0.9
"""The part of a row's width from which a highlighted run is a bar, and no item of a menu."""


@dataclass(frozen=True, slots=True)
class MenuShape:
    """Choices on the screen, of which one may be selected."""

    choices: tuple[str, ...]
    selected: int | None
    rows: tuple[int, ...]
    prompt: str | None


@dataclass(frozen=True, slots=True)
class ScreenShape:
    """The shapes on a screen that ask for input."""

    cursor_row: int
    prompt: str | None
    """The text left of the cursor."""
    ready: bool = False
    """It ends like the prompt of a shell or an interpreter."""
    asks: bool = False
    """It ends like a question to a person."""
    question: bool = False
    """It ends with a question mark, or with an answer to choose in brackets."""
    names_password: bool = False
    clear: Literal["shell", "password", "line"] | None = None
    """The kind, if the row has hardly another meaning and begins at the left edge."""
    any_key: bool = False
    """It asks for any key."""
    menu: MenuShape | None = None
    in_menu: bool = False
    """The cursor is in the menu, or hidden."""
    field: bool = False
    """The cursor is in a field of a dialog box; `names_password` is of the box then."""
    pager: bool = False
    inverse: bool = False
    """The cursor is in the last row behind inverse text alone, as behind a pager's prompt."""
    editor: bool = False


def read_shape(rows: Sequence[Row], cursor: Cursor) -> ScreenShape:
    """Recognise what a screen asks for."""
    texts = [row.text for row in rows]
    before = _text_before(rows, cursor) if cursor.visible else ""
    prompt = before.strip() or None
    last = next((text for text in reversed(texts) if text.strip()), "")
    buttons = _find_buttons(rows)
    field = buttons is not None and cursor.visible and _in_field(rows, cursor, buttons)
    menu = None if field else _find_menu(rows, cursor, buttons)
    asked = prompt or ""
    inverse = _ends_inverse(rows, cursor)
    return ScreenShape(
        cursor.row,
        _box_title(texts, cursor.row) if field else prompt,
        ready=bool(asked and _READY.search(asked)),
        asks=bool(_ASKED.search(asked) or _LABEL.search(asked)),
        question=bool(_ASKED.search(asked)),
        names_password=bool(
            any(_PASSWORD.search(text) for text in texts[: cursor.row])
            if field
            else _PASSWORD.search(asked) and asked.endswith((":", "?", ")", "]", ">"))
        ),
        clear=_clear_kind(before.rstrip()),
        any_key=bool(_ANY_KEY.search(asked or last)),
        menu=menu,
        in_menu=menu is not None and (not cursor.visible or cursor.row in menu.rows),
        field=field,
        pager=inverse or bool(_PAGER.match(last.strip())),
        inverse=inverse,
        editor=_looks_like_editor(texts),
    )


def _clear_kind(row: str) -> Literal["shell", "password", "line"] | None:
    if not row:
        return None
    if _PASSWORD_PROMPT.fullmatch(row):
        return "password"
    if _SHELL_PROMPT.fullmatch(row):
        return "shell"
    return "line" if _FORM_PROMPT.fullmatch(row) else None


def _text_before(rows: Sequence[Row], cursor: Cursor) -> str:
    """Return the text left of the cursor, with the rows above that wrap into its row."""
    if cursor.row >= len(rows):
        return ""
    text = "".join(
        [cell.text or " " for cell in rows[cursor.row].cells[: cursor.col] if cell.width]
    )
    row = cursor.row
    while row and rows[row - 1].wrapped:
        row -= 1
        text = rows[row].printed_text + text
    return text


def _ends_inverse(rows: Sequence[Row], cursor: Cursor) -> bool:
    """Whether the cursor is in the last row, behind inverse text alone, as behind less's prompt."""
    if cursor.row != len(rows) - 1 or not cursor.col:
        return False
    cells = rows[cursor.row].cells[: cursor.col]
    return all(cell.style.inverse for cell in cells)


def _looks_like_editor(texts: list[str]) -> bool:
    tildes = sum(text == "~" for text in texts)
    return (
        tildes >= 3
        or any(_VIM_MODE.match(text) for text in texts[-2:])
        or any(_NANO.search(text) for text in texts[-3:])
    )


# Menus.


def numbered_choices(rows: Sequence[Row], cursor: Cursor) -> MenuShape | None:
    """Return the numbered choices right above the cursor's row, as `select` of a shell has them."""
    found: dict[int, str] = {}
    first = cursor.row
    for number in range(cursor.row - 1, max(cursor.row - _MOST_CHOICES, -1), -1):
        items = [(int(one[1]), one[2]) for one in _NUMBERED.finditer(rows[number].text)]
        if not items or not rows[number].text.lstrip()[:1].isdigit():
            break
        found.update(items)
        first = number
        if items[0][0] == 1:
            break
    if len(found) < 2 or sorted(found) != list(range(1, len(found) + 1)):
        return None
    choices = tuple([found[number] for number in sorted(found)])
    prompt = _text_before(rows, cursor).strip() or None
    return MenuShape(choices, None, tuple(range(first, cursor.row + 1)), prompt)


def _find_menu(rows: Sequence[Row], cursor: Cursor, buttons: MenuShape | None) -> MenuShape | None:
    return _pointed_list(rows, cursor) or _highlighted_list(rows) or buttons


def _pointed_list(rows: Sequence[Row], cursor: Cursor) -> MenuShape | None:
    """Find a list of which one item has a pointer before it."""
    texts = [_inside(row.text) for row in rows]
    for number, text in enumerate(texts):
        if (found := _POINTED.match(text)) is None:
            continue
        col = len(text) - len(found[3])
        if cursor.visible and cursor.row == number and cursor.col >= col:
            continue  # it is an input line, and the cursor is in it
        first, last = number, number
        while first > 0 and _is_item(texts[first - 1], col):
            first -= 1
        while last + 1 < len(texts) and _is_item(texts[last + 1], col):
            last += 1
        if last > first:
            choices = tuple([text[col:].strip() for text in texts[first : last + 1]])
            return _shape(rows, choices, number - first, range(first, last + 1))
    return None


def _is_item(text: str, col: int) -> bool:
    found = _UNPOINTED.match(text)
    return found is not None and len(text) - len(found[3]) == col


def _inside(text: str) -> str:
    """Return a row's text with the borders of a box as blanks."""
    return _BORDERS.sub(" ", text).rstrip()


def _highlighted_list(rows: Sequence[Row]) -> MenuShape | None:
    """Find a column of items of which one is highlighted. A bar over the whole width is none, and
    neither is the last row: status lines are there."""
    for number, row in enumerate(rows[:-1]):
        for start, end in _highlights(row):
            found = _column(rows, number, start, end)
            if found is not None:
                return found
    return None


def _highlights(row: Row) -> list[tuple[int, int]]:
    """Return the runs of cells with a background of their own."""
    if all(run.style.background == "default" and not run.style.inverse for run in row.runs):
        return []  # most rows; their runs are kept with them
    common = _common_ground(row.cells)
    runs: list[tuple[int, int]] = []
    start = 0
    for ground, members in groupby(row.cells, key=_ground):
        end = start + len(list(members))
        if ground != common and end - start < _WIDE * len(row.cells):
            runs.append((start, end))
        start = end
    return runs


def _ground(cell: Cell) -> tuple[bool, str]:
    return cell.style.inverse, cell.style.background


def _common_ground(cells: tuple[Cell, ...]) -> tuple[bool, str]:
    """Return the background of the borders of a box in a row; without one, that of most cells."""
    borders = [_ground(cell) for cell in cells if _BORDERS.match(cell.text or " ")]
    return Counter(borders or map(_ground, cells)).most_common(1)[0][0]


def _column(rows: Sequence[Row], number: int, start: int, end: int) -> MenuShape | None:
    text = _cells_text(rows[number], start, end)
    if not text.strip() or _BORDERS.search(text) or not any(map(str.isalnum, text)):
        return None
    start += len(text) - len(text.lstrip())
    lit = _ground(rows[number].cells[start])

    def is_item(row: Row) -> bool:
        before, cell = row.cells[start - 1] if start else None, row.cells[start]
        clear = (
            before is None or not (before.text or " ").strip() or bool(_BORDERS.match(before.text))
        )
        shown = bool((cell.text or "").strip()) and not _BORDERS.match(cell.text)
        return clear and shown and _ground(cell) != lit

    first, last = number, number
    while first > 0 and is_item(rows[first - 1]):
        first -= 1
    while last + 1 < len(rows) - 1 and is_item(rows[last + 1]):
        last += 1
    if last == first or last - first > _MOST_CHOICES:
        return None
    choices = tuple([_item_text(row, start) for row in rows[first : last + 1]])
    return _shape(rows, choices, number - first, range(first, last + 1))


def _item_text(row: Row, start: int) -> str:
    text = _cells_text(row, start, len(row.cells))
    border = _BORDERS.search(text)
    return (text[: border.start()] if border else text).strip()


def _cells_text(row: Row, start: int, end: int) -> str:
    return "".join([cell.text or " " for cell in row.cells[start:end] if cell.width])


def _find_buttons(rows: Sequence[Row]) -> MenuShape | None:
    """Find a row of buttons, `< Yes >  < No >`, within a box."""
    for number in range(len(rows) - 1, -1, -1):
        row = rows[number]
        if not _BORDERS.search(row.text):
            continue
        found = [*_BUTTONS.finditer(row.text)]
        if not found:
            continue
        lit = [_is_lit(row, one.start() + 1) for one in found]
        selected = lit.index(True) if lit.count(True) == 1 else None
        names = tuple([(one[1] or one[2]).strip() for one in found])
        return _shape(rows, names, selected, range(number, number + 1))
    return None


def _is_lit(row: Row, col: int) -> bool:
    return _ground(row.cells[col]) != _common_ground(row.cells)


def _in_field(rows: Sequence[Row], cursor: Cursor, buttons: MenuShape) -> bool:
    """Whether the cursor is in an empty field above the buttons of a box."""
    if cursor.row >= buttons.rows[0] or cursor.row >= len(rows):
        return False
    at = rows[cursor.row].cells[min(cursor.col, len(rows[0].cells) - 1)].text
    return (at or " ").strip(" _") == "" and bool(_BORDERS.search(rows[cursor.row].text))


def _box_title(texts: list[str], row: int) -> str | None:
    above = [_inside(text).strip() for text in texts[:row]]
    return next((text for text in reversed(above) if text), None)


def _shape(
    rows: Sequence[Row], choices: tuple[str, ...], selected: int | None, where: range
) -> MenuShape:
    prompt = None
    for number in range(where.start - 1, max(where.start - 6, -1), -1):
        text = rows[number].text
        if not _RULE.fullmatch(text):
            prompt = _inside(text).strip()
            break
    return MenuShape(choices, selected, tuple(where), prompt)
