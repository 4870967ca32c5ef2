"""A program that uses all of JSON escapes on its terminal, and writes down what came of it.

    says_what_it_found.py BYTES FILE SENT

It detects, styles, asks, sends BYTES bytes of the file SENT, receives given.bin, and waits for a
click. What it found is JSON in FILE.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from telex import escapes


async def main(size: int, found: Path, sent: Path) -> None:
    said: dict[str, Any] = {}
    try:
        async with escapes.connect(timeout=3) as term:
            said |= {"via": term.via, "maxframe": term.maxframe}
            said["supports"] = {one: term.supports(one) for one in ("term:report", "x:nonsense")}
            await look(term, said)
            await send(term, sent.read_bytes()[:size], said)
            await receive(term, said)
            await hear(term, said)
    finally:
        found.write_text(json.dumps(said))
    print("\r\nthe program is over", flush=True)


async def look(term: escapes.AsyncAnsweringTerminal, said: dict[str, Any]) -> None:
    term.go(3, 5)
    term.style(color="#aaaaaa", bold=True)
    term.write("styled")
    place = await term.report("cursor")
    said["cursor"] = [place.row, place.col]
    term.reset_style()


async def send(term: escapes.AsyncAnsweringTerminal, data: bytes, said: dict[str, Any]) -> None:
    began = time.monotonic()
    about = {"name": "sent.bin", "size": len(data)}
    said["kept"] = await term.call("file:download", about, parts=data, timeout=60)
    said["send_seconds"] = time.monotonic() - began


async def receive(term: escapes.AsyncAnsweringTerminal, said: dict[str, Any]) -> None:
    began = time.monotonic()
    about, got = None, bytearray()
    async for part in term.stream("file:upload", {"name": "given.bin"}, timeout=60):
        if about is None:
            about = part
        else:
            got += part
    said |= {"about": about, "received": len(got), "sha256": hashlib.sha256(got).hexdigest()}
    said["receive_seconds"] = time.monotonic() - began


async def hear(term: escapes.AsyncAnsweringTerminal, said: dict[str, Any]) -> None:
    async with term.events("event:mouseclick", "event:key") as events:
        term.go(10, 1)
        term.write("click now")
        heard = []
        async for event in events:
            heard.append([event.name, msgspec.to_builtins(event.data)])
            if len(heard) == 2:
                break
    said["heard"] = heard


asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
