"""The page that a person sees in a browser where a program would get JSON: what happened, and what
to do next. Sans-IO: a sentence in, HTML and its policy out.

Who is a person is known by the Accept header alone: browsers name `text/html` when they open an
address, and scripts and clients do not. Used by the door (`doorway`) and by the gateway of pages.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTENT_TYPE: Final = (b"content-type", b"text/html; charset=utf-8")
_CODE: Final = re.compile(r"`([^`]*)`")
_STYLE: Final = """
:root{color-scheme:light dark}
body{margin:0;min-height:100vh;display:grid;place-items:center;font:17px/1.5 system-ui,sans-serif;
background:light-dark(#f6f5f2,#191a1c);color:light-dark(#26272b,#e4e3df)}
main{max-width:34rem;padding:2rem;text-align:center}
code{font:15px/1.4 ui-monospace,monospace;background:light-dark(#e9e7e1,#2a2c30);
padding:.2rem .6rem;border-radius:.4rem;overflow-wrap:anywhere}
a{color:light-dark(#0b57d0,#8ab4f8)}
i{display:block;width:2rem;height:2rem;margin:0 auto 1.5rem;border-radius:50%;
border:3px solid light-dark(#d5d2c9,#3a3d43);border-top-color:#d9822b;
animation:turn 1s linear infinite}
@keyframes turn{to{transform:rotate(1turn)}}
@media (prefers-reduced-motion:reduce){i{animation-duration:6s}}
"""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """What stands on it. All of it is text."""

    sentence: str
    advice: str = ""
    """What to do; a command in it stands between backticks."""
    title: str = "telex"
    """Whose page it is in place of."""
    link: tuple[str, str] | None = None
    """Where to go on: a path, and the words for it."""
    refresh: tuple[int, str] | None = None
    """After how many seconds the browser goes where by itself; an empty path is this one."""
    script: str = ""
    """In place of the refresh, where scripts run."""

    def policy(self) -> bytes:
        """The Content-Security-Policy: nothing but what stands on the page."""
        script = f"; script-src 'sha256-{_digest(self.script)}'" if self.script else ""
        return (
            "default-src 'none'; connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; "
            f"form-action 'none'; style-src 'sha256-{_digest(_STYLE)}'{script}"
        ).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        return [CONTENT_TYPE, (b"content-security-policy", self.policy())]

    def body(self) -> bytes:
        title = html.escape(self.title)
        link = ""
        if self.link is not None:
            path, words = (html.escape(text) for text in self.link)
            link = f'<p><a href="{path}">{words}</a></p>'
        text = (
            "<!doctype html><html lang=en><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'>"
            f"<title>{title}</title><style>{_STYLE}</style>{self._refresh()}"
            f"<main>{'<i></i>' if self.refresh else ''}<p><code>{title}</code></p>"
            f"<p>{_marked(self.sentence)}</p>"
            f"{f'<p>{_marked(self.advice)}</p>' if self.advice else ''}{link}</main>"
            f"{f'<script>{self.script}</script>' if self.script else ''}"
        )
        return text.encode()

    def _refresh(self) -> str:
        if self.refresh is None:
            return ""
        seconds, path = self.refresh
        where = f"; url={html.escape(path)}" if path else ""
        meta = f'<meta http-equiv=refresh content="{seconds}{where}">'
        return f"<noscript>{meta}</noscript>" if self.script else meta


def wants_html(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a person looks at the answer: HTML is named, and JSON is not liked better."""
    html_quality = json_quality = 0.0
    for name, value in headers:
        if name.lower() != b"accept":
            continue
        for kind, quality in _accepted(value):
            if kind in (b"text/html", b"application/xhtml+xml"):
                html_quality = max(html_quality, quality)
            elif kind == b"application/json":
                json_quality = max(json_quality, quality)
    return html_quality > 0 and html_quality >= json_quality


def _accepted(value: bytes) -> Iterable[tuple[bytes, float]]:
    for given in value.lower().split(b","):
        kind, *parameters = [part.strip() for part in given.split(b";")]
        quality = next((one[2:] for one in parameters if one.startswith(b"q=")), b"1")
        yield kind, float(quality) if re.fullmatch(rb"[01](\.\d{0,3})?", quality) else 0.0


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
