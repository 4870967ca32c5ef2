"""An ASGI app that serves a directory: its files, and a page that lists them. For `--dir`.

No file outside the directory is ever opened, whatever paths and links contain, even while files are
renamed: files are opened relative to the directory and checked by their descriptor. Names that
begin with a dot are neither listed nor served, unless that is enabled, and the target of a link is
checked like a named file. Read only.

Conditions are RFC 9110 §13, ranges §14. Several ranges in one request are ignored, as the RFC
allows: only attackers would use them here.
"""

from __future__ import annotations

import asyncio
import errno
import mimetypes
import os
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote_to_bytes

from telex.htty import limits
from telex.processes.openat import open_beneath
from telex.processes.proc import descriptor_path
from telex.wire import limits as wire_limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from starlette.types import Receive, Scope, Send


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
class DirectoryEntry:
    """One name in a directory listing."""

    name: str
    folder: bool
    size: int
    changed: float


def listing_page(path: str, entries: Sequence[DirectoryEntry], *, cut: bool = False) -> bytes:
    """Return the page of a directory: folders first, then by name. `path` ends with a slash."""
    ordered = sorted(entries, key=lambda entry: (not entry.folder, entry.name.casefold()))
    rows = [_row("../", "..", "", "")] if path != "/" else []
    rows += [_entry_row(entry) for entry in ordered]
    note = "" if entries else "<p>Nothing here.</p>"
    if cut:
        note = f"<p>Only the first {len(entries)} names are listed.</p>"
    return html_page(path, f"<table>{''.join(rows)}</table>{note}")


def html_page(title: str, body: str, *, head: str = "") -> bytes:
    """Return a page in our style. The body is HTML, the title is text."""
    shown = escape(title)
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{shown}</title>{head}<style>{STYLE}</style><h1>{shown}</h1>{body}</html>\n"
    )
    return text.encode(errors="replace")  # names may not be UTF-8


def _entry_row(entry: DirectoryEntry) -> str:
    slash = "/" if entry.folder else ""
    # A name with a colon would be parsed as a scheme.
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


_RANGE: Final = re.compile(rb"bytes=([0-9]{0,18})-([0-9]{0,18})")
_TAG: Final = re.compile(rb'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class FilePart:
    """A range of a file, and the status of the response with it."""

    status: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Validators:
    """The values that identify a version of a file, for conditional requests."""

    tag: bytes
    changed: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Validators:
        tag = f'"{stat.st_ino:x}-{stat.st_size:x}-{stat.st_mtime_ns:x}"'
        return cls(tag.encode(), int(stat.st_mtime))

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"etag", self.tag),
            (b"last-modified", formatdate(self.changed, usegmt=True).encode()),
        ]


def requested_part(headers: Mapping[bytes, bytes], size: int, now: Validators) -> FilePart:
    """Return the part of a file to send. 304 and 416 have none."""
    if _unchanged(headers, now):
        return FilePart(304, 0, 0)
    asked = _RANGE.fullmatch(headers.get(b"range", b"").strip())
    if asked is None or asked[0] == b"bytes=-" or not _same(headers.get(b"if-range"), now):
        return FilePart(200, 0, size)
    first, last = asked.groups()
    if not first:  # a suffix range
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return FilePart(200, 0, size)  # an invalid range is ignored, §14.1.1
    return FilePart(206, start, end - start) if start < end else FilePart(416, 0, 0)


def _unchanged(headers: Mapping[bytes, bytes], now: Validators) -> bool:
    tags = headers.get(b"if-none-match")
    if tags is not None:
        return tags.strip() == b"*" or now.tag in _TAG.findall(tags)
    since = _date(headers.get(b"if-modified-since"))
    return since is not None and now.changed <= since


def _same(condition: bytes | None, now: Validators) -> bool:
    """Whether the client's version of the file is the current one."""
    return condition is None or condition.strip() == now.tag or _date(condition) == now.changed


def _date(value: bytes | None) -> float | None:
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value.decode("latin-1")).timestamp()
    except ValueError:
        return None


if TYPE_CHECKING:
    Fields = list[tuple[bytes, bytes]]

_PIECE: Final = 256 * wire_limits.KIB
_HTML: Final = b"text/html; charset=utf-8"
_OURS: Final = [
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"content-type", _HTML),
]
"""The headers of pages that this module generates."""
_PLAIN: Final = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-cache")]
"""Files change: a browser revalidates each time, and gets 304 if nothing changed."""


class DirectoryApp:
    """Serves the files beneath `root`."""

    def __init__(self, root: Path, *, hidden: bool = False) -> None:
        self._root = root
        self._hidden = hidden

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise RuntimeError(f"a directory does not serve {scope['type']!r}")
        answer = _FileResponse(send)
        if scope["method"] not in ("GET", "HEAD"):
            await answer.error(405, "A directory can only be read.", [(b"allow", b"GET, HEAD")])
            return
        try:
            await self._find(scope, answer)
        except OSError as error:
            if answer.begun:
                raise
            await answer.error(*_refusal(error))

    async def _find(self, scope: Scope, answer: _FileResponse) -> None:
        path = os.fsdecode(unquote_to_bytes(scope.get("raw_path") or scope["path"].encode()))
        names = [name for name in path.split("/") if name]
        if any(not self._shown(name) for name in names):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        found = self._open("/".join(names) or ".")
        try:
            status = os.fstat(found)
            if stat.S_ISDIR(status.st_mode):
                await self._folder(names, found, path, scope, answer)
            else:
                await _send_file(path, found, status, scope, answer)
        finally:
            os.close(found)

    async def _folder(
        self, names: list[str], found: int, path: str, scope: Scope, answer: _FileResponse
    ) -> None:
        if not path.endswith("/"):
            # Relative: an absolute path that begins with two slashes would name a host.
            await answer.redirect(f"./{quote(os.fsencode(names[-1]))}/")
            return
        index = "/".join([*names, "index.html"])
        try:
            file = self._open(index)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EXDEV):
                raise
            await self._list(found, names, answer)
            return
        try:
            await _send_file(index, file, os.fstat(file), scope, answer)
        finally:
            os.close(file)

    async def _list(self, found: int, names: list[str], answer: _FileResponse) -> None:
        entries, cut = await asyncio.to_thread(self._entries, found)
        path = "".join(f"{name}/" for name in ["", *names])
        await answer.whole(200, listing_page(path, entries, cut=cut), _OURS)

    def _open(self, path: str) -> int:
        """Open a file. Not in a thread: a cancelled request would leave the descriptor open."""
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            found = open_beneath(root, path)
            if not self._hidden and not _is_visible(root, found):
                os.close(found)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return found
        finally:
            os.close(root)

    def _shown(self, name: str) -> bool:
        return name not in (".", "..") and (self._hidden or not name.startswith("."))

    def _entries(self, found: int) -> tuple[list[DirectoryEntry], bool]:
        with os.scandir(found) as names:
            shown = (entry for entry in names if self._shown(entry.name))
            entries = [_entry(entry) for entry in islice(shown, limits.HTTY_NAMES_LISTED)]
            return [entry for entry in entries if entry], next(shown, None) is not None


class _FileResponse:
    """One response, in the few forms used here."""

    def __init__(self, send: Send) -> None:
        self.begun = False
        self._send = send

    async def begin(self, status: int, headers: Fields) -> None:
        self.begun = True
        fields = [*headers, *_PLAIN]
        await self._send({"type": "http.response.start", "status": status, "headers": fields})

    async def piece(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def whole(self, status: int, data: bytes, headers: Fields) -> None:
        await self.begin(status, [(b"content-length", str(len(data)).encode()), *headers])
        await self.piece(data, more=False)

    async def error(
        self, status: int, sentence: str, headers: Iterable[tuple[bytes, bytes]]
    ) -> None:
        await self.whole(status, html_page(str(status), f"<p>{sentence}</p>"), [*_OURS, *headers])

    async def redirect(self, location: str) -> None:
        await self.whole(308, b"", [(b"location", location.encode())])


async def _send_file(
    name: str, file: int, status: os.stat_result, scope: Scope, answer: _FileResponse
) -> None:
    if not stat.S_ISREG(status.st_mode) or name.endswith("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    now = Validators.of(status)
    size = status.st_size
    asked = requested_part(dict(scope["headers"]), size, now)
    fields = [(b"content-type", _type(name)), (b"accept-ranges", b"bytes"), *now.headers()]
    match asked.status:
        case 304:
            await answer.whole(304, b"", now.headers())
            return
        case 416:
            await answer.whole(416, b"", [(b"content-range", f"bytes */{size}".encode())])
            return
        case 206:
            last = asked.start + asked.length - 1
            fields.append((b"content-range", f"bytes {asked.start}-{last}/{size}".encode()))
    fields.append((b"content-length", str(asked.length).encode()))
    await answer.begin(asked.status, fields)
    length = 0 if scope["method"] == "HEAD" else asked.length
    await _send_part(file, asked.start, length, answer)


async def _send_part(file: int, start: int, length: int, answer: _FileResponse) -> None:
    """Send a part piece by piece. If the file is truncated meanwhile, abort the response."""
    end = start + length
    while start < end:
        size = min(_PIECE, end - start)
        data = _read_cached(file, size, start)
        if data is None:
            data = await asyncio.to_thread(os.pread, file, size, start)
        if not data:
            raise OSError(errno.EIO, "the file became shorter while it was sent")
        start += len(data)
        await answer.piece(data, more=start < end)
    if not length:
        await answer.piece(b"", more=False)


def _read_cached(file: int, size: int, start: int) -> bytes | None:
    """Read from the page cache without a thread, which would cost more than a small file.

    Returns None if the read would wait for a disk, or if that is unknown.
    """
    if (no_wait := getattr(os, "RWF_NOWAIT", None)) is None:
        return None
    data = bytearray(size)
    try:
        count = os.preadv(file, [data], start, no_wait)
    except OSError:  # it would block, or the file system does not support it; a thread will tell
        return None
    return bytes(data[:count])


def _is_visible(root: int, found: int) -> bool:
    """Whether no name on its path is hidden: a visible link may lead to a hidden file."""
    above, there = descriptor_path(root), descriptor_path(found)
    inner = os.path.relpath(there, above).split(os.sep)
    return inner == [os.curdir] or not any(name.startswith(os.curdir) for name in inner)


def _entry(entry: os.DirEntry[str]) -> DirectoryEntry | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it was removed meanwhile
        return None
    folder = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(entry.name, folder, status.st_size, status.st_mtime)


def _type(name: str) -> bytes:
    kind, encoding = mimetypes.guess_type(name)
    if encoding is not None or kind is None:  # compressed files are sent as they are
        return b"application/gzip" if encoding == "gzip" else b"application/octet-stream"
    text = kind.startswith("text/") or kind in ("application/json", "application/javascript")
    return f"{kind}; charset=utf-8".encode() if text else kind.encode()


def _refusal(error: OSError) -> tuple[int, str, Fields]:
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return 403, "This file may not be read.", []
        case errno.EMFILE | errno.ENFILE:
            return 503, "Too many files are open at the moment.", []
        case _:
            return 404, "There is no such file here.", []
