"""Who typed that: the log of a session's inputs, and identities in leases and attachments."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

import telex
from automating import Client, Serving
from lua_plugins import plugin
from telex.adapters.server import AutomationServer
from telex.rpc.channel import Channel
from telex.terminal import limits
from telex.transports import http, unix, web_server, websocket
from telex.transports.auth import Authenticator

TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SHELL = ("bash", "--norc", "--noprofile", "--noediting")
EDITING = ("bash", "--norc", "--noprofile")
"""A shell with line editing: the terminal does not echo, and the shell draws what is typed."""


@pytest.fixture
def here(tmp_path: Path) -> Serving:
    return Serving("unix, ndjson", tmp_path)


async def logged(client: Client, session: str, **params: Any) -> list[Any]:
    found = await client.call("session.inputs", session=session, **params)
    return list(found["inputs"])


async def texts(client: Client, session: str, **params: Any) -> list[str]:
    return [one["text"] for one in await logged(client, session, **params)]


async def press(client: Client, session: str, keys: str) -> None:
    for key in keys:
        await client.act(session, "key", key)


async def test_an_input_has_its_time_its_kind_and_its_author(automation: Serving) -> None:
    async with automation() as client:
        session = await client.start("cat")
        before = time.time()
        await client.act(session, "text", "hello\n")
        await client.shows(session, "hello\nhello")
        (one,) = await logged(client, session)
        assert before - 1 < one["at"] < time.time() + 1
        assert (one["number"], one["kind"], one["text"]) == (1, "text", "hello\n")
        assert one["who"]["kind"] in ("unknown", "process", "token")


async def test_two_clients_of_one_session_are_told_apart(tmp_path: Path) -> None:
    """One on a unix socket, one over HTTP: inputs, lease and attachments say who."""
    server = AutomationServer(())
    conversations: list[asyncio.Task[None]] = []

    def serve(channel: Channel) -> None:
        conversations.append(asyncio.create_task(server.converse(channel)))

    auth = Authenticator("t" * 40, more_tokens={"phone": "p" * 40})
    app = Starlette(routes=http.routes({"automation": server.converse}))
    async with (
        unix.listen(tmp_path / "t.sock", serve) as listener,
        web_server.listen(app, auth=auth) as address,
    ):
        one = Client(await unix.connect(listener.path))
        url = f"{address.websocket_url}/rpc"
        other = Client(await websocket.connect(url, "p" * 40))
        ours = {"kind": "process", "pid": os.getpid(), "uid": os.getuid()}
        phone = {"kind": "token", "name": "phone"}
        session = await one.start("cat")
        await one.act(session, "text", "from the socket\n")
        await other.act(session, "text", "from the phone\n")
        await one.shows(session, "from the phone")
        first, second = await logged(other, session)
        assert {**first["who"], "name": ""} == {**ours, "name": ""}
        assert (second["who"], second["text"]) == (phone, "from the phone\n")
        leased = await other.call("session.lease", session=session, holder="me")
        assert leased == {"holder": "me", "who": phone}
        refused = await one.refused(
            "session.input", session=session, action={"type": "text", "value": "x"}
        )
        assert refused.data["holder"] == "me"
        assert refused.data["who"] == phone
        assert 'me holds the lease of s1 (token "phone")' in refused.message
        released = await other.call("session.lease", session=session, holder="me", release=True)
        assert released == {"holder": None}
        await one.call("session.attach", session=session)
        attached = await other.call("session.attach", session=session)
        listed = (await one.call("session.attachments", session=session))["attachments"]
        assert [each["who"]["kind"] for each in listed] == ["process", "token"]
        await other.call("session.detach", attachment=attached["attachment"])
        listed = (await one.call("session.attachments", session=session))["attachments"]
        assert [each["attachment"] for each in listed] == ["a1"]
        assert [one_["kind"] for one_ in await logged(one, session)] == ["text", "text"]
        await one.peer.close()
        await other.peer.close()
        await asyncio.gather(*conversations)
        await server.close()


async def test_every_kind_of_input_is_logged_and_a_refused_one_is_not(here: Serving) -> None:
    async with here() as client:
        session = await client.start("trap : INT USR1; printf ready; while :; do read x; done")
        await client.shows(session, "ready")
        await client.act(session, "paste", "pasted\n")
        await client.act(session, "bracketed_paste", "more\n")
        await client.act(session, "stream_text", {"text": "slow\n"})
        for key in ("a", "shift_b", "space", "ctrl_e", "up", "enter"):
            await client.act(session, "key", key)
        await client.act(session, "text", "\x1b[A\n")
        await client.act(session, "mark_transcript", {"label": "here"})
        await client.shows(session, "aB")  # an interrupt discards an echo that was not read yet
        await client.act(session, "interrupt")
        await client.act(session, "signal", "user1")
        await client.act(session, "resize", {"rows": 30, "cols": 90})
        await client.call("session.resize", session=session, rows=31, cols=91)
        click = {"type": "mouse", "value": {"row": 0, "col": 0}}
        await client.refused("session.input", session=session, action=click)
        bad = {"type": "key", "value": "no such key"}
        await client.refused("session.input", session=session, action=bad)
        await client.call("session.kill", session=session)
        found = [(one["kind"], one["text"]) for one in await logged(client, session)]
        assert found == [
            ("paste", "pasted\n"),
            ("paste", "more\n"),
            ("text", "slow\n"),
            *[("key", key) for key in ("a", "B", " ", "ctrl_e", "up", "enter")],
            ("bytes", "\x1b[A\n"),
            ("key", "interrupt"),
            ("signal", "user1"),
            ("resize", "90x30"),
            ("resize", "91x31"),
            ("signal", "kill"),
        ]


@pytest.mark.parametrize("shell", [SHELL, EDITING], ids=["echo", "line editing"])
async def test_a_token_typed_key_by_key_is_masked_at_every_moment(
    here: Serving, shell: tuple[str, ...]
) -> None:
    async with here() as client:
        session = await client.start(*shell, env={"PS1": "ready> "})
        await client.shows(session, "ready>")
        await client.act(session, "text", "echo done > /dev/null\n")
        await client.shows(session, "done > /dev/null\nready>")
        for at, key in enumerate(TOKEN, 1):
            await client.act(session, "key", key)
            if at > 4:  # `ghp_` alone is no secret
                shown = "".join(await texts(client, session, since=1 + 4))
                assert set(shown.replace("[REDACTED]", "")) == set(), at
        await client.act(session, "key", "enter")
        await client.shows(session, "not found")
        found = await texts(client, session)
        assert found[0] == "echo done > /dev/null\n"
        assert set(found[1:-1]) == {"[REDACTED]"}
        assert found[-1] == "enter"


async def test_a_corrected_secret_and_one_in_two_hands_are_masked(here: Serving) -> None:
    async with here() as client:
        other = await client.another()
        session = await client.start("cat")
        await client.act(session, "text", "passwordX")
        await client.act(session, "key", "backspace")
        await client.act(session, "text", "=hunter2secret\n")
        await client.act(session, "text", TOKEN[:20])
        await other.act(session, "text", f"{TOKEN[20:]}\n")
        await client.shows(session, TOKEN[20:], redact=False)
        found = await texts(client, session)
        assert found == ["passwordX", "backspace", "=[REDACTED]\n", "[REDACTED]", "[REDACTED]\n"]


@pytest.mark.parametrize(
    "script",
    [
        "stty -echo; printf 'Word: '; read x; stty echo; echo over; exec cat",
        "stty -echo -icanon; printf 'Word: '; head -c 14 > /dev/null; stty sane; echo over; exec cat",
        "printf 'Password: '; read x; echo over; exec cat",
    ],
    ids=["no echo", "single characters", "a prompt for a password, with echo"],
)
@pytest.mark.parametrize("keys", [False, True], ids=["text", "key by key"])
async def test_a_typed_password_is_not_kept(here: Serving, script: str, keys: bool) -> None:
    async with here() as client:
        session = await client.start(script)
        await client.shows(session, "ord: ")
        if keys:
            await press(client, session, "correcthorse7")
            await client.act(session, "key", "enter")
        else:
            await client.act(session, "text", "correcthorse7\n")
        await client.shows(session, "over")
        await client.act(session, "text", "public\n")
        await client.shows(session, "public\npublic")
        *hidden, last = await texts(client, session)
        assert last == "public\n"
        assert set("".join(hidden).replace("[REDACTED]", "").replace("enter", "")) <= {"\n"}


async def test_a_password_typed_ahead_of_its_prompt_is_kept_only_if_it_was_shown(
    here: Serving,
) -> None:
    """The echo may be on when the password is sent, and off when it arrives; or the reverse."""
    async with here() as client:
        session = await client.start(*EDITING, env={"PS1": "ready> "})
        await client.shows(session, "ready>")
        await client.act(session, "text", "stty -echo; echo go; read x; stty echo; echo o''ver\n")
        await client.act(session, "text", "correcthorse7\n")
        await client.shows(session, "\nover")
        shown = "".join(await texts(client, session))
        assert "read x" in shown
        printed = await client.transcript(session, redact=False)
        assert "horse" not in shown or "correcthorse7" in printed


async def test_an_undrawn_line_is_forgotten_and_a_drawn_one_is_kept(here: Serving) -> None:
    async with here() as client:
        script = "stty -echo -icanon; printf ready; head -c 8 >&2; head -c 8 > /dev/null; "
        flood = limits.INPUT_ECHO_CHARS * 4
        script += f"head -c {flood} /dev/zero | tr '\\0' .; echo over; exec cat"
        session = await client.start(script)
        await client.shows(session, "ready")
        await client.act(session, "text", "visible\n")
        await client.shows(session, "visible")
        await client.act(session, "text", "unseen1\n")
        await client.shows(session, "over")
        await client.act(session, "text", "later\n")
        await client.shows(session, "later")
        assert await texts(client, session) == ["visible\n", "[REDACTED]\n", "later\n"]


async def test_the_log_is_bounded_and_says_what_fell_out(here: Serving) -> None:
    async with here() as client:
        session = await client.start("stty -echo -icanon; exec cat > /dev/null")
        most = limits.INPUTS_LOGGED
        for _ in range(most + 10):
            await client.act(session, "resize", {"rows": 24, "cols": 80})
        found = await client.call("session.inputs", session=session, limit=3)
        assert [one["number"] for one in found["inputs"]] == [most + 8, most + 9, most + 10]
        assert found["dropped"] is True
        found = await client.call("session.inputs", session=session, since=most, limit=3)
        assert [one["number"] for one in found["inputs"]] == [most + 1, most + 2, most + 3]
        assert found["dropped"] is False
        found = await client.call("session.inputs", session=session, since=5, limit=2)
        assert [one["number"] for one in found["inputs"]] == [11, 12]
        assert found["dropped"] is True
        found = await client.call("session.inputs", session=session, since=most + 10)
        assert found == {"inputs": [], "dropped": False}


async def test_half_of_a_secret_stays_masked_when_the_other_half_fell_out(here: Serving) -> None:
    async with here() as client:
        session = await client.start("cat")
        await client.act(session, "text", TOKEN[:20])
        await client.act(session, "text", f"{TOKEN[20:]}\n")
        await client.shows(session, f"{TOKEN}\n{TOKEN}", redact=False)
        for _ in range(limits.INPUTS_LOGGED - 1):
            await client.act(session, "resize", {"rows": 24, "cols": 80})
        found = await logged(client, session, since=1, limit=1)
        assert [(one["number"], one["text"]) for one in found] == [(2, "[REDACTED]\n")]


async def test_a_long_paste_is_kept_in_part_and_never_half_a_secret(here: Serving) -> None:
    async with here() as client:
        session = await client.start("cat")
        most = limits.INPUT_TEXT_CHARS
        lines = "words and\n" * (most // 10)
        await client.act(session, "paste", f"{lines[: most - 20]}{TOKEN}\n{lines}end\n")
        await client.shows(session, "\nend")
        await client.act(session, "paste", "x" * (most + 1) + "\n")
        first, second = await texts(client, session)
        assert first.startswith("words and\nwords and\n")
        assert len(first) <= most + len("[REDACTED]")
        assert "ghp" not in first
        assert second == "[REDACTED]"


async def test_the_python_api_reads_it_too_and_is_in_process() -> None:
    async with telex.spawn("cat") as term:
        await term.type("by hand\n")
        await term.press("ctrl_l")
        async with term.attach() as output:
            await output.write(b"attached\n")
        await term.wait("attached")
        found = await term.inputs()
        assert [(str(one.who), one.kind, one.text) for one in found] == [
            ("in process", "text", "by hand\n"),
            ("in process", "key", "ctrl_l"),
            ("in process", "text", "attached\n"),
        ]
        assert await term.inputs(since=2, limit=1) == found[2:]


def test_the_python_api_without_a_loop_reads_it_too() -> None:
    with telex.spawn("cat") as term:
        term.type("by hand\n")
        term.wait("by hand\nby hand")
        (one,) = term.inputs()
        assert isinstance(one, telex.SessionInput)
        assert one.who == telex.Identity("in_process")


async def test_an_intent_of_an_adapter_and_a_reply_to_an_escape_have_authors(
    here: Serving,
) -> None:
    async with here(plugin()) as client:
        await client.call("server.set_notifications", enabled=True)
        begun = await client.call("adapter.start", plugin="chatty")
        ready = {"intent": "wait_text_matcher", "params": {"text": "ready>"}}
        await client.call("adapter.wait", adapter=begun["adapter"], **ready)
        said = {"intent": "say", "params": {"text": "hello"}}
        await client.call("adapter.send", adapter=begun["adapter"], **said)
        found = await logged(client, begun["session"])
        assert (found[0]["kind"], found[0]["text"]) == ("intent", "e1 say")
        assert len(found) > 1
        assert {str(one["who"]) for one in found} == {str(found[0]["who"])}
        body = '{"command":"weather:ask","rpcid":"w1"}'
        script = f"stty raw -echo; printf '\\033]23198;{len(body)};{body}\\a'; exec cat > /dev/null"
        session = await client.start(script, escapes=True)
        await client.until(lambda: [1 for name, _ in client.told if name == "session.escape"])
        reply = {"session": session, "resid": "w1", "data": {"sky": "green"}}
        assert await client.call("session.escape_reply", **reply) == {"accepted": True}
        assert await client.call("session.escape_reply", **reply) == {"accepted": False}
        found = await logged(client, session)
        assert [(one["kind"], one["text"]) for one in found] == [("escape_reply", "w1")]
