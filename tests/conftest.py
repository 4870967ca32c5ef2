"""What every test gets: an event loop with a deadline, and a check that it left nothing behind.

An `async def` test runs in a loop of its own. It fails when it takes too long, when it leaves a
task running, and, like every other test, when it leaves a file descriptor or a process behind.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
import re
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvloop
from hypothesis import HealthCheck, settings

import leftovers
from fork_server import SERVER, ForkServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOAK = os.environ.get("TELEX_SOAK") == "1"
DEADLINE = 900.0 if SOAK else 180.0

settings.register_profile(
    "telex",
    deadline=None,
    derandomize=not SOAK,
    print_blob=True,
    max_examples=1000 if SOAK else 100,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile("telex")


uvloop.new_event_loop().close()  # libuv opens a pipe with the first one, and keeps it


def pytest_configure(config: pytest.Config) -> None:
    _reset_process()
    config.addinivalue_line(
        "markers", "counted: repeats a fault many times; `make soak` repeats it more"
    )
    config.addinivalue_line("markers", "soak: only `make soak` runs it")
    config.addinivalue_line("markers", "deadline(seconds): this test may take longer than most")
    config.addinivalue_line("markers", "each_loop: runs on asyncio's own loop and on uvloop")
    config.addinivalue_line("markers", "fresh_start: each `telex` is a new interpreter, not a fork")


_PERSONAL = re.compile(
    r"TELEX(?!_SOAK$)|GIT_|HTTY|TMUX|STY$|XDG_|LC_|LANGUAGE|COLUMNS$|LINES$|NO_COLOR|FORCE_COLOR"
    r"|CLICOLOR|PAGER|EDITOR|VISUAL|BROWSER|LESS|PS1$|PROMPT|BASH_ENV|ENV$|SHELLOPTS|BASHOPTS|ZDOTDIR"
    r"|INPUTRC|PYTHON(?!PATH$)|GREP_|RIPGREP_|CODELIA_|SSH_|TERM_PROGRAM|CLAUDE|OPENAI_|ANTHROPIC_"
    r"|OPENROUTER_"
)
"""Variables that change how a program behaves and that a person may have set."""


def _reset_process() -> None:
    """Tests behave alike however they were started: from a terminal, by `nohup`, in the background
    of a script (where a shell has SIGINT and SIGQUIT ignored), or by a service manager."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is signal.SIG_IGN and number not in (
            signal.SIGPIPE,  # Python ignores these two itself
            signal.SIGXFSZ,
        ):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    for name in [name for name in os.environ if _PERSONAL.match(name)]:
        del os.environ[name]
    os.environ.update(LANG="C.UTF-8", TERM="xterm-256color")
    # Without cached bytecode each worker rewrites every test module again (9 s of CPU), and each
    # `telex` that a test starts compiles what it imports (0.5 s instead of 0.15 s).
    sys.dont_write_bytecode = False


def pytest_report_header(config: pytest.Config) -> str | None:
    """`make soak` says how long it will take, before it collects the tests."""
    if not SOAK:
        return None
    import soak_times

    return soak_times.expected(config.args, config.cache.get(soak_times.KEPT, {}))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("each_loop"):
        metafunc.fixturenames.append("loop")
        metafunc.parametrize("loop", ["asyncio", "uvloop"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs more than a fresh machine has is left to `make soak`."""
    if not SOAK:
        left = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Every test collects garbage to see what it left. What the collected tests themselves are
    made of is never garbage, and looking at it took 60 ms a time: half of the whole suite."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What CI skips, nobody sees: there a skip is a failure. A soak keeps its times."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if SOAK and reporter:
        import soak_times

        kept = session.config.cache.get(soak_times.KEPT, {})
        new = soak_times.measured(itertools.chain(*reporter.stats.values()))
        session.config.cache.set(soak_times.KEPT, {**kept, **new})
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if skipped and os.environ.get("CI") == "true" and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(
            f"CI: {len(skipped)} tests were skipped, and that is a failure", red=True
        )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine tests ourselves: bounded, and with no task left at the end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    marker = pyfuncitem.get_closest_marker("deadline")
    seconds = max(DEADLINE, marker.args[0] if marker else 0.0)
    parameters = pyfuncitem.callspec.params if hasattr(pyfuncitem, "callspec") else {}
    uvloop_wanted = parameters.get("loop") == "uvloop"
    factory = uvloop.new_event_loop if uvloop_wanted else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_bounded(pyfuncitem.obj(**arguments), seconds))
    return True


async def _bounded(test: Any, seconds: float) -> None:
    failures: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(_told(context)))
    async with asyncio.timeout(seconds):
        await test
    for _ in range(5):  # what was just closed or cancelled gets a few turns to finish
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"the test left tasks running: {left}"
    gc.collect()  # a task's unretrieved exception speaks up when the task is collected
    assert not failures, f"the event loop saw: {failures}"


def _told(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"


@pytest.fixture(scope="session", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where temporary files go while the tests run, so that a forgotten one is seen."""
    directory = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", str(directory))
        yield directory


@pytest.fixture(scope="session", autouse=True)
def _patient() -> Iterator[None]:
    """A plugin's answer may take as long as a busy machine makes it; the tests of the deadline set
    their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("telex.adapters.limits.LUA_DEADLINE_MS", 20_000)
        yield


@pytest.fixture(scope="session", autouse=True)
def fork_server(_scratch: Path) -> Iterator[ForkServer]:
    with SERVER.replacing():
        yield SERVER


@pytest.fixture(autouse=True)
def _leaves_nothing_behind(
    request: pytest.FixtureRequest, _scratch: Path, fork_server: ForkServer
) -> Iterator[None]:
    fork_server.enabled = not request.node.get_closest_marker("fresh_start")
    before = leftovers.descriptors()
    children = leftovers.children()
    files = set(_scratch.iterdir())
    yield
    gc.collect()
    left = {fd: what for fd, what in leftovers.descriptors().items() if before.get(fd) != what}
    assert not left, f"the test left file descriptors open: {left}"
    assert leftovers.children() <= children, "the test left processes behind"
    forgotten = sorted(path.name for path in set(_scratch.iterdir()) - files)
    assert not forgotten, f"the test left temporary files behind: {forgotten}"
    gc.freeze()  # what outlives a test (modules, caches) no later one has to look at


@pytest.fixture
def counted() -> Callable[[int, int], int]:
    """`counted(few, many)`: how often to repeat a fault now, and how often in a soak."""
    return lambda few, many: many if SOAK else few


@pytest.fixture
def program() -> Callable[[str], str]:
    """The path of a real program, or a skip that says which one is missing (in CI, a failure)."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            say(f"{name} is not installed; scripts/install-test-programs installs it")
        return str(path)

    return find


@pytest.fixture(params=["memory", "socket", "http"])
def every_transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of a module's tests are behind each transport of the one server in turn."""
    from agent.transports import an_agent_by

    monkeypatch.setattr(request.module, "an_agent", partial(an_agent_by, request.param))
