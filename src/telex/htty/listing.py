"""The page that lists a directory. Sans-IO: names and numbers in, HTML out. Used by `directory`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLE: Final = """
:root { color-scheme: light dark; --line: #8883; --dim: #888; --hover: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2.5rem auto; padding: 0 1rem;
  background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e4e6ea); }
h1 { font-size: 1.15rem; font-weight: 600; overflow-wrap: anywhere; }
p { color: var(--dim); }
table { width: 100%; border-collapse: collapse; }
td { padding: .35rem .6rem; border-top: 1px solid var(--line); }
td:first-child { overflow-wrap: anywhere; }
td + td { width: 1%; color: var(--dim); text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
tr:hover td { background: var(--hover); }
a { color: light-dark(#0b57d0, #8ab4f8); text-decoration: none; }
a:hover { text-decoration: underline; }
code { font: .95em ui-monospace, monospace; }
@media (max-width: 34rem) { td:last-child { display: none; } }
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory."""

    name: str
    folder: bool
    size: int
    changed: float


def listing(path: str, entries: Sequence[Entry], *, cut: bool = False) -> bytes:
    """Folders first, then by name. `path` ends with a slash."""
    ordered = sorted(entries, key=lambda entry: (not entry.folder, entry.name.casefold()))
    rows = [_row("../", "..", "", "")] if path != "/" else []
    rows += [_entry(entry) for entry in ordered]
    note = "" if entries else "<p>Nothing here.</p>"
    if cut:
        note = f"<p>Only the first {len(entries)} names are listed.</p>"
    return page(path, f"<table>{''.join(rows)}</table>{note}")


def page(title: str, body: str, *, head: str = "") -> bytes:
    """A page like all of ours. The body is HTML, the title is text."""
    shown = escape(title)
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{shown}</title>{head}<style>{STYLE}</style><h1>{shown}</h1>{body}</html>\n"
    )
    return text.encode(errors="replace")  # names that are no UTF-8


def _entry(entry: Entry) -> str:
    slash = "/" if entry.folder else ""
    # A name with a colon would be read as a scheme.
    link = f"./{quote(os.fsencode(entry.name))}{slash}"
    changed = datetime.fromtimestamp(entry.changed, UTC).strftime("%Y-%m-%d %H:%M")
    return _row(link, entry.name + slash, "" if entry.folder else _readable(entry.size), changed)


def _row(link: str, name: str, size: str, changed: str) -> str:
    return (
        f'<tr><td><a href="{escape(link)}">{escape(name)}</a></td>'
        f"<td>{size}</td><td>{changed}</td></tr>"
    )


def _readable(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
