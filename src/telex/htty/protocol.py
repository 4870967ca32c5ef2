"""Pages in terminal automation: the methods and notifications about pages of a session's program.

`session.create {pages: true}` lets a program serve pages through its terminal. They are announced
by `session.page`, and opened only by `session.page_open`.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct


class OpenPage(Struct, frozen=True):
    """Names one page of a session."""

    session: str
    page: str
    """The page's id, from `session.page`."""


class PageOpened(Struct, frozen=True):
    """The address of an opened page."""

    url: str
    """A URL on this machine, for a browser. It works once, and only for some minutes."""


class SessionPage(Struct, frozen=True, omit_defaults=True):
    """The program of a session serves a page, or has stopped; or its form is not supported."""

    session: str
    page: str
    """An id. Another program of the same name on the same session gets the same one. Empty if there
    is no page."""
    name: str
    """The first part of its host name."""
    title: str
    """The command that serves it."""
    state: Literal["opened", "closed", "unsupported"]
    """`unsupported`: the program uses a form of HTTY that telex does not support; no page."""
    why: str = ""
    """For `unsupported`: the reason, as a sentence."""


NOTIFICATIONS: Final = ("session.page",)
