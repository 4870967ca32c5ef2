"""What a browser is told in a page's place: why there is none, and when there is one again.

A person who opens a page gets a page; a program gets JSON, as at the door. Where it helps to come
back, the page does so by itself: it asks with a `Telex-Wait` header, which the gateway answers
when a program serves the page again. No path is taken from the program for that, and no page of
another origin can send the header.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.transports.doorway import refuse, respond, sealed
from telex.transports.error_page import ErrorPage

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
    advice: str = ""
    """For people: what to do."""


UNSERVED: Final = Problem(
    503,
    "unserved",
    "No program serves this page at the moment. It opens when one does.",
    1,
    "Start the program again in its terminal.",
)
BUSY: Final = Problem(503, "busy", "The program answers as many requests as it can.", 1)
UNFIT: Final = Problem(400, "headers", "The request has headers that cannot be passed on.")
SILENT: Final = Problem(
    504, "silent", "The program did not answer in time.", advice="Its terminal may say why."
)
GAVE_UP: Final = Problem(
    502, "reset", "The program gave up this request.", advice="Its terminal may say why."
)
REFUSED: Final = Problem(503, "refused", "The program did not take this request.", 1)
NO_WEBSOCKET: Final = Problem(501, "websocket", "The program does not take WebSockets.")
UNREAD: Final = Problem(408, "unread", "Nobody read the answer.")
"""Never seen: whoever does not read is cut off."""


def malformed(sentence: str) -> Problem:
    return Problem(502, "malformed", sentence)


async def tell(scope: Scope, send: Send, problem: Problem, title: str) -> None:
    """Answer with a problem. `title` is the page's."""
    returns = problem.status == 503 and scope.get("method") == "GET"  # to send twice is not for us
    page = ErrorPage(
        problem.sentence,
        problem.advice,
        title,
        link=("", "Try again"),
        refresh=(problem.retry or 1, "") if returns else None,
        script=_SCRIPT if returns else "",
    )
    retry = [] if problem.retry is None else [(b"retry-after", b"%d" % problem.retry)]
    await refuse(scope, sealed(send), problem.status, problem.reason, problem.sentence, page, retry)


async def tell_it_is_back(scope: Scope, send: Send) -> None:
    """The answer to a `Telex-Wait`: there is a program again."""
    await respond(scope, sealed(send), 200, b"", [])


def asks_to_wait(scope: Scope) -> bool:
    return scope["type"] == "http" and any(name == WAIT for name, _ in scope["headers"])


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
