"""A process that writes to a store until it is killed, or until its disk is full.

`store_child.py write DATABASE ROUND`: several runs at once; prints a line for each stored event.
`store_child.py full DATABASE STEPS`: a limit on file sizes that cuts a write at each of many places.
`store_child.py fill DATABASE`: writes until the disk is full, removes `ballast`, and continues.
`store_child.py eio DATABASE CALL EVENTS`: after so many events a system call always fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from pathlib import Path

import refused

from telex.agent.store import (
    DiskFailed,
    DiskFull,
    NewRun,
    Status,
    Store,
    StoreError,
    StoreUnavailable,
)

RUNS = 4


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


async def write(path: Path, turn: str) -> None:
    say("opening")
    store = await Store.open(path)
    await asyncio.gather(*(keep_writing(store, f"{turn}.{number}") for number in range(RUNS)))


async def keep_writing(store: Store, run_id: str) -> None:
    await store.start_run(NewRun(run_id, f"session {run_id}", b"{}", "", new_thread=True))
    number = 0
    while True:
        event = {"type": "text", "content": number, "filling": "x" * (number * 37 % 3000)}
        seq = await store.append(run_id, json.dumps(event).encode())
        say(f"event {run_id} {seq} {number}")
        number += 1
        if number % 10 == 0:
            asked = await store.ask(run_id, "ui.confirm.request", b"{}", b"d")
            say(f"asked {run_id} {asked.id}")
            await store.answer(asked.id, b'{"ok":true}', run_id)
            say(f"answered {run_id} {asked.id}")


async def full(path: Path, steps: str) -> None:
    """Make every write fail where the file would grow beyond a limit, as with `ulimit -f`."""
    async with await Store.open(path) as store:
        await store.start_run(NewRun("a", "s", b"{}", "", new_thread=True))
        expected = failed = 0
        for step in range(int(steps)):
            failed += await one_bound(store, path, step, expected)
            seq = await store.append("a", event(expected))
            assert seq == expected, (seq, expected)
            expected += 1
        say(f"failed {failed} stored {expected}")


async def one_bound(store: Store, path: Path, step: int, expected: int) -> int:
    """Check that an event too large for the limit is refused and leaves nothing in the file."""
    log = path.with_name(path.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    bound = size + step * 173 % 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (bound, resource.RLIM_INFINITY))
    try:
        await store.append("a", event("too large", bound + 100_000))
    except DiskFailed:
        return 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    raise AssertionError(f"{expected}: a write beyond {bound} bytes was reported as stored")


async def fill(path: Path) -> None:
    ballast = path.parent / "ballast"
    ballast.write_bytes(bytes(400_000))
    stored = []
    async with await Store.open(path) as store:
        await store.start_run(NewRun("a", "s", b"{}", "", new_thread=True))
        with contextlib.suppress(DiskFull):
            while True:
                stored.append(await store.append("a", event(len(stored), 5_000)))
        say(f"full after {len(stored)}")
        try:
            await store.append("a", event("no", 50_000))
        except StoreUnavailable as problem:
            say(f"told {type(problem).__name__}: {problem}")
        assert len([e async for e in store.events("a")]) == len(stored)
        ballast.unlink()
        stored += [await store.append("a", event(len(stored) + n, 5_000)) for n in range(5)]
        assert stored == list(range(len(stored))), stored
    say(f"went on to {len(stored)}")


async def eio(path: Path, call: str, events: str) -> None:
    """Make the kernel return EIO for a system call, for this process only and permanently."""
    store = await Store.open(path)
    await store.start_run(NewRun("a", "s", b"{}", "", new_thread=True))
    for number in range(int(events)):
        assert await store.append("a", event(number, 5_000)) == number
    if not refused.from_now_on(call):
        say("not allowed here")
        return
    for _ in range(3):
        for work in (store.append("a", event("no", 5_000)), store.end_run("a", Status.ERROR)):
            try:
                await work
                say(f"{call}: taken for stored")
            except StoreError as problem:
                say(f"told {type(problem).__name__}")
    await store.close()
    say("lives")


def event(content: object, filling: int = 10) -> bytes:
    return json.dumps({"type": "text", "content": content, "x": "x" * filling}).encode()


if __name__ == "__main__":
    name, database, *rest = sys.argv[1:]
    asyncio.run(
        {"write": write, "full": full, "fill": fill, "eio": eio}[name](Path(database), *rest)
    )
