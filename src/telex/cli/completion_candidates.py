"""Names that shells complete. They are listed here, as asking the code for them would load most of
it while a person waits for the completion. A test compares the lists with the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import click
    from click.shell_completion import CompletionItem


METHODS: Final = (
    *("adapter.attach", "adapter.cancel_wait", "adapter.close", "adapter.inspect"),
    *("adapter.list", "adapter.live", "adapter.resume", "adapter.send", "adapter.snapshot"),
    *("adapter.start", "adapter.state", "adapter.transcript", "adapter.turn", "adapter.wait"),
    *("plugin.capabilities", "plugin.describe", "plugin.load", "plugin.unload"),
    *("plugin.validate_manifest", "server.capabilities", "server.set_notifications"),
    *("session.attach", "session.attachments", "session.cancel_wait", "session.close"),
    *("session.create", "session.credit", "session.detach", "session.escape_reply"),
    *("session.input", "session.inputs"),
    *("session.kill", "session.lease", "session.list", "session.page_open"),
    *("session.properties", "session.record"),
    *("session.resize", "session.scrollback", "session.snapshot", "session.transcript"),
    "session.wait",
)
"""Methods of a server, for `telex call`."""

ESCAPES: Final = (
    *("clip:read", "clip:types", "clip:write", "detect", "file:download", "file:upload"),
    *("image:delete", "image:show", "notify:close", "notify:show", "ping", "progress:set"),
    *("shell:command", "shell:done", "shell:output", "shell:prompt"),
    *("term:altscreen", "term:batch", "term:bell", "term:charset", "term:cursorhome"),
    *("term:cursorline", "term:cursormove", "term:cursorrestore", "term:cursorsave"),
    *("term:cursorset", "term:cursorstyle", "term:cursorvisible", "term:cwd"),
    *("term:deletechars", "term:deletelines", "term:erase", "term:erasechars"),
    *("term:hyperlink", "term:index", "term:insertchars", "term:insertlines", "term:lineattr"),
    *("term:nextline", "term:palette", "term:popstyle", "term:pushstyle", "term:querymode"),
    *("term:repeat", "term:report", "term:reset", "term:resetstyle", "term:resize"),
    *("term:reverseindex", "term:scroll", "term:scrollregion", "term:setmode", "term:setstyle"),
    *("term:shift", "term:subscribe", "term:sync", "term:tab", "term:tabclear", "term:tabset"),
    *("term:title", "term:titlepop", "term:titlepush", "term:unsubscribe", "term:window"),
    *("term:write", "var:set"),
)
"""Commands of JSON escapes, for `telex escape`."""


# The `shell_complete` functions of arguments.
#
# Each gets the context, the parameter and the word so far from click. They must be fast, so imports
# are local. A function that fails offers nothing: a shell cannot show a reason, and the command
# itself reports it.


Offered = list["CompletionItem[str]"]


def methods(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete methods of a server."""
    return _beginning(word, METHODS)


def escapes(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete commands of JSON escapes."""
    return _beginning(word, ESCAPES)


def adapters(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete adapters: built-in and installed ones by name, or any by path."""
    if _is_path(word):
        return _files("dir", word)
    from pathlib import Path

    from telex.config import places

    builtin = Path(__file__).parent.parent / "adapters" / "builtin"
    found = (path for place in (builtin, places.find().adapters) for path in _manifests(place))
    return _beginning(word, sorted({_name(path) for path in found}))


def plugins(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete plugins that may be run: by name or by path."""
    if _is_path(word):
        return _files("file", word)
    from telex.cli.plugin.plugin_target import find

    return _beginning(word, [one.name for one in find().found if not one.problem])


def sessions(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete sessions of the server at --to, if it answers quickly."""
    import asyncio

    from telex.rpc.errors import CallError
    from telex.transports.errors import CannotConnect

    try:
        listed = asyncio.run(_listed(context.params.get("address") or "unix:"))
    except (CannotConnect, CallError, TimeoutError, OSError):
        return []
    return _beginning(word, listed)


def programs(context: click.Context, parameter: click.Parameter, word: str) -> Offered:
    """Complete a program by name or path as the first word, and files after it."""
    if context.params.get(parameter.name or "") or _is_path(word):
        return _files("file", word)
    import os

    names: set[str] = set()
    for directory in os.get_exec_path():
        try:
            with os.scandir(directory) as entries:
                names.update([one.name for one in entries if one.name.startswith(word)])
        except OSError:  # PATH may name a missing directory
            continue
    return _beginning(word, sorted(names))


async def _listed(address: str) -> list[str]:
    import asyncio

    from telex.automation.dialer import dial
    from telex.automation.protocol import SessionList

    async with asyncio.timeout(1.0), await dial(address) as peer:
        listed: SessionList = await peer.call("session.list", {}, returns=SessionList)
        return [listed.names.get(id, id) for id in listed.sessions]


def _manifests(place: Path) -> Iterable[Path]:
    try:
        return sorted(place.glob("*/manifest.toml"))
    except OSError:
        return ()


def _name(manifest: Path) -> str:
    """Return the name in the manifest, or that of the directory."""
    import tomllib

    try:
        name = tomllib.loads(manifest.read_text()).get("name")
    except (OSError, ValueError):
        name = None
    return name if isinstance(name, str) else manifest.parent.name


def _is_path(word: str) -> bool:
    return "/" in word or word.startswith((".", "~"))


def _files(kind: str, word: str) -> Offered:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word, type=kind)]


def _beginning(word: str, names: Iterable[str]) -> Offered:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(word)]
