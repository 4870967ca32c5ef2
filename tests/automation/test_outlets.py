"""No secret leaves a session by any way out: every rule, cut anywhere, wrapped anywhere, coloured.

The cases are generated: each example of the redactor's own tests, times where the program's two
writes meet, times the width of the terminal, times what colours stand inside. One idle session
serves for many, and is fed where the terminal would feed it.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import logging
import random
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from redaction.examples import EXAMPLES, INNOCENT, Example
from telex.automation import notices, protocol
from telex.automation import protocol as spec
from telex.automation.notices import Connection
from telex.automation.server import AutomationService
from telex.cli.listeners import _Plain
from telex.redaction import Redactor, visible
from telex.rpc.errors import RpcError
from telex.rpc.memory import memory_channels
from telex.rpc.peer import Peer
from telex.terminal import actions, session
from telex.terminal.cells import Size
from telex.terminal.screen import Screen
from telex.terminal.session import PtySession
from telex.terminal.transcript import strip_escapes
from telex.terminal.waits import matchers as waits_matchers
from telex.wire.events import Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from telex.wire.events import Event

WINDOW = 8
"""So many neighbouring characters of a secret are a leak."""

LONG = "Zq7Xw9Kd2LmR"
"""In the place of the examples' very short secrets: `abc` may stand anywhere by chance."""


def lengthened(example: Example) -> Example:
    return Example(example.rule, re.sub("«(?!b»)[a-z0-9]{1,7}»", f"«{LONG}»", example.marked))


SECRETS = [lengthened(example) for example in EXAMPLES]
SHOWN = "".join(example.redacted for example in SECRETS)
"""What is no secret: `password` is one only in the wrong place."""
COLOURS = ("none", "at the cut", "everywhere")


@dataclass(frozen=True)
class Case:
    """A text with a secret in it, how it is cut, how wide the terminal is, and its colours."""

    example: Example
    cut: int
    cols: int
    colour: str

    @property
    def writes(self) -> tuple[bytes, bytes]:
        text = self.example.text.replace("\r\n", "\n").replace("\n", "\r\n")
        cut = self.cut % len(text)
        first, second = text[:cut], text[cut:]
        if self.colour == "at the cut":
            second = f"\x1b[1;31m{second}\x1b[m"
        elif self.colour == "everywhere":
            first = "".join(f"\x1b[3{number % 8}m{char}" for number, char in enumerate(first))
            second = "".join(f"\x1b[4{number % 8}m{char}" for number, char in enumerate(second))
        return first.encode(), second.encode()

    @property
    def half(self) -> str:
        """What may be shown of the first write, before it is known what it is the beginning of."""
        return re.sub(r"\s", "", Redactor().redact(strip_escapes(self.writes[0].decode())))

    def check(self, outlet: str, told: str, before: str = "") -> None:
        """`before` was told when it was no secret yet."""
        shown = re.sub(r"[\s\0]+", "", told)
        for window in windows(self.example):
            if window in shown and window not in before:
                raise AssertionError(f"{outlet} leaks {window!r}\n{self}\n{told!r}")


def windows(example: Example) -> set[str]:
    """What must not be read anywhere, blanks and line breaks left out."""
    found = set()
    for secret in re.findall("«([^»]*)»", example.marked):
        dense = re.sub(r"\s+", "", secret)
        found |= {dense[at : at + WINDOW] for at in range(len(dense) - WINDOW + 1)}
    return {window for window in found if window not in SHOWN}


def cases(count: int, *, overprinted: bool = False) -> Iterator[Case]:
    """So many of all there are, the same each time; every example is among them.

    `overprinted` are those that begin their line again: on a screen the value stands in the place
    of its label, and nothing gives it away.
    """
    chosen = random.Random(3)
    usable = [
        example
        for example in SECRETS
        if windows(example) and (overprinted or not re.search("\r(?!\n)", example.text))
    ]
    assert len(usable) > 60
    for example in itertools.islice(itertools.cycle(usable), count):
        cut = chosen.randrange(1, len(example.text))
        yield Case(example, cut, chosen.randrange(9, 90), chosen.choice(COLOURS))


class Client:
    """The other end of a connection, which keeps all that it is told."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self._news = asyncio.Event()

    def received(self, events: list[Event]) -> None:
        bodies = [event.body for event in events]  # type: ignore[union-attr]  # frames only here
        self.bodies += bodies
        self.heard += [json.loads(body) for body in bodies]
        self._news.set()

    def finished(self) -> None: ...

    def lost(self, why: str) -> None: ...

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self._news.clear()
                await self._news.wait()

    def told(self, method: str) -> Iterator[dict[str, Any]]:
        return (each["params"] for each in self.heard if each.get("method") == method)

    def output(self) -> str:
        return "".join(each["output"] for each in self.told("session.output"))

    def bytes(self, attachment: str) -> bytes:
        told = (each for each in self.told("session.bytes") if each["attachment"] == attachment)
        return b"".join(base64.b64decode(each["data64"]) for each in told)


class Rig:
    """A service with one idle session, a caller in this process, and a client that is told."""

    def __init__(self, automation: AutomationService, client: Client, peer: Peer) -> None:
        self.service = automation
        self.client = client
        self.here = Connection(None, Redactor())
        self.there = automation._connection(peer)
        self.id = ""

    def create(self, **how: Any) -> PtySession:
        asked = spec.Create(**{"program": "cat"} | how)
        created = self.service.create(asked, self.here)
        self.id = created.session
        return self.session

    @property
    def session(self) -> PtySession:
        return self.service._sessions.find(self.id)

    def clear(self, cols: int, rows: int = 24) -> None:
        """A new line, an empty screen of this width, nothing above it."""
        self.session._output(b"\r\n.\r\n\x1bc\x1b[3J")
        self.session.resize(Size(rows, cols))

    def feed(self, case: Case) -> None:
        for write in case.writes:
            self.session._output(write)

    def snapshot(self, cells: spec.Cells = "full") -> spec.ScreenSnapshot:
        return self.service.snapshot(spec.ReadScreen(session=self.id, cells=cells), self.here)

    def transcript(self, cursor: int | None = None, strip: bool = False) -> str:
        asked = spec.ReadTranscript(session=self.id, cursor=cursor, strip=strip)
        return self.service.transcript(asked, self.here).text

    def scrollback(self, start: int = 0, count: int = 1000) -> spec.Scrollback:
        asked = spec.ReadScrollback(session=self.id, start=start, count=count, cells="full")
        return self.service.scrollback(asked, self.here)

    async def wait(self, matcher: waits_matchers.Matcher, timeout_ms: int = 0) -> spec.Matched:
        asked = spec.Wait(session=self.id, matcher=matcher, timeout_ms=timeout_ms)
        return await self.service.wait(asked, self.here)

    def attach(self, credit: int = 1 << 20) -> str:
        asked = spec.Attach(session=self.id, credit=credit)
        return self.service.handlers["session.attach"](asked, self.there).attachment

    async def drawn(self, attachment: str) -> None:
        """Until the screen was sent, which happens in its turn."""
        await self.client.until(lambda: self.client.bytes(attachment))

    def detach(self, attachment: str) -> None:
        self.service.handlers["session.detach"](spec.Detach(attachment), self.there)

    def record(self, path: Path, version: Any) -> None:
        asked = spec.Record(session=self.id, path=str(path), format=version, input=True)
        self.service.handlers["session.record"](asked, self.here)

    def stop_recording(self) -> None:
        self.service.handlers["session.record"](spec.Record(session=self.id), self.here)


@asynccontextmanager
async def rigged(**how: Any) -> AsyncIterator[Rig]:
    automation = AutomationService()
    ours, theirs = memory_channels()
    client = Client()
    ours.open(client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "TURN_SECONDS", 60.0)  # what is fed is there, also on a slow machine
        async with Peer(theirs, protocol.DIALECT, automation.methods) as peer:
            rig = Rig(automation, client, peer)
            rig.create(**how)
            try:
                yield rig
            finally:
                automation.forget(rig.there)
                await automation.close()


def on_a_screen(data: bytes, size: Size) -> str:
    screen = Screen(size)
    screen.feed(data)
    text = "".join(row.text for row in screen.rows())
    screen.close()
    return text


# Reads.


@pytest.mark.counted
async def test_no_screen_shows_a_secret(counted: Callable[[int, int], int]) -> None:
    tried = 0
    async with rigged() as rig:
        for case in cases(counted(300, 30_000)):
            rig.clear(case.cols)
            rig.feed(case)
            full, runs = rig.snapshot(), rig.snapshot("runs")
            case.check("plain_text", full.plain_text)
            case.check("cells", "".join(cell.text for cell in full.cells))
            assert not isinstance(runs.runs, type(spec.UNSET))
            case.check("runs", "".join(run.text for run in runs.runs))
            rig.session.resize(Size(24, 9 + (case.cols + case.cut) % 80))
            case.check("after a new width", rig.snapshot("none").plain_text)
            tried += 1
    assert tried


@pytest.mark.counted
async def test_no_screen_shows_the_rest_of_a_secret_that_scrolls_away(
    counted: Callable[[int, int], int],
) -> None:
    """Row by row, until nothing of it is left on the screen."""
    tried = 0
    async with rigged() as rig:
        for case in cases(counted(75, 5_000)):
            rig.clear(case.cols, rows=4)
            rig.feed(case)
            for _ in range(6):
                rig.session._output(b"\r\n")
                case.check("plain_text", rig.snapshot("none").plain_text)
                tried += 1
            told = rig.scrollback()
            case.check("scrollback", "".join(told.lines))
            assert not isinstance(told.cells, type(spec.UNSET))
            case.check("its cells", "".join(cell.text for cell in told.cells))
            for start in range(told.total):
                part = rig.scrollback(start, 1)
                case.check(f"scrollback from {start}", "".join(part.lines))
    assert tried


@pytest.mark.counted
async def test_no_title_holds_a_secret(counted: Callable[[int, int], int]) -> None:
    tried = 0
    async with rigged(transcript_max_chars=900) as rig:
        for case in cases(counted(75, 3_000)):
            words = re.sub(r"\s+", " ", case.example.text)
            cut = case.cut % len(words)
            rig.clear(case.cols)
            rig.session._output(f"\x1b]2;{words[:cut]}".encode())
            rig.session._output(f"{words[cut:]}\x1b\\".encode())
            told = rig.snapshot("none").title
            assert told
            case.check("title", told)
            case.check("transcript", rig.transcript())
            attachment = rig.attach()
            await rig.client.until(lambda each=attachment: rig.client.bytes(each))  # type: ignore[misc]
            case.check("the title of a restore", rig.client.bytes(attachment).decode())
            rig.detach(attachment)
            tried += 1
    assert tried


@pytest.mark.counted
async def test_no_transcript_holds_a_secret_whole_or_cut(
    counted: Callable[[int, int], int],
) -> None:
    """Read at once, without its escapes, and from every cursor that falls inside."""
    tried = 0
    async with rigged(transcript_max_chars=900) as rig:
        for case in cases(counted(30, 1_000), overprinted=True):
            rig.clear(case.cols)
            begin = rig.session.transcript.cursor
            rig.feed(case)
            end = rig.session.transcript.cursor
            case.check("transcript", strip_escapes(rig.transcript()))
            case.check("stripped transcript", rig.transcript(strip=True))
            for cursor in range(begin, end, max(1, (end - begin) // 7)):
                case.check(f"transcript since {cursor}", strip_escapes(rig.transcript(cursor)))
                tried += 1
    assert tried


@pytest.mark.counted
async def test_no_transcript_holds_the_rest_of_a_secret_that_was_evicted(
    counted: Callable[[int, int], int],
) -> None:
    tried = 0
    async with rigged(transcript_max_chars=40) as rig:
        for case in cases(counted(30, 1_000), overprinted=True):
            rig.clear(case.cols)
            rig.feed(case)
            for _ in range(8):
                case.check("what is kept", strip_escapes(rig.transcript()))
                case.check("stripped", rig.transcript(strip=True))
                rig.session._output(b" .. .")
                tried += 1
    assert tried


@pytest.mark.counted
async def test_no_read_shows_a_secret_that_came_through_a_real_terminal(
    counted: Callable[[int, int], int],
) -> None:
    """Typed at a program that prints what it reads, in two writes; nothing is fed by hand."""
    tried = 0
    relay = ("-c", "stty raw -echo; printf ready; exec cat")
    async with rigged(program="sh", args=relay, transcript_max_chars=900) as rig:
        await rig.wait(waits_matchers.ContainsText("ready"), timeout_ms=10_000)
        for number, case in enumerate(cases(counted(80, 2_000))):
            for write in (b"\r\n.\r\n\x1bc", *case.writes, f"\r\nEnd {number}".encode()):
                await rig.session.act(actions.Paste(write.decode()))
            found = await rig.wait(
                waits_matchers.TranscriptContains(f"End {number}"), timeout_ms=10_000
            )
            case.check("snapshot", found.snapshot.plain_text)
            case.check("transcript_tail", strip_escapes(found.transcript_tail))
            case.check("transcript", rig.transcript(strip=True))
            tried += 1
    assert tried


@pytest.mark.parametrize("colour", COLOURS)
async def test_a_callers_own_words_are_hidden_in_every_read(colour: str) -> None:
    """At every width that wraps them; by a literal, and by a pattern."""
    words = "correct-horse-battery-staple"
    example = Example("a caller's own", f"say «{words}» now")
    literal = spec.RedactionRules(True, "[X]", extra_literals=(words,))
    pattern = spec.RedactionRules(True, "[X]", extra_regexes=("correct.horse[a-z-]*",))
    async with rigged(transcript_max_chars=900) as rig:
        for cols, redaction in itertools.product(range(5, 40), (literal, pattern)):
            case = Case(example, cols, cols, colour)
            rig.clear(cols)
            rig.feed(case)
            asked: dict[str, Any] = {"session": rig.id, "redaction": redaction}
            shown = rig.service.snapshot(spec.ReadScreen(**asked), rig.here)
            case.check("plain_text", shown.plain_text)
            case.check("cells", "".join(cell.text for cell in shown.cells))
            read = rig.service.transcript(spec.ReadTranscript(**asked), rig.here)
            case.check("transcript", strip_escapes(read.text))
            every = spec.Wait(**asked, matcher=waits_matchers.ScreenRegex("(?s).+"), timeout_ms=0)
            found = await rig.service.wait(every, rig.here)
            case.check("wait", json.dumps(found.evidence) + found.snapshot.plain_text)
            case.check("transcript_tail", strip_escapes(found.transcript_tail))
            rig.session._output(b"\r\n" * 30)
            above = rig.service.scrollback(spec.ReadScrollback(**asked), rig.here)
            case.check("scrollback", "".join(above.lines))


# Waits.


@pytest.mark.counted
async def test_no_answer_of_a_wait_holds_a_secret(counted: Callable[[int, int], int]) -> None:
    """Patterns that match all, or eight letters of anything: what they captured is told masked."""
    greedy = waits_matchers.ScreenRegex(r"(?s).+")
    matchers: list[waits_matchers.Matcher] = [
        greedy,
        waits_matchers.ScreenRegex(r"[A-Za-z0-9_]{8}"),
        waits_matchers.ScreenRegex(r"(?s)(x)?(?P<pattern>.+)"),
        waits_matchers.TranscriptRegex(r"(?s)[^.]{9,}$"),
        waits_matchers.AllOf((waits_matchers.TranscriptRegex(r"\S{9}$|."), greedy)),
        waits_matchers.AnyOf(
            (waits_matchers.Title("never"), waits_matchers.ScreenRegex(r"\S{8,}|."))
        ),
        waits_matchers.Not(waits_matchers.ContainsText("never")),
    ]
    tried = 0
    async with rigged(transcript_max_chars=900) as rig:
        for number, case in enumerate(cases(counted(150, 10_000))):
            rig.clear(case.cols)
            rig.feed(case)
            try:
                line = case.example.text.strip().splitlines()[0]  # the caller knows it already
                own = waits_matchers.AnyOf((waits_matchers.TranscriptContains(line), greedy))
                found = await rig.wait([*matchers, own][number % (len(matchers) + 1)])
            except RpcError as error:
                case.check("a failed wait", _all_text(error.problem.data))
                continue
            case.check("snapshot", found.snapshot.plain_text)
            case.check("cells", "".join(cell.text for cell in found.snapshot.cells))
            case.check("transcript_tail", strip_escapes(found.transcript_tail))
            case.check("evidence", json.dumps(found.evidence, ensure_ascii=False))
            tried += 1
    assert tried


@pytest.mark.counted
async def test_no_failure_of_a_wait_holds_a_secret(counted: Callable[[int, int], int]) -> None:
    """The nearest miss quotes what came closest, so it is asked for something very close."""
    tried = 0
    async with rigged(transcript_max_chars=900) as rig:
        for case in cases(counted(150, 10_000)):
            rig.clear(case.cols)
            rig.feed(case)
            near = case.example.text[case.cut :][:40].split("\n")[0].strip() or "x"
            wanted = waits_matchers.AnyOf(
                (
                    waits_matchers.ContainsText(f"{near[:4]}never"),
                    waits_matchers.AllOf(
                        (
                            waits_matchers.TranscriptContains(f"{near[:3]}never"),
                            waits_matchers.Title("never"),
                        )
                    ),
                    waits_matchers.ScreenRegex(r"[a-z]+never"),
                    waits_matchers.CursorAt(waits_matchers.CellPosition(0, 900)),
                )
            )
            with pytest.raises(RpcError) as failed:
                await rig.wait(wanted)
            assert failed.value.problem.code == spec.TIMED_OUT
            case.check("the data of a timeout", _all_text(failed.value.problem.data))
            case.check("its sentence", str(failed.value))
            tried += 1
    assert tried


def _all_text(value: object) -> str:
    """Every string in a message, each by itself."""
    match value:
        case str():
            return value + "\n"
        case dict():
            return "".join(map(_all_text, value.values()))
        case list() | tuple():
            return "".join(map(_all_text, value))
    return ""


# What is pushed.


@pytest.mark.counted
async def test_no_notification_holds_a_secret(
    counted: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscribed before, or when half of it was printed; told at once, or each write by itself."""
    monkeypatch.setattr(notices, "PACE_SECONDS", 0)
    tried = 0
    async with rigged() as rig:
        for number, case in enumerate(cases(counted(150, 10_000))):
            subscribe = spec.SetNotifications(True, (), (rig.id,))
            rig.clear(case.cols)
            first, second = case.writes
            early, together = number % 2, number % 4 < 2
            if early:
                rig.service.set_notifications(subscribe, rig.there)
            rig.session._output(first)
            if not early:
                rig.service.set_notifications(subscribe, rig.there)
            if not together:
                await _told_all(rig)
            rig.session._output(second)
            rig.session._output(b"\r\n.\r\nThe End\r\n")
            await rig.client.until(lambda: "The End" in rig.client.output())
            case.check("session.output", strip_escapes(rig.client.output()))
            rig.service.set_notifications(spec.SetNotifications(False), rig.there)
            rig.client.heard.clear()
            tried += 1
    assert tried


async def _told_all(rig: Rig) -> None:
    """The connection was told of all that happened so far."""
    await rig.client.until(
        lambda: (
            any(
                each["sequence"] == rig.session.sequence
                for each in rig.client.told("session.changed")
            )
            or not rig.there.notices._stirred
        )  # type: ignore[union-attr]  # it has a peer
    )


@pytest.mark.counted
async def test_no_notification_after_a_gap_begins_inside_a_secret(
    counted: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader was away, and what is left of the transcript begins somewhere in the secret."""
    monkeypatch.setattr(notices, "PACE_SECONDS", 0)
    tried = 0
    async with rigged(transcript_max_chars=60) as rig:
        rig.service.set_notifications(spec.SetNotifications(True), rig.there)
        for case in cases(counted(100, 8_000)):
            rig.clear(case.cols)
            await rig.client.until(lambda: not rig.there.notices._stirred)  # type: ignore[union-attr]
            rig.client.heard.clear()
            rig.feed(case)
            end = b"The End\r\n"
            rig.session._output(b" ." * (case.cut % 20) + b"\r\n.\r\n" + end)
            await rig.client.until(lambda: "The End" in rig.client.output())
            case.check("session.output", strip_escapes(rig.client.output()))
            gaps = [each for each in rig.client.told("session.output") if each.get("dropped")]
            tried += len(gaps)
    assert tried


@pytest.mark.parametrize("text", INNOCENT)
def test_a_stream_that_follows_says_all_that_comes_and_nothing_twice(text: str) -> None:
    """Wherever it begins; half an escape sequence is said whole, or it would be text."""
    for cut in range(len(text)):
        stream = Redactor().stream()
        stream.follow(text[:cut])
        _, unfinished = visible.split(text[:cut])
        assert stream.feed(text[cut:]) + stream.finish() == unfinished + text[cut:]


@pytest.mark.counted
async def test_no_attachment_is_sent_a_secret(counted: Callable[[int, int], int]) -> None:
    """Attached before, in the middle, and after; read as bytes, and drawn on a fresh screen."""
    tried = 0
    async with rigged() as rig:
        for case in cases(counted(75, 4_000)):
            rig.clear(case.cols, rows=8)
            first, second = case.writes
            before = rig.attach()
            await rig.drawn(before)
            rig.session._output(first)
            middle = rig.attach()
            await rig.drawn(middle)
            rig.session._output(second)
            after = rig.attach()
            await rig.drawn(after)
            rig.session._output(b"\r\n.\r\nThe End\r\n")
            for when, attachment in ("before", before), ("middle", middle), ("after", after):
                await rig.client.until(
                    lambda each=attachment: b"The End" in rig.client.bytes(each)  # type: ignore[misc]
                )
                sent = rig.client.bytes(attachment)
                shown = case.half if when == "middle" else ""
                case.check(f"bytes, attached {when}", strip_escapes(sent.decode()), shown)
                drawn = on_a_screen(sent, rig.session.size)
                case.check(f"as drawn, attached {when}", drawn, shown)
                rig.detach(attachment)
                tried += 1
            rig.client.heard.clear()
    assert tried


@pytest.mark.parametrize("redact", [True, False])
async def test_an_attachment_draws_the_screen_wherever_it_begins(redact: bool) -> None:
    """Also in the middle of a character, of an escape sequence, or of what may become a secret."""
    text = "\r\n漢 \x1b[1;31msk-short é\x1b[m git\x1b[2;20Hx".encode()
    async with rigged() as rig:
        for cut in range(len(text)):
            rig.clear(40)
            rig.session._output(text[:cut])
            asked = spec.Attach(session=rig.id, redact=redact)
            attachment = rig.service.handlers["session.attach"](asked, rig.there).attachment
            await rig.drawn(attachment)
            rig.session._output(text[cut:] + b"\r\n.The End")
            await rig.client.until(
                lambda each=attachment: b"The End" in rig.client.bytes(each)  # type: ignore[misc]
            )
            shown = on_a_screen(rig.client.bytes(attachment), rig.session.size)
            assert shown == "".join(row.text for row in rig.session.screen.rows()), cut
            rig.detach(attachment)


@pytest.mark.counted
async def test_no_attachment_that_fell_behind_is_drawn_a_secret(
    counted: Callable[[int, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too slow for all the bytes: it gets the screen, on which the secret has half scrolled off."""
    monkeypatch.setattr("telex.automation.limits.ATTACHED_BYTES", 32)
    tried = 0
    async with rigged() as rig:
        for case in cases(counted(75, 5_000)):
            rig.clear(case.cols, rows=4)
            attachment = rig.attach(credit=1)
            await rig.client.until(lambda each=attachment: rig.client.bytes(each))  # type: ignore[misc]
            rig.feed(case)
            rig.session._output(b"\r\n" * (case.cut % 5))
            rig.service.handlers["session.credit"](spec.Credit(attachment, 1 << 20), rig.there)
            await asyncio.sleep(0)
            rig.session._output(b"\r\nThe End\r\n")
            await rig.client.until(
                lambda each=attachment: b"The End" in rig.client.bytes(each)  # type: ignore[misc]
            )
            case.check("bytes", strip_escapes(rig.client.bytes(attachment).decode()))
            rig.detach(attachment)
            rig.client.heard.clear()
            tried += 1
    assert tried


# What is written.


@pytest.mark.counted
@pytest.mark.parametrize("version", [2, 3])
async def test_no_recording_holds_a_secret(
    counted: Callable[[int, int], int], tmp_path: Path, version: int
) -> None:
    """Begun before, in the middle, or after; what was printed, and what was typed."""
    tried = 0
    async with rigged() as rig:
        for number, case in enumerate(cases(counted(75, 4_000))):
            path = tmp_path / "cast"
            rig.clear(case.cols, rows=8)
            steps = [lambda each=write: rig.session._output(each) for write in case.writes]  # type: ignore[misc]
            steps.insert(number % 3, lambda: rig.record(path, version))  # noqa: B023  run at once
            for step in steps:
                step()
            if number % 3 == 0:  # typed in two pieces, as by a slow hand
                for write in case.writes:
                    rig.session.notify_input(write)
            rig.stop_recording()
            header, *lines = path.read_text().splitlines()
            events = [json.loads(line) for line in lines]
            for code in "oi":
                told = "".join(text for _, kind, text in events if kind == code)
                case.check(
                    f"recorded {code}", strip_escapes(told), case.half if number % 3 == 1 else ""
                )
            case.check("header", header)
            path.unlink()
            tried += 1
    assert tried


async def test_no_error_sentence_and_no_log_line_holds_a_secret(tmp_path: Path) -> None:
    tried = 0
    redactor = Redactor()
    plain = _Plain(redactor)
    async with rigged() as rig:
        for case in cases(len(SECRETS)):
            text = case.example.text
            for method, params in _mistakes(rig.id, text):
                frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                rig.client.heard.clear()
                rig.there.peer.received([Frame(json.dumps(frame).encode())])  # type: ignore[union-attr]
                await rig.client.until(lambda: rig.client.heard)
                error = rig.client.heard[0]["error"]
                case.check(f"the sentence of {method}", error["message"])
                tried += 1
            record = logging.LogRecord("telex", logging.WARNING, "", 0, text, (), None)
            case.check("a log line", plain.format(record))
    assert tried


def _mistakes(session: str, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that are refused with a sentence that names what was wrong."""
    yield "session.snapshot", {"session": text}
    yield "session.create", {"program": f"/nowhere/{text}"}
    yield "session.create", {"program": "cat", "cwd": f"/nowhere/{text}"}
    yield "session.input", {"session": session, "action": {"type": "key", "value": text}}
    for broken in "(", "[", "**", "(?=x)", ")", "\n(", f"{' ' * 60}(":
        matcher = {"type": "screen_regex", "value": f"{text}{broken}"}
        yield "session.wait", {"session": session, "matcher": matcher, "timeout_ms": 0}
    for kind in "contains_text", "screen_regex", "title":  # these are valid, and never come
        matcher = {"type": kind, "value": f"{re.escape(text)}(.*)never"}
        yield "session.wait", {"session": session, "matcher": matcher, "timeout_ms": 0}
    if "/" not in text:  # two of them in a path are one, and then it is no URL any more
        yield "session.record", {"session": session, "path": f"/nowhere/{text}"}
