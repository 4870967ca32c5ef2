"""Pages of sessions: told to those who follow, and opened by who asks for it and nobody else."""

from __future__ import annotations

import html
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from automating import Serving
from htty.serving_pages import PROGRAM, PYTHON, SERVER
from htty.visitor import visiting

if TYPE_CHECKING:
    from pathlib import Path

    from automating import Client

SHELL = ("bash", "--norc", "-i")
PROMPT = r"<\#> "
"""Numbered. Keys typed before it are discarded with the unread bytes of a page that just ended."""


@pytest.fixture
def unix(tmp_path: Path) -> Serving:
    """By one way: what differs between them is not asked here."""
    return Serving("unix, ndjson", tmp_path)


def pages(client: Client) -> list[Any]:
    return [params for method, params in client.told if method == "session.page"]


async def told(client: Client, count: int = 1) -> Any:
    """The latest that was told of a page, once so many were."""
    await client.until(lambda: len(pages(client)) >= count)
    return pages(client)[count - 1]


async def test_a_page_is_announced_and_opened_by_its_one_time_address(automation: Serving) -> None:
    async with automation() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*PROGRAM, pages=True)
        page = await told(client)
        assert page == {
            "session": session,
            "page": "p1",
            "name": page["name"],
            "title": page["title"],
            "state": "opened",
        }
        assert page["title"].startswith("python")
        assert page["name"].startswith("python-1")
        opened = await client.call("session.page_open", session=session, page="p1")
        async with visiting(opened["url"]) as visitor:
            assert (await visitor.get()).text == "session 1"
            await client.act(session, "text", "k")
            person = {"accept": "text/html", "cookie": ""}
            stranger = await visitor.get(headers=person)
            asked = f'{{"session": "{session}", "page": "p1"}}'
            command = f"telex call session.page_open '{asked}'"
            assert f"<code>{html.escape(command)}</code>" in stranger.text
            await client.shows(session, "key b'k'")
            assert "HTTY" not in await client.transcript(session)


async def test_a_program_of_the_raw_form_is_named_once_and_has_no_page(unix: Serving) -> None:
    raw = r"printf '\033P+Hraw\033\\%.0s' 1 2 3; echo said; exec sleep 1000"
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start("sh", "-c", raw, pages=True)
        page = await told(client)
        assert (page["session"], page["page"], page["state"]) == (session, "", "unsupported")
        assert page["why"].startswith("the program speaks the raw form of later HTTY releases")
        await client.shows(session, "said")
        assert len(pages(client)) == 1


async def test_until_a_page_is_opened_its_program_receives_no_request(unix: Serving) -> None:
    script = SERVER.replace("answer(binascii", 'print("heard", flush=True); answer(binascii')
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*PYTHON, "-c", script, pages=True)
        await told(client)
        await client.act(session, "text", "k")
        await client.shows(session, "key b'k'")
        assert "heard" not in await client.screen(session)
        await client.call("session.page_open", session=session, page="p1")
        await client.shows(session, "heard")


async def test_a_page_whose_program_ended_waits_for_the_next_of_that_name(
    unix: Serving, tmp_path: Path
) -> None:
    script = tmp_path / "page.py"
    script.write_text(SERVER)
    command = shlex.join([*PYTHON, str(script)])
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*SHELL, pages=True, env={"PS1": PROMPT})
        await client.act(session, "text", f"{command}\n")
        opened = await client.call(
            "session.page_open", session=session, page=(await told(client))["page"]
        )
        async with visiting(opened["url"]) as visitor:
            assert (await visitor.get()).status_code == 200
            await client.act(session, "text", "x")
            assert (await told(client, 2))["state"] == "closed"
            assert (await visitor.get()).status_code == 503
            await client.shows(session, "<2>")
            await client.act(session, "text", f"{command}\n")
            again = await told(client, 3)
            assert (again["state"], again["page"]) == ("opened", "p1")
            await client.shows(session, "ready")
            async with visiting(
                (await client.call("session.page_open", session=session, page="p1"))["url"]
            ) as second:
                assert (await second.get()).text == "session 1"
            assert (await visitor.get()).text == "session 1"


async def test_another_program_of_that_name_is_announced_and_receives_no_request(
    unix: Serving, tmp_path: Path
) -> None:
    for name in ("page.py", "other.py"):
        heard = SERVER.replace("answer(binascii", f'print("{name}!", flush=True); answer(binascii')
        (tmp_path / name).write_text(heard)
    command = shlex.join([*PYTHON, str(tmp_path)])
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*SHELL, pages=True, env={"PS1": PROMPT})
        await client.act(session, "text", f"{command}/page.py\n")
        first = await told(client)
        opened = await client.call("session.page_open", session=session, page=first["page"])
        async with visiting(opened["url"]) as visitor:
            assert (await visitor.get()).status_code == 200
            await client.act(session, "text", "x")
            await told(client, 2)
            await client.shows(session, "<2>")
            await client.act(session, "text", f"{command}/other.py\n")
            second = await told(client, 3)
            assert second["state"] == "opened"
            assert (second["page"], second["title"]) == ("p2", first["title"])
            assert second["name"] != first["name"]
            await client.act(session, "text", "k")
            await client.shows(session, "key b'k'")
            assert (await visitor.get()).status_code == 503
            assert "other.py!" not in await client.screen(session)
            # Nobody opened it, so that it makes room for the next; what was opened stays.
            await client.act(session, "text", "x")
            await told(client, 4)
            await client.shows(session, "<3>")
            await client.act(session, "text", f"{command}/page.py 3\n")
            assert (await told(client, 5))["page"] == "p3"
            refused = await client.refused("session.page_open", session=session, page="p2")
            assert "unknown page" in refused.message
            await client.call("session.page_open", session=session, page="p1")


async def test_several_sessions_have_pages_at_once_each_with_its_own_name(unix: Serving) -> None:
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        sessions = [await client.start(*PROGRAM, pages=True) for _ in range(3)]
        await told(client, 3)
        found = {page["session"]: page for page in pages(client)}
        assert len({page["name"] for page in found.values()}) == 3
        for session in sessions:
            url = (await client.call("session.page_open", session=session, page="p1"))["url"]
            async with visiting(url) as visitor:
                assert (await visitor.get()).text == "session 1"


async def test_only_a_session_with_pages_sets_the_htty_variable_of_its_program(
    unix: Serving,
) -> None:
    script = 'echo "[${HTTY-none}]"; read x'
    async with unix() as client:
        for params, said in (
            ({}, "none"),
            ({"pages": True}, "1"),
            ({"pages": True, "env": {"HTTY": "0"}}, "0"),
        ):
            session = await client.start(script, **params)
            await client.shows(session, f"[{said}]")
        detect = (
            "import asyncio; from telex.escapes import connect\n"
            "async def main():\n"
            " async with connect() as term: print(term.capabilities.get('htty'))\n"
            "asyncio.run(main())"
        )
        session = await client.start(sys.executable, "-c", detect, pages=True, escapes=True)
        await client.shows(session, "{'level': 1}")


async def test_a_client_that_may_not_type_into_a_session_cannot_open_its_pages(
    unix: Serving,
) -> None:
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*PROGRAM, pages=True)
        await told(client)
        plain = await client.start("sleep 60")
        other = await client.another()
        await client.call("session.lease", session=session, holder="me")
        refused = await other.refused("session.page_open", session=session, page="p1")
        assert "lease" in refused.message
        unknown = await client.refused("session.page_open", session=session, page="p9")
        assert "unknown page" in unknown.message
        without = await client.refused("session.page_open", session=plain, page="p1")
        assert "pages: true" in without.message


async def test_without_pages_chunks_are_swallowed(unix: Serving) -> None:
    async with unix() as client:
        await client.call("server.set_notifications", enabled=True)
        session = await client.start(*PROGRAM)
        await client.shows(session, "ready")
        assert pages(client) == []
        assert "HTTY" not in await client.transcript(session)
