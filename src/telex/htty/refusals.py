"""What a browser is told in a page's place: why there is none, and when there is one again.

A person who opens a page gets a page; a program gets JSON, as at the door. Where it helps to come
back, the page does so by itself: it asks with a `Telex-Wait` header, which the gateway answers
when a program serves the page again. No path is taken from the program for that, and no page of
another origin can send the header.
"""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from telex.transports.doorway import respond, sealed

if TYPE_CHECKING:
    from starlette.types import Scope, Send

WAIT: Final = b"telex-wait"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request gets no answer of the program's."""

    status: int
    reason: str
    """For programs."""
    sentence: str
    """For people."""
    retry: int | None = None
    """Seconds after which asking again makes sense."""


UNSERVED: Final = Problem(
    503, "unserved", "No program serves this page at the moment. It opens when one does.", 1
)
BUSY: Final = Problem(503, "busy", "The program answers as many requests as it can.", 1)
UNFIT: Final = Problem(400, "headers", "The request has headers that cannot be passed on.")
SILENT: Final = Problem(504, "silent", "The program did not answer in time.")
GAVE_UP: Final = Problem(502, "reset", "The program gave up this request.")
REFUSED: Final = Problem(503, "refused", "The program did not take this request.", 1)
NO_WEBSOCKET: Final = Problem(501, "websocket", "The program does not take WebSockets.")
UNREAD: Final = Problem(408, "unread", "Nobody read the answer.")
"""Never seen: whoever does not read is cut off."""


def malformed(sentence: str) -> Problem:
    return Problem(502, "malformed", sentence)


class _Refusal(msgspec.Struct):
    reason: str
    message: str


async def tell(scope: Scope, send: Send, problem: Problem, title: str) -> None:
    """Answer with a problem. `title` is the page's."""
    if _is_navigation(scope):
        policy, body = _page(problem, title)
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
        ]
    else:
        body = msgspec.json.encode(_Refusal(problem.reason, problem.sentence))
        headers = [(b"content-type", b"application/json")]
    if problem.retry is not None:
        headers.append((b"retry-after", b"%d" % problem.retry))
    await respond(scope, sealed(send), problem.status, body, headers)


async def tell_it_is_back(scope: Scope, send: Send) -> None:
    """The answer to a `Telex-Wait`: there is a program again."""
    await respond(scope, sealed(send), 200, b"", [])


def asks_to_wait(scope: Scope) -> bool:
    return scope["type"] == "http" and any(name == WAIT for name, _ in scope["headers"])


def _is_navigation(scope: Scope) -> bool:
    """A person looks at the answer: fetch and the like accept anything, and name nothing."""
    return scope.get("method") == "GET" and any(
        name == b"accept" and b"text/html" in value for name, value in scope["headers"]
    )


_STYLE: Final = """
:root{color-scheme:light dark}
body{margin:0;min-height:100vh;display:grid;place-items:center;font:17px/1.5 system-ui,sans-serif;
background:light-dark(#f6f5f2,#191a1c);color:light-dark(#26272b,#e4e3df)}
main{max-width:30rem;padding:2rem;text-align:center}
code{font:15px/1.4 ui-monospace,monospace;background:light-dark(#e9e7e1,#2a2c30);
padding:.2rem .6rem;border-radius:.4rem;overflow-wrap:anywhere}
i{display:block;width:2rem;height:2rem;margin:0 auto 1.5rem;border-radius:50%;
border:3px solid light-dark(#d5d2c9,#3a3d43);border-top-color:#d9822b}
i.turns{animation:turn 1s linear infinite}
@keyframes turn{to{transform:rotate(1turn)}}
@media (prefers-reduced-motion:reduce){i.turns{animation-duration:6s}}
"""
_SCRIPT: Final = """
const pause = seconds => new Promise(done => setTimeout(done, 1000 * seconds));
(async () => {
  for (;;) {
    await pause(1);
    try {
      const answer = await fetch(location.href, {headers: {"Telex-Wait": "1"}, cache: "no-store"});
      if (answer.ok) return location.reload();
      if (answer.status !== 503) return;
    } catch { /* telex itself is away */ }
  }
})();
"""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_POLICY: Final = (
    f"default-src 'none'; connect-src 'self'; frame-ancestors 'self'; base-uri 'none'; "
    f"style-src 'sha256-{_digest(_STYLE)}'; script-src 'sha256-{_digest(_SCRIPT)}'"
).encode()


def _page(problem: Problem, title: str) -> tuple[bytes, bytes]:
    """The policy and the text. Without scripts it comes back too, only less politely."""
    returns = problem.status == 503
    again = f"<noscript><meta http-equiv=refresh content={problem.retry}></noscript>"
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>{again if returns else ''}"
        f"<main><i{' class=turns' if returns else ''}></i><p><code>{html.escape(title)}</code></p>"
        f"<p>{html.escape(problem.sentence)}</p></main>"
        f"{f'<script>{_SCRIPT}</script>' if returns else ''}"
    )
    return _POLICY, text.encode()
