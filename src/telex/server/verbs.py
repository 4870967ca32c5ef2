"""The verbs, run inside the server: open, see, type, press, wait, do and the others.

`Verbs.perform` takes a request (`verb_requests`) and the caller's context, and returns a
`VerbAnswer` or raises `VerbFailed` (`verb_answers`). It knows no command line: `verb_calls` serves
those of the shell. `verb_sessions` knows the names and until when sessions are held, `screen_text`
makes the text of a screen; input, waits, pictures and masking are those of the automation server,
which is called as by a client in this process.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from telex import match
from telex.adapters import protocol as adapter_spec
from telex.adapters.adapter import program_of
from telex.adapters.errors import NoProgram
from telex.adapters.plugin_registry import UnknownPlugin
from telex.automation import protocol as spec
from telex.automation.caller import LocalCaller
from telex.automation.client import AsyncTerminal
from telex.automation.errors import Ambiguous, NotFound, SessionProblem, TimedOut
from telex.automation.screen_text import (
    changed_lines,
    changed_rows,
    folded,
    header,
    one_line,
    question_lines,
    rows_of,
    wanted_input,
)
from telex.automation.verb_requests import (
    ClickRequest,
    CloseRequest,
    DoRequest,
    ListRequest,
    OpenRequest,
    PasteRequest,
    PressRequest,
    ResizeRequest,
    SeeRequest,
    SignalRequest,
    TypeRequest,
    WaitRequest,
)
from telex.processes.child_environment import child_environment
from telex.rpc.errors import RpcError
from telex.server import limits
from telex.server.typing_checks import InputCheck, typing_facts
from telex.server.verb_answers import FAILURES, VerbAnswer, VerbFailed, to_failure
from telex.server.verb_client import ANSWER_SECONDS
from telex.server.verb_sessions import NoSuchName, VerbSession, VerbSessions
from telex.terminal import actions
from telex.terminal.cells import STANDARD
from telex.terminal.input_state import UNKNOWN, InputState
from telex.terminal.patterns import Pattern
from telex.terminal.pty import Program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from telex.adapters.server import AutomationServer
    from telex.automation.protocol import Matched
    from telex.automation.verb_protocol import ExpectedFacts, TypingFacts
    from telex.automation.verb_requests import VerbRequest
    from telex.rpc.identity import Identity
    from telex.terminal.waits.matchers import Since

    CheckOpen = Callable[[Program, tuple[tuple[str, str], ...]], Awaitable[None]]
    CheckUse = Callable[[VerbSession], None]

_MARGIN_SECONDS: Final = 5.0
"""Added to the time of a wait: the answer needs some too."""
REACTION_SECONDS: Final = 0.5
"""How long `see` waits at most for the reaction to an input."""
_START_SECONDS: Final = 0.5
"""How long `open` waits at most for a first screen."""
_REST_MS: Final = 60
"""How long the screen must then rest."""


@dataclass(slots=True)
class VerbContext:
    """The caller of verbs, and what they need of it. `Verbs.called_by` makes it."""

    cwd: str
    """The directory in which programs start, and to which the paths of pictures are relative."""
    env: Mapping[str, str]
    """The environment of programs."""
    session: str | None
    """The session of requests that name none. `open` sets it."""
    identity: Identity
    caller: LocalCaller
    check_open: CheckOpen | None = None
    check_use: CheckUse | None = None
    announce: Callable[[float], None] = lambda seconds: None
    """Called with the seconds that a request may take from then on, if they differ from the usual
    ones."""


class Verbs:
    """Runs the verbs of all callers on the sessions of one server."""

    def __init__(
        self, server: AutomationServer, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._service = server.automation
        self._sessions = VerbSessions(server.automation, clock)

    def open_count(self) -> int:
        """Return how many sessions are held for callers of `telex open`."""
        self._sessions.end_unused()
        return len(self._sessions.held())

    def sessions(self) -> list[VerbSession]:
        """Return all sessions, those of `telex open` first."""
        self._sessions.end_unused()
        return self._sessions.all()

    def find(self, name: str) -> VerbSession:
        """Return the session of that name or id. Raises NoSuchName."""
        return self._sessions.find(name)

    async def input_state(self, name: str | None, context: VerbContext) -> InputState | None:
        """Return what the program of a session waits for, without its secrets; None if there is no
        such session."""
        try:
            snapshot = await self._chosen(name, context)[1].snapshot()
        except (NoSuchName, SessionProblem, VerbFailed):
            return None
        return None if snapshot.input_state is UNSET else snapshot.input_state

    async def facts(self, name: str, identity: Identity) -> TypingFacts:
        """Return who reads the next input of a session. Raises NoSuchName, SessionProblem."""
        with self.called_by(identity, "/", {}) as context:
            one, terminal = self._chosen(name, context)
            snapshot = await terminal.snapshot(cells="runs")
        state = snapshot.input_state
        return typing_facts(
            one,
            UNKNOWN if state is UNSET else state,
            _cursor_line(snapshot),
            self._service.lease_holder(one.id),
            self._service.redactor,
        )

    async def close(self) -> None:
        """Stop the timers. The sessions end with the server."""
        await self._sessions.close()

    @contextmanager
    def called_by(
        self,
        identity: Identity,
        cwd: str,
        env: Mapping[str, str],
        check_open: CheckOpen | None = None,
        check_use: CheckUse | None = None,
        expected: ExpectedFacts | None = None,
    ) -> Iterator[VerbContext]:
        """Connect a caller, whose inputs and leases have its identity, while the block runs.

        Args:
            check_open: Called before a program is started, with the variables that the request
                sets. Raises VerbFailed if the caller may not.
            check_use: The same, before a session is used.
            expected: Checked directly before each input.
        """
        check_input = None if expected is None else InputCheck(expected)
        caller = LocalCaller(self._service, identity=identity, check_input=check_input)
        session = env.get("TELEX_SESSION") or None
        context = VerbContext(cwd, env, session, identity, caller, check_open, check_use)
        try:
            yield context
        finally:
            caller.leave()

    async def perform(self, request: VerbRequest, context: VerbContext) -> VerbAnswer:
        """Run one verb. Raises VerbFailed for everything that a caller can cause."""
        try:
            return await self._perform(request, context)
        except FAILURES as error:
            raise to_failure(error) from None

    async def _perform(self, request: VerbRequest, context: VerbContext) -> VerbAnswer:
        match request:
            case OpenRequest():
                return await self._open(request, context)
            case SeeRequest():
                return await self._see(request, context)
            case TypeRequest():
                return await self._type(request, context)
            case PressRequest():
                return await self._act(request, context, request.keys)
            case PasteRequest():
                return await self._paste(request, context)
            case ClickRequest():
                return await self._click(request, context)
            case WaitRequest():
                return await self._wait(request, context)
            case DoRequest():
                return await self._do(request, context)
            case ListRequest():
                return self._list()
            case ResizeRequest():
                return await self._resize(request, context)
            case SignalRequest():
                return await self._act(request, context, [actions.Signal(request.signal)])
            case CloseRequest():
                return await self._close(request, context)

    # Verbs.

    async def _open(self, asked: OpenRequest, context: VerbContext) -> VerbAnswer:
        program = self._program(asked, context)
        if context.check_open is not None:
            await context.check_open(program, asked.env)
        name = asked.name
        if name is None:
            name = self._sessions.free_name(program.argv[0])
        else:
            self._sessions.check_free(name)
        created = await context.caller.call(
            "session.create",
            spec.Create(
                program=program.argv[0],
                args=tuple(program.argv[1:]),
                cwd=program.cwd,
                env=dict(program.env),
                rows=program.size.rows,
                cols=program.size.cols,
            ),
            spec.Created,
        )
        ttl = asked.ttl or limits.UNUSED_SESSION_SECONDS
        held = self._sessions.add(  # before anything else happens: the name is taken now
            name,
            created.session,
            program.argv,
            opened_by=str(context.identity),
            ttl=None if asked.keep else ttl,
        )
        if asked.adapter is not None:
            wanted = adapter_spec.AttachTo(asked.adapter, created.session)
            try:
                bound = await context.caller.call("adapter.attach", wanted, adapter_spec.Started)
            except BaseException:
                await self._service.end_session(created.session)
                raise
            held.adapter = bound.adapter
        context.session = name
        await _let_rest(held, AsyncTerminal(context.caller, held.id), _START_SECONDS)
        time_to_live = "" if held.ttl is None else f", {_duration(held.ttl)} after its last use"
        words = [f"{name}: {held.program}", str(program.size)]
        words += [held.state] if held.session.exit is not None else []
        line = "  ".join([*words, f"held {self._until(held)}{time_to_live}"])
        return VerbAnswer(line, facts=self._facts(held))

    def _program(self, asked: OpenRequest, context: VerbContext) -> Program:
        """Return the program to open: in the caller's directory, and with exactly the caller's
        environment and what telex sets."""
        size, argv = asked.size, asked.command
        cwd = _in_directory(context, asked.cwd or "")
        changes: Mapping[str, str | None] = dict(asked.env)
        if asked.adapter is not None:
            try:
                plugin = self._server.plugins.find(asked.adapter)
                start = adapter_spec.Start(
                    plugin=plugin.name,
                    program=argv[0] if argv else None,
                    args=tuple(argv[1:]) if argv else None,
                    env=dict(asked.env),
                    rows=size.rows if size else None,
                    cols=size.cols if size else None,
                )
                planned = program_of(plugin, start)
            except (UnknownPlugin, NoProgram) as error:
                raise VerbFailed(1, str(error)) from None
            argv, size, changes = planned.argv, planned.size, planned.env
        theirs = child_environment(context.env, changes, terminal=True)
        ours = {name: None for name in os.environ if name not in theirs}
        return Program(tuple(argv), os.path.normpath(cwd), {**ours, **theirs}, size or STANDARD)

    async def _see(self, asked: SeeRequest, context: VerbContext) -> VerbAnswer:
        one, terminal = self._chosen(asked.session, context)
        await _let_rest(one, terminal, REACTION_SECONDS)
        if asked.png is not None:
            return await self._draw(context, one, terminal, asked.png)
        adapted = await self._adapter_state(context, one)
        before = [] if asked.scrollback is None else await _above(context, one, asked.scrollback)
        snapshot = await terminal.snapshot(cells="runs")
        now = rows_of(snapshot)
        old = next((rows for rows in one.screens if rows.sequence == asked.since), None)
        if not any(rows.sequence == now.sequence for rows in one.screens):
            one.screens.append(now)
        one.note_look()
        lines = folded([*before, *(now.styled if asked.style else now.plain)])
        note = ""
        if asked.since is not None:
            if old is None:
                note = f"(seq {asked.since} is not kept; this is the whole screen)"
            else:
                lines = changed_lines(old, now, style=asked.style)
        facts = {
            **self._facts(one),
            "sequence": snapshot.sequence,
            "cursor": snapshot.cursor,
            "title": snapshot.title,
            "input_state": snapshot.input_state,
            **({} if adapted is None else {"adapter_state": adapted}),
            **({"scrollback": before} if asked.scrollback is not None else {}),
        }
        if old is None:
            facts["text"] = snapshot.plain_text
        else:
            facts["changed"] = [{"row": row, "text": text} for row, text in changed_rows(old, now)]
        if asked.style:
            facts["runs"] = snapshot.runs
        words = [one.state] if one.session.exit is not None else [_wanted(snapshot), adapted or ""]
        line = header(one.name, one.program, snapshot, state="  ".join(filter(None, words)))
        return VerbAnswer(line, "\n".join(lines), facts, snapshot.title or "", note)

    async def _draw(
        self, context: VerbContext, one: VerbSession, terminal: AsyncTerminal, path: str
    ) -> VerbAnswer:
        place = Path(_in_directory(context, path))
        try:
            await terminal.screenshot(place)
        except ValueError as error:
            raise VerbFailed(2, str(error)) from None
        one.note_look()
        return VerbAnswer(str(place), facts={**self._facts(one), "path": str(place)})

    async def _adapter_state(self, context: VerbContext, one: VerbSession) -> str | None:
        if one.adapter is None or one.session.exit is not None:
            return None
        wanted = adapter_spec.OfAdapter(one.adapter)
        try:
            reply = await context.caller.call("adapter.state", wanted, adapter_spec.StateReply)
        except (SessionProblem, RpcError) as error:  # the screen is shown all the same
            return one_line(f"the adapter failed: {error}")
        return one_line(reply.state.state)

    async def _type(self, asked: TypeRequest, context: VerbContext) -> VerbAnswer:
        typed: list[actions.Action] = [actions.Text(asked.text)]
        if asked.enter:
            typed.append(actions.Key("enter"))
        return await self._act(asked, context, typed)

    async def _paste(self, asked: PasteRequest, context: VerbContext) -> VerbAnswer:
        one, _ = self._chosen(asked.session, context)
        kind = actions.BracketedPaste if one.session.screen.bracketed_paste else actions.Paste
        return await self._act(asked, context, [kind(asked.text)])

    async def _click(self, asked: ClickRequest, context: VerbContext) -> VerbAnswer:
        one, terminal = self._chosen(asked.session, context)
        if asked.at is not None:
            row, col = asked.at
        else:
            await _let_rest(one, terminal, REACTION_SECONDS)
            row, col = await _place(terminal, asked.text or "")
        event = actions.MouseEvent(row, col, button=asked.button, count=asked.count)
        return await self._act(asked, context, [actions.Mouse(event)])

    async def _act(
        self,
        asked: TypeRequest | PressRequest | PasteRequest | ClickRequest | SignalRequest,
        context: VerbContext,
        wanted: Iterable[actions.Action],
    ) -> VerbAnswer:
        one, terminal = self._chosen(asked.session, context)
        for action in wanted:
            one.note_input(await terminal.act(action))
        return VerbAnswer(facts=self._facts(one))

    async def _resize(self, asked: ResizeRequest, context: VerbContext) -> VerbAnswer:
        one, terminal = self._chosen(asked.session, context)
        await terminal.resize(rows=asked.size.rows, cols=asked.size.cols)
        return VerbAnswer(facts=self._facts(one))

    async def _wait(self, asked: WaitRequest, context: VerbContext) -> VerbAnswer:
        one, terminal = self._chosen(asked.session, context)
        new_only = asked.text is not None or asked.regex is not None
        since: Since | None = asked.since
        if since is None and new_only and not asked.anywhere:
            since = one.inputs()
        context.announce(asked.max + _MARGIN_SECONDS)
        try:
            found = await terminal.wait(_matcher(asked), asked.max, since=since)
        except TimedOut as late:
            raise to_failure(late, _stood_before(asked, late)) from None
        finally:
            context.announce(ANSWER_SECONDS)
            one.note_look()
        line = _matched_line(asked, found)
        facts = {
            **self._facts(one),
            "sequence": found.sequence,
            "elapsed_ms": found.elapsed_ms,
            "evidence": found.evidence,
            "line": line,
        }
        if asked.exit:
            return VerbAnswer(one.state, facts=facts)
        if asked.input:
            state = msgspec.convert(found.evidence, InputState)
            return VerbAnswer(wanted_input(state), "\n".join(question_lines(state)), facts)
        return VerbAnswer(screen=line, facts=facts)

    async def _do(self, asked: DoRequest, context: VerbContext) -> VerbAnswer:
        steps = asked.steps
        context.session = asked.session or context.session
        answer = VerbAnswer()
        for number, step in enumerate(steps, 1):
            context.announce(ANSWER_SECONDS)
            try:
                answer = await self.perform(step.request, context)
            except VerbFailed as failed:
                screen = failed.screen or await self._last_screen(step.request, context)
                place = f"step {number} of {len(steps)}, {step.words}"
                data = {"step": number, "words": step.words, "data": failed.data}
                raise VerbFailed(
                    failed.code, f"{place}: {failed}", screen, data, failed.reasons
                ) from None
        return answer

    async def _last_screen(self, request: VerbRequest, context: VerbContext) -> str:
        """Return the screen after a step that failed without one; empty if there is none."""
        if not hasattr(request, "session"):
            return ""  # it used no session
        try:
            one, terminal = self._chosen(request.session, context)
            await _let_rest(one, terminal, REACTION_SECONDS)
            return "\n".join(folded((await terminal.text()).split("\n")))
        except (NoSuchName, SessionProblem, VerbFailed):
            return ""

    def _list(self) -> VerbAnswer:
        self._sessions.end_unused()
        there = self._sessions.all()
        rows = [self._row(one) for one in there]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        text = "\n".join(lines) or "no session; telex open -- PROGRAM opens one"
        return VerbAnswer(text, facts={"sessions": [self._facts(one) for one in there]})

    def _row(self, one: VerbSession) -> tuple[str, ...]:
        idle = self._sessions.idle_seconds(one)
        return (
            one.name,
            one.program,
            str(one.session.size),
            one.state,
            "" if idle is None else f"idle {_duration(idle)}",
            self._until(one),
            f"by {one.opened_by or 'another client'}",
        )

    async def _close(self, asked: CloseRequest, context: VerbContext) -> VerbAnswer:
        if asked.all:
            chosen = self._sessions.held()
        elif asked.names:
            chosen = [self._sessions.find(name) for name in dict.fromkeys(asked.names)]
        else:
            chosen = [self._chosen(asked.session, context)[0]]
        if context.check_use is not None:
            for one in chosen:
                context.check_use(one)
        ending = [
            context.caller.call("session.close", spec.OfSession(one.id), spec.Closed)
            for one in chosen
        ]
        for outcome in await asyncio.gather(*ending, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return VerbAnswer(facts={"closed": [one.name for one in chosen]})

    # Shared by verbs.

    def _chosen(self, asked: str | None, context: VerbContext) -> tuple[VerbSession, AsyncTerminal]:
        name = asked or context.session
        try:
            one = self._sessions.find(name)
        except NoSuchName as error:
            by_variable = not asked and name == context.env.get("TELEX_SESSION")
            told = " (the name in TELEX_SESSION)" if name and by_variable else ""
            raise NoSuchName(f"{error}{told}") from None
        if context.check_use is not None:
            context.check_use(one)
        return one, AsyncTerminal(context.caller, one.id)

    def _until(self, one: VerbSession) -> str:
        """Return until when a session is held, in words."""
        left = self._sessions.seconds_left(one)
        if left is None:
            return "until closed"
        return time.strftime("until %H:%M", time.localtime(time.time() + left))

    def _facts(self, one: VerbSession) -> dict[str, Any]:
        ended = one.session.exit
        return {
            "session": one.name,
            "id": one.id,
            "program": one.program,
            "rows": one.session.size.rows,
            "cols": one.session.size.cols,
            "state": "running" if ended is None else "exited",
            "exit_code": None if ended is None else ended.code,
            "signal": None if ended is None else ended.signal,
            "sequence": one.session.mark_sequence(),
            "idle_seconds": _rounded(self._sessions.idle_seconds(one)),
            "held_seconds": _rounded(self._sessions.seconds_left(one)),
            "opened_by": one.opened_by,
            "inputs": one.session.inputs.count,
        }


def _in_directory(context: VerbContext, path: str) -> str:
    """Return a path in the caller's directory. Raises VerbFailed if that has been removed."""
    joined = os.path.join(context.cwd, path)
    if not os.path.isabs(joined):
        raise VerbFailed(
            1, "your directory was removed; change to another one, or name a full path"
        )
    return joined


def _wanted(snapshot: spec.ScreenSnapshot) -> str:
    return "" if snapshot.input_state is UNSET else wanted_input(snapshot.input_state)


def _matcher(asked: WaitRequest) -> match.What:
    if asked.regex is not None:
        return match.regex(asked.regex)
    if asked.gone is not None:
        return match.absent(asked.gone)
    if asked.idle is not None:
        return match.stable(round(asked.idle * 1000))
    if asked.input:
        return match.input_wanted()
    return match.exited() if asked.text is None else match.text(asked.text)


def _matched_line(asked: WaitRequest, found: Matched) -> str:
    """Return the line with the match: what a caller would look for next."""
    if asked.regex is not None:
        wanted = str(found.evidence.get("capture") or "")
    elif asked.text is not None:
        wanted = asked.text
    else:
        return ""
    lines = [one for one in found.snapshot.plain_text.split("\n") if wanted and wanted in one]
    return lines[-1].strip() if lines else one_line(wanted)


def _stood_before(asked: WaitRequest, late: TimedOut) -> str:
    """Return what to do if the text was there, and only its novelty was missing."""
    screen = late.data.get("screen_tail", "")
    if asked.regex is not None:
        there = Pattern(asked.regex).search(screen) is not None
    else:
        there = asked.text is not None and asked.text in screen
    if asked.anywhere or not there:
        return ""
    since = "that sequence" if asked.since is not None else "your last input, or is its echo"
    return f"; it stood there before {since}: --anywhere counts that too"


def _cursor_line(snapshot: spec.ScreenSnapshot) -> str:
    """Return the row of the cursor, with the rows that its line was wrapped from and into."""
    lines = snapshot.plain_text.split("\n")
    wrapped = set(() if snapshot.wrapped is UNSET else snapshot.wrapped)
    first = last = snapshot.cursor.row
    while first - 1 in wrapped:
        first -= 1
    while last in wrapped:
        last += 1
    return "".join(lines[first : last + 1])


async def _let_rest(one: VerbSession, terminal: AsyncTerminal, seconds: float) -> None:
    """Let the program finish what it is drawing, and first let it begin if nobody has looked since
    its start or since the last input. A screen that rests already costs no time."""
    rests = match.stable(_REST_MS)
    if (moment := one.unseen()) is not None:
        rests = match.any_of(match.all_of(match.changed(moment), rests), match.exited())
    # If the key changes nothing, or the screen never rests, it is shown as it is.
    with suppress(TimedOut):
        await terminal.wait(rests, seconds)


async def _place(terminal: AsyncTerminal, text: str) -> tuple[int, int]:
    """Return the cell to click for a text that stands at one place of the screen."""
    try:
        return (await terminal.find(text).get()).middle
    except NotFound as error:
        raise NotFound(f"{text!r} is not on the screen", error.data) from None
    except Ambiguous as error:
        places = [f"{one.row},{one.col}" for one in error.data["places"]]
        sentence = f"{text!r} stands at {', '.join(places)}; choose by --at ROW,COL"
        raise Ambiguous(sentence, error.data) from None


async def _above(context: VerbContext, one: VerbSession, count: int) -> list[str]:
    asked = spec.ReadScrollback(session=one.id, start=-count, count=count)
    read = await context.caller.call("session.scrollback", asked, spec.Scrollback)
    return list(read.lines)


def _duration(seconds: float) -> str:
    """Return a time in its largest unit: 45s, 12m, 3h."""
    if seconds < 120:
        return f"{round(seconds)}s"
    return f"{round(seconds / 60)}m" if seconds < 7200 else f"{round(seconds / 3600)}h"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
