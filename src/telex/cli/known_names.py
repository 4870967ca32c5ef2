"""Names that shells complete, written down: to ask the code for them would load most of it, and a
person waits for the answer with a finger on the key. A test holds them to the code."""

from __future__ import annotations

from typing import Final

METHODS: Final = (
    *("adapter.attach", "adapter.cancel_wait", "adapter.close", "adapter.inspect"),
    *("adapter.list", "adapter.live", "adapter.resume", "adapter.send", "adapter.snapshot"),
    *("adapter.start", "adapter.state", "adapter.transcript", "adapter.turn", "adapter.wait"),
    *("plugin.capabilities", "plugin.describe", "plugin.load", "plugin.unload"),
    *("plugin.validate_manifest", "server.capabilities", "server.set_notifications"),
    *("session.attach", "session.cancel_wait", "session.close", "session.create"),
    *("session.credit", "session.detach", "session.escape_reply", "session.input"),
    *("session.kill", "session.lease", "session.list", "session.page_open", "session.record"),
    *("session.resize", "session.scrollback", "session.snapshot", "session.transcript"),
    "session.wait",
)
"""Of a server, for `telex call`."""

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
