"""Pages in terminal automation: what a session's program shows in a browser, and who opens it.

`session.create {pages: true}` lets a program serve pages through its terminal; these are told as
`session.page`, and opened by `session.page_open` and nothing else.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class OpenPage(Struct, frozen=True):
    """Which page of a session."""

    session: str
    page: str
    """Its id, as `session.page` told it."""


class PageOpened(Struct, frozen=True):
    """Where it is."""

    url: str
    """On this machine, for a browser. It works once, and only for some minutes."""


class SessionPage(Struct, frozen=True, omit_defaults=True):
    """The program on a session serves a page, or does so no more; or it wants to, and cannot."""

    session: str
    page: str
    """An id. Another program of the same name on the same session gets the same one. Empty if there
    is no page."""
    name: str
    """The first part of its host name."""
    title: str
    """The command that serves it."""
    state: Literal["opened", "closed", "unsupported"]
    """`unsupported`: the program speaks a form of HTTY that telex does not. There is no page."""
    why: str = ""
    """Of `unsupported`: a sentence."""


NOTIFICATIONS: Final = ("session.page",)
