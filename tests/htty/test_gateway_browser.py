"""A real browser at the gateway."""

from __future__ import annotations

import json
from pathlib import Path

from browser import browser
from gateways import answer, read_all, served
from telex.htty.gateway.gateway import Gateway
from telex.htty.gateway.pages import Page
from telex.htty.h2.http2_websocket import Side, WebSocketClose, WebSocketStream
from telex.htty.h2.http_stream import HttpStream

HTML = b"""<!doctype html><title>loading</title><button>ask</button><output></output>
<script>
const results = {};
const note = (name, value) => {
  results[name] = value;
  document.querySelector("output").textContent = JSON.stringify(results);
};
document.querySelector("button").onclick = async () => {
  const sent = await fetch("/echo", {method: "POST", body: "from the browser"});
  note("echo", await sent.text());
  const socket = new WebSocket(`ws://${location.host}/live`, ["chat"]);
  socket.onopen = () => socket.send("hello");
  socket.onmessage = message => { note("live", message.data); socket.close(4001, "bye"); };
  socket.onclose = closed => {
    note("closed", [closed.code, socket.protocol]);
    document.title = "done";
  };
};
const events = new EventSource("/events");
events.onmessage = event => note("event", event.data);
</script>"""


async def page(http_stream: HttpStream) -> None:
    """A page with fetch, events and a WebSocket."""
    match dict(http_stream.headers)[b":path"]:
        case b"/":
            cookie = (b"set-cookie", b"theme=dark; HttpOnly")
            await answer(http_stream, HTML, (b"content-type", b"text/html"), cookie)
        case b"/echo":
            cookie = dict(http_stream.headers).get(b"cookie", b"none")
            await answer(http_stream, await read_all(http_stream) + b" " + cookie)
        case b"/events":
            await http_stream.send_headers(
                [(b":status", b"200"), (b"content-type", b"text/event-stream")]
            )
            await http_stream.write(b"data: first\n\n")
            await http_stream.gone.wait()
        case b"/live":
            await http_stream.send_headers(
                [(b":status", b"200"), (b"sec-websocket-protocol", b"chat")]
            )
            wire = WebSocketStream(http_stream, Side.SERVER)
            while not isinstance(message := await wire.receive(), WebSocketClose):
                await wire.send(message)
        case _:
            await answer(http_stream, status=404)


async def test_a_page_fetches_listens_and_talks_in_a_real_browser(program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    demo = Page("demo-1", "demo")
    async with (
        browser(program("chromium"), tmp_path) as chromium,
        Gateway() as gateway,
        served(demo, page) as served_by,
    ):
        gateway.add(demo)
        tab = await chromium.open(gateway.url(demo))
        assert await tab.evaluate("location.href") == f"http://demo-1.localhost:{gateway.port}/"
        assert await tab.evaluate("document.cookie") == ""
        await tab.until("results.event")
        await tab.click("button")
        await tab.until("document.title === 'done'")
        results = json.loads(await tab.evaluate("document.querySelector('output').textContent"))
        await tab.close()
        events = next(seen for seen in served_by.seen if (b":path", b"/events") in seen.headers)
        await events.gone.wait()
    assert results == {
        "event": "first",
        "echo": "from the browser theme=dark",
        "live": "hello",
        "closed": [4001, "chat"],
    }


async def test_a_page_reloads_by_itself_with_the_next_program(program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    demo = Page("demo-1", "demo --watch")
    async with browser(program("chromium"), tmp_path) as chromium, Gateway() as gateway:
        gateway.add(demo)
        tab = await chromium.open(gateway.url(demo))
        assert "No program serves this page" in await tab.until("document.body.innerText")
        color = await tab.evaluate("getComputedStyle(document.querySelector('i')).animationName")
        assert color == "turn", "the style was refused by the page's own policy"
        await tab.screenshot(tmp_path / "unserved.png")
        async with served(demo, page):
            await tab.until("document.title === 'loading'")
            await tab.close()


async def test_a_link_works_from_any_site_and_twice_and_gives_advice_without_a_cookie(
    program,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    demo = Page("demo-1", "demo")
    async with (
        browser(program("chromium"), tmp_path) as chromium,
        Gateway() as gateway,
        served(demo, page),
    ):
        gateway.add(demo)
        link = gateway.url(demo)
        follow = f"location.href = {json.dumps(link)}"
        # As with a terminal in a web page: another site links here, and the cookie is strict.
        elsewhere = f"http://127.0.0.1:{gateway.port}/"
        tab = await chromium.open(elsewhere)
        assert "telex has no page of that name" in await tab.evaluate("document.body.innerText")
        await tab.evaluate(follow)
        await tab.until("document.title === 'loading'")
        assert await tab.evaluate("location.search") == ""
        tab = await chromium.open(link)
        assert await tab.evaluate("document.title") == "loading", "the cookie is there"
        tab = await chromium.open(elsewhere)
        await tab.evaluate(follow)
        await tab.until("document.querySelector('main a')")
        assert "This link was used" in await tab.evaluate("document.body.innerText")
        await tab.evaluate("document.querySelector('main a').click()")
        await tab.until("document.title === 'loading'")
        stranger = await chromium.stranger(link)
        results = await stranger.evaluate("document.body.innerText")
        assert "This link was used" in results
        assert "start it again: its page then opens with a new link" in results
        assert await stranger.evaluate("getComputedStyle(document.body).display") == "grid"
        await tab.close()


async def test_a_page_cannot_read_another(program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    one, two = Page("demo-1", "demo"), Page("demo-2", "demo")
    async with (
        browser(program("chromium"), tmp_path) as chromium,
        Gateway() as gateway,
        served(one, page),
        served(two, page) as other,
    ):
        gateway.add(one)
        gateway.add(two)
        tab = await chromium.open(gateway.url(two))
        await tab.go(gateway.url(one))
        origin = f"http://demo-2.localhost:{gateway.port}"
        looked = await tab.evaluate(
            "Promise.all(['cors', 'no-cors'].map(mode => fetch("
            f"'{origin}/looked-into', {{mode, credentials: 'include'}}).then(() => 'got', () => 'no')))"
        )
        await tab.evaluate("document.cookie = 'wide=1; domain=localhost'")
        assert await tab.evaluate("document.cookie") == ""
        assert looked[0] == "no"
        # The browser's own request for an icon may come late.
        assert b"/looked-into" not in [dict(one.headers)[b":path"] for one in other.seen]
        await tab.close()
