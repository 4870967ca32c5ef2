"""A real browser for the tests: headless Chromium, driven by its own debugging protocol.

    async with browser(program("chromium"), tmp_path) as chromium:
        tab = await chromium.open(url)
        await tab.click("button")
        assert await tab.until("document.title") == "done"

Every wait is bounded, and at the end nothing of the browser runs any more.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from telex.processes.spawn import PipeEnd, Pipes, start

SECONDS = 60.0
FLAGS = [
    "--headless",
    "--no-sandbox",  # the tests may run as root, where there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "about:blank",
]


class BrowserProblem(Exception):
    """The browser, or a script in it, says no."""


class Browser:
    """A running browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tabs: dict[str, Tab] = {}

    async def stranger(self, url: str) -> Tab:
        """A tab of another browser, as it were: with nothing remembered."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        return await self.open(url, browserContextId=context)

    async def open(self, url: str, **where: str) -> Tab:
        target = (await self.call("Target.createTarget", url="about:blank", **where))["targetId"]
        found = await self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = self._tabs[found["sessionId"]] = Tab(self, found["sessionId"], target)
        await tab.call("Page.enable")
        await tab.go(url)
        return tab

    async def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(SECONDS):
            await self._connection.send(json.dumps(message))
            return await answer

    async def listen(self) -> None:
        async for text in self._connection:
            message = json.loads(text)
            if "id" in message:
                self._answered(self._answers.pop(message["id"]), message)
            elif tab := self._tabs.get(message.get("sessionId", "")):
                tab.told(message["method"])

    def _answered(self, answer: asyncio.Future[dict[str, Any]], message: dict[str, Any]) -> None:
        if answer.done():  # whoever asked has lost patience
            return
        if "error" in message:
            answer.set_exception(BrowserProblem(message["error"]["message"]))
        else:
            answer.set_result(message["result"])


class Tab:
    """One page in a browser."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser = browser
        self._session = session
        self._target = target
        self._loaded = asyncio.Event()

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self._browser.call(method, self._session, **params)

    async def go(self, url: str) -> None:
        """Open an address, and wait until it is loaded with everything on it."""
        loaded = self._loaded
        answer = await self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserProblem(f"{url}: {answer['errorText']}")
        async with asyncio.timeout(SECONDS):
            await loaded.wait()

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, or of what it promises."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise BrowserProblem(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The value of an expression once it is true, over any number of reloads."""
        look = (
            "new Promise(done => { const look = () => { let found = null;"
            f" try {{ found = ({expression}); }} catch {{}}"
            " found ? done(found) : requestAnimationFrame(look); }; look(); })"
        )
        async with asyncio.timeout(SECONDS):
            while True:
                loaded = self._loaded
                try:
                    return await self.evaluate(look)
                except BrowserProblem as problem:
                    if "context was destroyed" not in str(problem) and "navigated" not in str(
                        problem
                    ):
                        raise
                await loaded.wait()

    async def click(self, selector: str) -> None:
        """As a person does it: with the mouse, in the middle of the thing."""
        box = await self.evaluate(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)});"
            " box.scrollIntoView(); const at = box.getBoundingClientRect();"
            " return [at.x + at.width / 2, at.y + at.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    async def choose_file(self, selector: str, *paths: Path) -> None:
        document = await self.call("DOM.getDocument")
        found = await self.call(
            "DOM.querySelector", nodeId=document["root"]["nodeId"], selector=selector
        )
        files = [str(path) for path in paths]
        await self.call("DOM.setFileInputFiles", files=files, nodeId=found["nodeId"])

    async def screenshot(self, path: Path) -> None:
        picture = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(picture["data"]))

    async def close(self) -> None:
        await self._browser.call("Target.closeTarget", targetId=self._target)

    def told(self, method: str) -> None:
        if method == "Page.loadEventFired":
            past, self._loaded = self._loaded, asyncio.Event()
            past.set()


@asynccontextmanager
async def browser(program: str, directory: Path) -> AsyncIterator[Browser]:
    """Chromium with nothing remembered, and everything it writes under the directory."""
    home = directory / "chromium"
    home.mkdir()
    argv = [program, *FLAGS, f"--user-data-dir={home}"]
    async with AsyncExitStack() as stack:
        # A socket of its goes there, and the path of a socket has a hundred characters.
        short = stack.enter_context(TemporaryDirectory(prefix="chromium-", dir="/tmp"))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": short, "LANG": "C.UTF-8"}
        stdio = Pipes(PipeEnd.NULL, PipeEnd.NULL, PipeEnd.PIPE)
        child = await stack.enter_async_context(start(argv, stdio=stdio, env=env))
        assert child.stderr is not None
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), child.stderr
        )
        try:
            async with (
                connect(await _address(reader), max_size=None, proxy=None) as connection,
                asyncio.TaskGroup() as tasks,
            ):
                chromium = Browser(connection)
                listening = tasks.create_task(chromium.listen())
                saying = tasks.create_task(_discard(reader))
                yield chromium
                listening.cancel()
                saying.cancel()
        finally:
            transport.close()


async def _address(stderr: asyncio.StreamReader) -> str:
    said = []
    async with asyncio.timeout(SECONDS):
        while line := await stderr.readline():
            said.append(line.decode(errors="replace"))
            if b"DevTools listening on " in line:
                return said[-1].partition("listening on ")[2].strip()
    raise BrowserProblem(f"the browser did not start: {''.join(said)}")


async def _discard(stderr: asyncio.StreamReader) -> None:
    while await stderr.read(65536):
        pass
