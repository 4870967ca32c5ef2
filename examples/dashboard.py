"""A live dashboard of this machine, in your browser, through your terminal.

    telex run -- python examples/dashboard.py
    telex run -- ssh -t HOST python dashboard.py   # the same, of another machine, with no port

Processor, memory and load, drawn as they come (server-sent events). The terminal stays a terminal:
a line is printed now and then, and Ctrl-C ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route

from telex import htty

EVERY = 1.0  # seconds between two looks
TOLD_EVERY = 10  # looks between two lines in the terminal
KEPT = 120  # looks that a new tab is shown


class Machine:
    """What this machine is doing, looked at once for however many tabs are open."""

    def __init__(self) -> None:
        self.looks: deque[dict[str, float]] = deque(maxlen=KEPT)
        self.count = 0
        self._more = asyncio.Condition()
        self._busy, self._all = processor()

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            async with self._more:
                self.looks.append(self._look())
                self.count += 1
                self._more.notify_all()
            if self.count % TOLD_EVERY == 1:
                now = self.looks[-1]
                print(f"{time.strftime('%H:%M:%S')}  cpu {now['cpu']:.0f} %  load {now['load']}")

    async def follow(self) -> AsyncIterator[list[dict[str, float]]]:
        """All that is known, then each look as it comes."""
        seen = max(0, self.count - len(self.looks))
        while True:
            async with self._more:
                while self.count == seen:
                    await self._more.wait()
                new = list(self.looks)[seen - self.count :]
                seen = self.count
            yield new

    def _look(self) -> dict[str, float]:
        busy, total = processor()
        spent = (busy - self._busy) / max(1, total - self._all)
        self._busy, self._all = busy, total
        used, installed = memory()
        return {
            "cpu": round(100 * spent, 1),
            "memory": round(100 * used / installed, 1),
            "used": round(used / 2**20, 2),
            "load": round(os.getloadavg()[0], 2),
        }


def processor() -> tuple[int, int]:
    """Ticks spent working, and ticks in all, since the machine started."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def memory() -> tuple[int, int]:
    """KiB in use, and KiB in all."""
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    known = {words[0]: int(words[1]) for words in lines}
    return known["MemTotal:"] - known["MemAvailable:"], known["MemTotal:"]


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse(PAGE.replace("HOST", escape(os.uname().nodename)))


async def events(request: Request) -> StreamingResponse:
    async def stream() -> AsyncIterator[str]:
        async for looks in request.state.machine.follow():
            yield f"data: {json.dumps(looks)}\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Machine]]:
    machine = Machine()
    watching = asyncio.create_task(machine.watch())
    yield {"machine": machine}
    watching.cancel()
    await asyncio.wait({watching})


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>HOST</title>
<style>
  :root { color-scheme: light dark; --dim: light-dark(#667, #99a); }
  body { font: 15px/1.4 system-ui, sans-serif; margin: 0; padding: 2.5rem max(1rem, 50vw - 32rem);
    background: light-dark(#f4f5f8, #0f1115); color: light-dark(#16181d, #e9ebf0); }
  header { display: flex; align-items: baseline; gap: .8rem; margin-bottom: 1.4rem; }
  h1 { font-size: 1.3rem; margin: 0; }
  #state { color: var(--dim); font-size: .85rem; }
  main { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }
  section { background: light-dark(#fff, #191c22); border-radius: .9rem; padding: 1.1rem 1.2rem 0;
    box-shadow: 0 1px 3px #0002; overflow: hidden; }
  h2 { font-size: .8rem; margin: 0; color: var(--dim); font-weight: 500; }
  strong { font-size: 2.1rem; font-weight: 600; font-variant-numeric: tabular-nums; }
  small { color: var(--dim); font-size: .95rem; }
  svg { display: block; width: calc(100% + 2.4rem); height: 7rem; margin: .4rem -1.2rem 0; }
  path.line { fill: none; stroke: var(--of); stroke-width: 2; vector-effect: non-scaling-stroke; }
  path.area { fill: var(--of); opacity: .14; }
</style>
<header><h1>HOST</h1><span id="state">connecting</span></header>
<main></main>
<script>
  const cards = [
    {key: 'cpu', title: 'Processor', unit: '%', top: 100, colour: '#4c7dff'},
    {key: 'memory', title: 'Memory', unit: '%', top: 100, colour: '#e0559c',
     more: look => look.used.toFixed(1) + ' GiB'},
    {key: 'load', title: 'Load', unit: '', top: 1, colour: '#14a37f'},
  ];
  for (const card of cards) {
    const section = document.createElement('section');
    section.style.setProperty('--of', card.colour);
    section.innerHTML = `<h2>${card.title}</h2><strong>–</strong> <small></small>
      <svg viewBox="0 0 100 100" preserveAspectRatio="none">
        <path class="area"/><path class="line"/></svg>`;
    document.querySelector('main').append(section);
    card.section = section;
  }
  const looks = [];
  function draw(card) {
    const now = looks.at(-1), find = selector => card.section.querySelector(selector);
    find('strong').textContent = now[card.key] + (card.unit && ' ' + card.unit);
    find('small').textContent = card.more ? card.more(now) : '';
    const top = Math.max(card.top, ...looks.map(look => look[card.key])) * 1.05;
    const step = 100 / Math.max(29, looks.length - 1);  // half a minute at first, then all of it
    const x0 = 100 - step * (looks.length - 1);
    const points = looks.map((look, n) => `${x0 + step * n} ${100 - 100 * look[card.key] / top}`);
    find('.line').setAttribute('d', 'M' + points.join('L'));
    find('.area').setAttribute('d', `M${x0} 100L${points.join('L')}L100 100Z`);
  }
  const source = new EventSource('events'), state = document.getElementById('state');
  source.onopen = () => { looks.length = 0; state.textContent = 'live'; };
  source.onerror = () => { state.textContent = 'the program has gone; waiting for it'; };
  source.onmessage = event => {
    looks.push(...JSON.parse(event.data));
    looks.splice(0, looks.length - 120);
    cards.forEach(draw);
  };
</script>
</html>
"""

app = Starlette(routes=[Route("/", page), Route("/events", events)], lifespan=lifespan)

if __name__ == "__main__":
    try:
        htty.run(app)  # until Ctrl-C
    except htty.NoPages as why:
        print(why, file=sys.stderr)
        sys.exit(3)
    print("bye")
