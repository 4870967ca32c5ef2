"""The same as `client`, for programs without an event loop. Each method waits for its answer.

Written out for the reason that `telex.automation.sync` is; a test holds it to `client`.

The event loop runs in a thread of its own. A plain function that answers questions is called in
the thread that waits for the run of the question, not in the loop's: it may use `input`, and Ctrl-C
interrupts it. If no thread waits for the run, the function is called in the callback thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from telex.agent import limits
from telex.agent.errors import ConnectionLost
from telex.agent.ui_callbacks import call_in_loop
from telex.rpc.errors import Condition, RpcError

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence

    from telex.agent.client import AsyncAgent
    from telex.agent.protocol.events import AgentEvent
    from telex.agent.protocol.extensions import (
        ArtifactReadResult,
        CommandsListResult,
        HistoryExportResult,
        HistoryUndoResult,
        PermissionExplainResult,
        RunDiffResult,
        RunSteerResult,
        TerminalListResult,
        TodosResult,
        WorkspaceListResult,
        WorkspaceReadResult,
        WorkspaceSearchResult,
    )
    from telex.agent.protocol.runs import (
        PeerInfo,
        RunCancelResult,
        RunStatus,
        ServerCapabilities,
        UiContext,
        WorkspaceInfo,
    )
    from telex.agent.protocol.sessions import (
        AuthLogoutResult,
        ContextInspectResult,
        McpListResult,
        ModelListResult,
        ModelSetResult,
        ModelSource,
        SessionListResult,
        ShellExecResult,
        SkillsListResult,
        ToolCallResult,
    )
    from telex.agent.run_stream import AsyncRun, RunMessage, RunResult, SessionHistory
    from telex.agent.ui_callbacks import Question
    from telex.automation.portal import Portal

log = logging.getLogger("telex.agent")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _ForCaller:
    """A question whose function is to be called outside the loop's thread."""

    function: Callable[[Any], Any]
    params: Question
    answer: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    result: T


@dataclass(slots=True)
class _RunQuestions:
    """The questions of one run that no thread has taken, and the threads that wait for the run."""

    open: deque[_ForCaller] = field(default_factory=deque)
    waiting: int = 0
    """Calls and iterations that wait for the run, also while their thread calls a function."""
    idle: set[asyncio.Future[None]] = field(default_factory=set)
    """Set when a question is added: the calls whose thread can take one."""


class CallerThread:
    """Runs work in the portal's loop, and the functions that answer questions outside it.

    A question of a run is answered in a thread that waits for that run (`run_answering`,
    `iterate`), and an exception of its function is raised there. A question without a run comes
    from a request such as `tool_call`, and is answered in a thread that waits for such a request.
    If no thread waits for the run within `AGENT_CLIENT_UNATTENDED_SECONDS`, the question is
    answered in the callback thread, and an exception is logged. The callback thread starts with
    the first such question and ends with the last.

    A thread takes results before questions, so events are handled before the question that follows
    them.
    """

    def __init__(self, agent: AsyncAgent, portal: Portal) -> None:
        self._agent = agent
        self._portal = portal
        self._runs: dict[str | None, _RunQuestions] = {}
        self._unattended: deque[_ForCaller] = deque()
        self._callback_thread = False
        agent._callbacks.invoke = self._ask

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work. Questions are left to the threads that wait for them."""
        self._check_open(work)
        return self._portal.run(work)

    def run_answering(self, work: Coroutine[Any, Any, T], run_id: str | None) -> T:
        """Return the result of the work, after the questions of the run that come meanwhile.

        Args:
            work: Waits for the run, or is a request that may ask.
            run_id: The run; None for the questions that belong to no run.
        """
        self._check_open(work)
        task, step = self._portal.run(self._begin(work, run_id))
        try:
            while not isinstance(step, _Done):
                if (error := self._answer(step)) is not None:
                    self._raise(error, run_id)
                step = self._portal.run(self._wait(task, run_id))
        except BaseException:
            self._portal.run(_cancelled(task))
            raise
        return step.result

    def iterate(self, messages: AsyncGenerator[T, None], run_id: str) -> Generator[T, None, None]:
        """Yield the messages of a run, and answer its questions between them."""
        following = self._following(messages, run_id)
        try:
            while (message := self.run_answering(_next(following), run_id)) is not None:
                yield message
        finally:
            if not self._agent.closed:  # else the end of the client has closed the generator
                self._portal.run(_close(following))

    def _check_open(self, work: Coroutine[Any, Any, Any]) -> None:
        if self._agent.closed:
            work.close()
            raise ConnectionLost("this client was closed")

    def _answer(self, asked: _ForCaller) -> BaseException | None:
        """Call the function in this thread. Return its exception, which leaves no answer."""
        error: BaseException | None = None
        outcome: _Done[Any] | RpcError
        try:
            outcome = _Done(asked.function(asked.params))
        except BaseException as raised:  # noqa: BLE001  the caller raises or logs it
            error = raised
            outcome = RpcError(Condition.INTERNAL, "the UI failed to answer")
        self._portal.run(_settle(asked.answer, outcome))
        return error

    def _raise(self, error: BaseException, run_id: str | None) -> None:
        """Raise the exception of a function to the caller, unless the question may belong to
        another thread's request: questions without a run do not name their request."""
        asking = self._runs.get(run_id)
        shared = run_id is None and asking is not None and asking.waiting > 1
        if not shared or not isinstance(error, Exception):
            raise error
        _log_failure(error)

    def _answer_unattended(self) -> None:
        """The callback thread."""
        from telex.automation.errors import SessionClosed

        with contextlib.suppress(SessionClosed):  # the client was closed, and needs no answer
            while (asked := self._portal.run(self._next_unattended())) is not None:
                if (error := self._answer(asked)) is not None:
                    _log_failure(error)

    # In the loop.

    async def _begin(
        self, work: Coroutine[Any, Any, T], run_id: str | None
    ) -> tuple[asyncio.Task[T], _Done[T] | _ForCaller]:
        task = asyncio.create_task(work)
        self._enter(run_id)
        task.add_done_callback(lambda _: self._leave(run_id))
        return task, await self._wait(task, run_id)

    async def _wait(self, task: asyncio.Task[T], run_id: str | None) -> _Done[T] | _ForCaller:
        """Wait until the task is done, or a question of the run is to be answered."""
        try:
            await asyncio.sleep(0)  # a result that is there already comes before a question
            while not task.done():
                questions = self._runs[run_id]
                if (question := _take(questions.open)) is not None:
                    return question
                waiter = asyncio.get_running_loop().create_future()
                questions.idle.add(waiter)
                try:
                    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    questions.idle.discard(waiter)
            return _Done(task.result())
        except asyncio.CancelledError:
            await _cancelled(task)
            raise

    async def _following(
        self, messages: AsyncGenerator[T, None], run_id: str
    ) -> AsyncGenerator[T, None]:
        """An iteration waits for its run also while its thread handles a message."""
        self._enter(run_id)
        try:
            async with contextlib.aclosing(messages):
                async for message in messages:
                    yield message
        finally:
            self._leave(run_id)

    def _enter(self, run_id: str | None) -> None:
        self._runs.setdefault(run_id, _RunQuestions()).waiting += 1

    def _leave(self, run_id: str | None) -> None:
        questions = self._runs[run_id]
        questions.waiting -= 1
        if not questions.waiting:
            for asked in questions.open:
                self._attend(asked)
        self._forget(run_id)

    def _forget(self, run_id: str | None) -> None:
        questions = self._runs.get(run_id)
        if questions is not None and not questions.waiting and not questions.open:
            del self._runs[run_id]

    async def _ask(self, function: Callable[[Any], Any], params: Question) -> Any:
        """Have a plain function called in a thread that waits for the run, or the callback's."""
        if inspect.iscoroutinefunction(function):
            return await call_in_loop(function, params)
        asked = _ForCaller(function, params, asyncio.get_running_loop().create_future())
        questions = self._runs.setdefault(params.run_id, _RunQuestions())
        questions.open.append(asked)
        for waiter in questions.idle:
            if not waiter.done():
                waiter.set_result(None)
        if not questions.waiting:
            self._attend(asked)
        try:
            return await asked.answer
        finally:
            if asked in questions.open:
                questions.open.remove(asked)
            self._forget(params.run_id)

    def _attend(self, asked: _ForCaller) -> None:
        """Pass a question to the callback thread, unless a thread waits for its run in time."""
        seconds = limits.AGENT_CLIENT_UNATTENDED_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._take_over, asked)

    def _take_over(self, asked: _ForCaller) -> None:
        questions = self._runs.get(asked.params.run_id)
        if questions is None or questions.waiting or asked not in questions.open:
            return
        questions.open.remove(asked)
        self._unattended.append(asked)
        if not self._callback_thread:
            self._callback_thread = True
            # A daemon: a function that never returns must not block the end of the program.
            name = "telex-callbacks"
            threading.Thread(target=self._answer_unattended, name=name, daemon=True).start()

    async def _next_unattended(self) -> _ForCaller | None:
        asked = _take(self._unattended)
        self._callback_thread = asked is not None
        return asked


def _take(questions: deque[_ForCaller]) -> _ForCaller | None:
    while questions:
        question = questions.popleft()
        if not question.answer.done():  # else it was withdrawn
            return question
    return None


def _log_failure(error: BaseException) -> None:
    log.error("a function that answers questions failed", exc_info=error)


async def _settle(answer: asyncio.Future[Any], outcome: _Done[Any] | Exception) -> None:
    """Unless the question was withdrawn meanwhile."""
    if answer.done():
        return
    if isinstance(outcome, _Done):
        answer.set_result(outcome.result)
    else:
        answer.set_exception(outcome)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def _close(messages: AsyncGenerator[Any, None]) -> None:
    await messages.aclose()


async def _next(messages: AsyncGenerator[T, None]) -> T | None:
    return await anext(messages, None)


class Run:
    """One run that this client started or attached to.

    Iterate over it to receive its events until it has ended. The loop may be left and entered
    again: it continues after the last event it took. A question of the runtime is passed to its
    function when the loop has handled the events before it. The run continues when nobody
    iterates, and also when the client leaves.

    Attributes:
        run_id: The id of the run, for `run_attach` in another client.
        session_id: The session that the run belongs to.
        status: The last status that was received.
        last_seq: The number of the last event that the program took; -1 before the first.
        result: The end of the run; None until the program took the last message.

    Example:
        run = agent.run_start("list *.py")
        for event in run:
            match event:
                case telex.agent.ToolCallEvent(tool=tool):
                    print("*", tool)
                case telex.agent.FinalEvent(content=answer):
                    print(answer)
        print(run.status)
    """

    __module__ = "telex.agent"

    def __init__(self, run: AsyncRun, caller: CallerThread) -> None:
        self._run = run
        self._caller = caller
        self.run_id = run.run_id
        self.session_id = run.session_id

    def __repr__(self) -> str:
        return f"<telex.agent.Run run_id={self.run_id!r} status={self.status!r}>"

    @property
    def status(self) -> RunStatus:
        """The last status that was received."""
        return self._run.status

    @property
    def last_seq(self) -> int:
        """The number of the last event that the program took; -1 before the first."""
        return self._run.last_seq

    @property
    def result(self) -> RunResult | None:
        """The end of the run; None until the program took the last message."""
        return self._run.result

    def __iter__(self) -> Generator[AgentEvent, None, None]:
        """Yield the events of the run until it has ended.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.
        """
        return self._each(self._run.__aiter__())

    def messages(self) -> Generator[RunMessage, None, None]:
        """Yield everything that the runtime sends about the run, in order.

        These are events with their numbers (`RunEvent`), statuses, the context that is left,
        diagnostics, todo lists, and with `deltas` pieces of text (`RunDelta`). The last one is a
        `RunStatusNotify` with the status `completed`, `error` or `cancelled`. After a reconnect no
        event is missing or repeated; deltas may be missing.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.

        Example:
            run = agent.run_start("list *.py")
            for message in run.messages():
                match message:
                    case telex.agent.RunDelta(kind="text", content=piece):
                        print(piece, end="")
                    case telex.agent.RunStatusNotify(status="awaiting_ui"):
                        print("waiting for you")
        """
        return self._each(self._run.messages())

    def wait(self) -> RunResult:
        """Wait for the end of the run, and pass over its events.

        Returns:
            The status, and the agent's answer.

        Raises:
            ConnectionLost: The connection was lost, and could not be made again.

        Example:
            run = agent.run_start("list *.py")
            result = run.wait()
            print(result.answer)
        """
        if self.result is not None:  # also after the client was closed
            return self.result
        return self._caller.run_answering(self._run.wait(), self.run_id)

    def cancel(self, reason: str | None = None) -> RunCancelResult:
        """Cancel the run. When this returns, nothing of the run is executed any more.

        Args:
            reason: Stored with the run, and shown to its other UIs.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            AgentError: The runtime failed to store the end, or the connection was lost.
        """
        return self._caller.run(self._run.cancel(reason))

    def steer(self, text: str) -> RunSteerResult:
        """Add a message of the person to the run while it is active.

        Args:
            text: The core reads it before its next step.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            AgentError: The text is empty, or the connection was lost.
        """
        return self._caller.run(self._run.steer(text))

    def diff(self) -> RunDiffResult:
        """Return the changes that the run's `write` and `edit` made, file by file, in order.

        Raises:
            AgentError: The connection was lost.
        """
        return self._caller.run(self._run.diff())

    def _each(self, messages: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        if self.result is None:  # else nothing is left to yield, also after the client was closed
            yield from self._caller.iterate(messages, self.run_id)


class Agent:
    """A connection to an agent runtime. Use it with `with`, or close it.

    Methods are named for those of the protocol. Each raises an `AgentError` named for the
    condition, and `ConnectionLost` where the runtime cannot be reached.

    Attributes:
        session_id: The session in which `run_start` continues; None before the first run.
        todos: The todo list of this connection's own `tool_call`s.
        closed: Whether `close` was called.

    Example:
        with telex.agent.spawn() as agent:
            run = agent.run_start("list *.py")
            result = run.wait()
            print(result.answer)
    """

    __module__ = "telex.agent"

    def __init__(self, agent: AsyncAgent, portal: Portal) -> None:
        self._agent = agent
        self._portal = portal
        self._caller = CallerThread(agent, portal)
        self._run = self._caller.run

    @property
    def session_id(self) -> str | None:
        """The session in which `run_start` continues; None before the first run."""
        return self._agent.session_id

    @property
    def todos(self) -> list[Any]:
        """The todo list of this connection's own `tool_call`s."""
        return self._agent.todos

    @property
    def server(self) -> PeerInfo:
        """Name and version of the runtime."""
        return self._agent.server

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._agent.closed

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The capabilities that the runtime announced."""
        return self._agent.server_capabilities

    @property
    def workspace(self) -> WorkspaceInfo | None:
        """The root and the mode that the runtime works in; None if it does not say."""
        return self._agent.workspace

    def __repr__(self) -> str:
        return f"<telex.agent.Agent session_id={self.session_id!r} state={self._agent._state!r}>"

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent.

        A runtime that `spawn` started ends. Runs in a runtime that others use continue there.
        """
        if not self._agent.closed:
            self._portal.run(self._agent.close())

    def run_start(
        self,
        text: str,
        *,
        images: Sequence[str | os.PathLike[str] | bytes] = (),
        session_id: str | None = None,
        new_session: bool = False,
        force_compaction: bool = False,
        ui_context: UiContext | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Run:
        """Send a message to the agent, which starts a run.

        Args:
            text: The message of the person.
            images: Images that belong to the message: the path of a file, its bytes, or an `https://`
                or `data:` URL. PNG, JPEG, GIF or WebP, at most 10, and at most 5 MiB each.
            session_id: Continue this session. By default the session of the last run that this
                client started, or a new one.
            new_session: Begin a new session in any case.
            force_compaction: Make the core's context smaller first.
            ui_context: Where the person works: files, a selection. Replaces the last one.
            meta: Stored with the run.

        Raises:
            RuntimeBusy: The session has a run that has not ended, or too many runs are active.
            SessionNotFound: There is no such session.
            InvalidParams: `session_id` and `new_session` are both given, or an image cannot be
                used: it is too large, of another type, or the model does not see images.
            OSError: The file of an image cannot be read.
            ConnectionLost: The connection was lost; whether the run was started is not known.
                `session_list` shows it.

        Example:
            run = agent.run_start("list *.py", new_session=True)
            result = run.wait()
            print(result.answer)
        """
        started = self._agent.run_start(
            text,
            images=images,
            session_id=session_id,
            new_session=new_session,
            force_compaction=force_compaction,
            ui_context=ui_context,
            meta=meta,
        )
        return Run(self._run(started), self._caller)

    def run_attach(self, run_id: str, *, after_seq: int = -1) -> Run:
        """Follow a run that another client started, or that this program followed before.

        The events after `after_seq` are sent again, then everything that follows. Questions of the
        run that are open are asked here too. A run that ended is replayed. A run that this client
        follows already is returned as it is.

        Args:
            run_id: From `Run.run_id`, or from `session_list`.
            after_seq: The last event that the program has; -1 for all events.

        Raises:
            RunNotFound: There is no such run.
            RuntimeBusy: Another runtime, which still runs, owns it.
            InvalidParams: `after_seq` is beyond the run's last event.

        Example:
            listed = agent.session_list(limit=1)
            run = agent.run_attach(listed.sessions[0].run_id)
            for event in run:
                print(event)
        """
        attached = self._agent.run_attach(run_id, after_seq=after_seq)
        return Run(self._caller.run_answering(attached, run_id), self._caller)

    def run_cancel(self, run_id: str, reason: str | None = None) -> RunCancelResult:
        """Cancel a run. When this returns, nothing of the run is executed any more.

        Args:
            run_id: The run.
            reason: Stored with the run, and shown to its other UIs.

        Returns:
            `ok` is False if the run had ended before; `status` is how.

        Raises:
            RunNotFound: There is no such run.
            RuntimeFailed: The end could not be stored; cancel again.
        """
        return self._run(self._agent.run_cancel(run_id, reason))

    def run_steer(self, run_id: str, text: str) -> RunSteerResult:
        """Add a message of the person to a run while it is active.

        Args:
            run_id: The run.
            text: The core reads it before its next step.

        Returns:
            `ok` is False if the run had ended before.

        Raises:
            RunNotFound: There is no such run.
            InvalidParams: The text is empty.
        """
        return self._run(self._agent.run_steer(run_id, text))

    def run_diff(self, run_id: str) -> RunDiffResult:
        """Return the changes that a run's `write` and `edit` made, file by file, in order.

        Args:
            run_id: The run, which may have ended long ago.

        Raises:
            RunNotFound: There is no such run.
        """
        return self._run(self._agent.run_diff(run_id))

    def workspace_list(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        include_ignored: bool = False,
        match: str | None = None,
        limit: int = 200,
        cursor: str | None = None,
    ) -> WorkspaceListResult:
        """List a directory of the workspace, a page at a time.

        Args:
            path: The directory, relative to the cwd of the workspace.
            recursive: Also list everything below it, except hidden directories.
            include_ignored: Also list what git ignores.
            match: Only paths with these characters in this order, the best match first.
            limit: How many entries a page has.
            cursor: The `next_cursor` of the page before.

        Raises:
            InvalidParams: The path is outside the root, or no directory.

        Example:
            listed = agent.workspace_list(recursive=True)
            for entry in listed.entries:
                print(entry.kind, entry.path)
        """
        return self._run(
            self._agent.workspace_list(
                path,
                recursive=recursive,
                include_ignored=include_ignored,
                match=match,
                limit=limit,
                cursor=cursor,
            )
        )

    def workspace_read(
        self, path: str, *, offset: int = 0, limit: int = 2000, redact: bool = True
    ) -> WorkspaceReadResult:
        """Read a page of a file of the workspace; an image is returned whole.

        Args:
            path: The file, relative to the cwd of the workspace.
            offset: How many lines to skip.
            limit: How many lines to return at most.
            redact: Mask secrets.

        Raises:
            InvalidParams: The path is outside the root, no file, or a file that is too large.
        """
        return self._run(
            self._agent.workspace_read(path, offset=offset, limit=limit, redact=redact)
        )

    def workspace_search(
        self,
        pattern: str,
        path: str = ".",
        *,
        regex: bool = False,
        ignore_case: bool = False,
        glob: str | None = None,
        limit: int = 200,
        offset: int = 0,
        redact: bool = True,
    ) -> WorkspaceSearchResult:
        """Find the lines that contain a text in the files of the workspace.

        Args:
            pattern: The text.
            path: The file or the directory to search.
            regex: The pattern is a regular expression (RE2).
            ignore_case: Upper and lower case are equal.
            glob: Only files with such a path, for example `*.py`.
            limit: How many matches to return at most.
            offset: How many matches to skip.
            redact: Mask secrets.

        Raises:
            InvalidParams: The path is outside the root, or the pattern is not valid.
        """
        return self._run(
            self._agent.workspace_search(
                pattern,
                path,
                regex=regex,
                ignore_case=ignore_case,
                glob=glob,
                limit=limit,
                offset=offset,
                redact=redact,
            )
        )

    def artifact_read(
        self, artifact_id: str, *, offset: int = 0, limit: int = 262_144
    ) -> ArtifactReadResult:
        """Read a part of a long output, of an export, or of a run's changes.

        Args:
            artifact_id: A cache id of a result, the id of `history_export`, or `diff:RUN_ID`.
            offset: How many bytes to skip: the `next_offset` of the part before.
            limit: How many bytes to return at most.

        Raises:
            InvalidParams: There is no such artifact, or it was deleted.
        """
        return self._run(self._agent.artifact_read(artifact_id, offset=offset, limit=limit))

    def history_export(
        self, session_id: str, *, format: Literal["markdown", "ndjson"] = "markdown"
    ) -> HistoryExportResult:
        """Export a session as an artifact, which `artifact_read` returns in parts.

        Args:
            session_id: The session.
            format: `markdown` for people, `ndjson` for `telex agent import`.

        Raises:
            SessionNotFound: There is no such session.
        """
        return self._run(self._agent.history_export(session_id, format=format))

    def history_undo(
        self, session_id: str, *, run_id: str | None = None, dry_run: bool = False
    ) -> HistoryUndoResult:
        """Undo the file changes that a run made with `write` and `edit`: all of them, or none.

        Args:
            session_id: The session.
            run_id: The run; by default the last one that changed files and was not undone.
            dry_run: Only return what would be done.

        Raises:
            InvalidParams: A file was changed since, an old content is gone, or there is nothing
                to undo; the message says which.
        """
        return self._run(self._agent.history_undo(session_id, run_id=run_id, dry_run=dry_run))

    def terminal_list(self, session_id: str) -> TerminalListResult:
        """Return the terminals that the runs of a session opened.

        Args:
            session_id: The session.
        """
        return self._run(self._agent.terminal_list(session_id))

    def todos_get(self, session_id: str) -> TodosResult:
        """Return the todo list of a session.

        Args:
            session_id: The session.

        Raises:
            SessionNotFound: There is no such session.
        """
        return self._run(self._agent.todos_get(session_id))

    def todos_set(self, session_id: str, todos: Sequence[Mapping[str, Any]]) -> TodosResult:
        """Replace the todo list of a session.

        Args:
            session_id: The session, which has no active run.
            todos: Entries with `content`, and optionally `status` and `priority`.

        Raises:
            RuntimeBusy: A run of the session is active.
            InvalidParams: An entry is not valid.
        """
        return self._run(self._agent.todos_set(session_id, todos))

    def session_list(
        self,
        *,
        limit: int | None = None,
        scope: Literal["current_workspace", "all"] | None = None,
        workspace_root: str | None = None,
    ) -> SessionListResult:
        """List the stored sessions, the last used one first.

        Args:
            limit: How many at most; 50 by default, 0 for all.
            scope: `current_workspace` for those of one workspace. By default all, unless
                `workspace_root` is given.
            workspace_root: The workspace; by default the one that runs of this client are in.

        Raises:
            SessionListFailed: The store cannot be read.
        """
        listed = self._agent.session_list(limit=limit, scope=scope, workspace_root=workspace_root)
        return self._run(listed)

    def session_history(
        self, session_id: str, *, max_runs: int | None = None, max_events: int | None = None
    ) -> SessionHistory:
        """Return the stored events of a session, oldest first.

        The messages of the person are `HiddenUserMessageEvent`s with the number -1.

        Args:
            session_id: The session.
            max_runs: Of the latest runs; 20 by default.
            max_events: The latest events; 1,500 by default.

        Raises:
            SessionNotFound: There is no such session.
            SessionLoadFailed: It is stored and cannot be read.

        Example:
            listed = agent.session_list(limit=1)
            history = agent.session_history(listed.sessions[0].session_id)
            for one in history.events:
                print(one.seq, one.event)
        """
        history = self._agent.session_history(session_id, max_runs=max_runs, max_events=max_events)
        return self._run(history)

    def model_list(
        self, *, provider: str | None = None, include_details: bool = False
    ) -> ModelListResult:
        """List the models of a provider.

        Args:
            provider: By default that of the current model.
            include_details: Also return context sizes and prices.
        """
        listed = self._agent.model_list(provider=provider, include_details=include_details)
        return self._run(listed)

    def model_set(
        self,
        name: str | None,
        *,
        provider: str | None = None,
        scope: ModelSource = "config",
    ) -> ModelSetResult:
        """Choose the model for the runs that begin from now on.

        Args:
            name: From `model_list`; None removes the choice of the session.
            provider: By default that of the current model, else any that has the model.
            scope: `session` chooses it for the current session of this client, or the next one that
                it begins; `config` for every session without a choice of its own.

        Raises:
            InvalidParams: There is no such model, or no such provider.
        """
        return self._run(self._agent.model_set(name, provider=provider, scope=scope))

    def tool_call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolCallResult:
        """Call a tool of the runtime, outside of any run. Permissions are the same as in a run.

        Args:
            name: The tool, such as `read`.
            arguments: As the tool's schema has them.

        Returns:
            `ok` is False when the tool failed or a rule denies it; `result` then has the reason.

        Raises:
            UserCancelled: The person said no.
            InvalidParams: There is no such tool, or the arguments do not fit.
            ConnectionLost: The connection was lost; whether the tool ran is not known.

        Example:
            answer = agent.tool_call("list", {"pattern": "*.py"})
            print(answer.result)
        """
        return self._caller.run_answering(self._agent.tool_call(name, arguments), None)

    def shell_exec(
        self, command: str, *, timeout_seconds: float | None = None, cwd: str | None = None
    ) -> ShellExecResult:
        """Run a command of the person's own in the runtime's workspace, without a question.

        Args:
            command: For the shell.
            timeout_seconds: 120 by default, 300 at most; then the command is ended.
            cwd: Inside the sandbox root, which is the default.

        Raises:
            InvalidParams: The command is empty, or `cwd` is outside the sandbox root.
            ConnectionLost: The connection was lost, which ends the command.
        """
        done = self._agent.shell_exec(command, timeout_seconds=timeout_seconds, cwd=cwd)
        return self._run(done)

    def permission_explain(
        self, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> PermissionExplainResult:
        """Explain whether a tool call would be allowed, asked about or denied. Nothing is run.

        Args:
            tool: The tool, such as `shell`.
            arguments: As in `tool_call`.

        Raises:
            InvalidParams: There is no such tool, or the arguments do not fit.

        Example:
            answer = agent.permission_explain("shell", {"command": "rm -rf src"})
            print(answer.decision, answer.why)
        """
        return self._run(self._agent.permission_explain(tool, arguments))

    def context_inspect(
        self, *, include_agents: bool = True, include_skills: bool = True
    ) -> ContextInspectResult:
        """Return the context of the runtime: directories, instructions, skills.

        Args:
            include_agents: Also the AGENTS.md files in use.
            include_skills: Also the catalogue of skills.
        """
        inspected = self._agent.context_inspect(
            include_agents=include_agents, include_skills=include_skills
        )
        return self._run(inspected)

    def skills_list(
        self, *, cwd: str | None = None, force_reload: bool = False
    ) -> SkillsListResult:
        """List the skills that are offered, and those that cannot be, with the reason.

        Args:
            cwd: As seen from this directory; by default the runtime's.
            force_reload: Read the files again.

        Raises:
            InvalidParams: `cwd` is outside the sandbox root.
        """
        return self._run(self._agent.skills_list(cwd=cwd, force_reload=force_reload))

    def commands_list(self) -> CommandsListResult:
        """List the commands and skills that `/name` at the beginning of an input calls.

        Example:
            listed = agent.commands_list()
            for one in listed.commands:
                if one.not_offered is None:
                    print(f"/{one.name} {one.argument_hint}", one.description)
        """
        return self._run(self._agent.commands_list())

    def mcp_list(self, *, scope: Literal["loaded", "configured"] | None = None) -> McpListResult:
        """List the MCP servers of the runtime, with their state.

        Args:
            scope: `loaded` (the default), or `configured` for all that the settings name.
        """
        return self._run(self._agent.mcp_list(scope=scope))

    def auth_logout(self, *, clear_session: bool = True) -> AuthLogoutResult:
        """Sign out of the model's provider. The runtime asks first (`confirm`).

        Args:
            clear_session: The next run begins a new session.

        Raises:
            RuntimeBusy: A run is active.
        """
        signed_out = self._agent.auth_logout(clear_session=clear_session)
        return self._caller.run_answering(signed_out, None)

    def ui_context_update(self, context: UiContext) -> None:
        """Send the runtime the place where the person works. It replaces the last one.

        Args:
            context: Directory, active file, selection. It is sent again after a reconnect.

        Example:
            file = telex.agent.ActiveFile("src/a.py")
            agent.ui_context_update(telex.agent.UiContext(active_file=file))
        """
        self._run(self._agent.ui_context_update(context))
