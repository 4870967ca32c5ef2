"""The pytest plugin: options, the fixtures `telex` and `golden`, and what a failure leaves.

pytest imports this file in every run, so it imports the standard library and pytest only; all else
is imported by the first test that uses a fixture. Under xdist, a worker runs the tests and its
controller writes the page and the summary: everything between them travels in the reports of tests
(`report.telex_…`) and in `workeroutput`.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from telex.testing.golden_fixture import Golden
    from telex.testing.spawned_programs import SpawnedPrograms

ARTIFACTS = ".telex-artifacts"
PAGE = "report.html"
GOLDENS = "__golden__"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("telex", "terminal programs (telex)")
    group.addoption(
        "--telex-update",
        action="store_true",
        help="Write the golden screens of the tests that run.",
    )
    group.addoption(
        "--telex-artifacts",
        metavar="DIR",
        help=f"Directory for the report of failures and for recordings; default {ARTIFACTS}.",
    )
    group.addoption(
        "--telex-trace",
        choices=("on", "off", "on-failure"),
        default="on-failure",
        help="Whether to record terminals and which recordings to keep; default on-failure.",
    )
    parser.addini("telex_timeout", "Seconds that each wait of a terminal lasts.", default="30")


class TelexRun:
    """One pytest run: in a worker of xdist, or in the process that reports. A plugin of its own, so
    that its hooks have a state."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.trace: str = config.getoption("--telex-trace")
        self._worker = hasattr(config, "workerinput")
        given = config.getini("telex_timeout")
        try:
            self.timeout = float(given)
        except ValueError:
            raise pytest.UsageError(
                f"telex_timeout is {given!r}, not a number of seconds"
            ) from None
        self._failures: list[tuple[str, str]] = []
        """Node id and encoded data of each failed test."""
        self._written: list[str] = []
        self._passed: set[str] = set()
        self._used: set[str] = set()
        self._collected: dict[str, str] = {}
        """Directory and stem of the tests in modules that have goldens, by node id."""
        self._whole = not any("::" in str(one) for one in config.args)
        """Whether all tests of each module were collected."""
        self._left: set[str] = set()
        """Directories of goldens whose module is gone, below the directories that were given."""
        self._unused: list[str] = []
        self._page_words = ""
        self._kept: set[str] | None = None
        """The recordings of this run; None if no test has used a terminal."""
        self._interrupted: list[str] = []
        self.open_programs: SpawnedPrograms | None = None
        self._recordings = 0
        self._directory: Path | None = None

    @property
    def updates(self) -> bool:
        """Whether goldens are written. syrupy's option means the same, where there is one."""
        return bool(
            self.config.getoption("--telex-update")
            or self.config.getoption("--snapshot-update", default=False)
        )

    def artifacts(self) -> Path:
        """Return the directory for what failures leave, made now. The default one has a file that
        makes git ignore it."""
        directory = self._artifacts_path()
        directory.mkdir(parents=True, exist_ok=True)
        given = self.config.getoption("--telex-artifacts")
        if not given and not (directory / ".gitignore").exists():
            (directory / ".gitignore").write_text("*\n")
        return directory

    def _artifacts_path(self) -> Path:
        given = self.config.getoption("--telex-artifacts")
        root = self.config.invocation_params.dir if given else self.config.rootpath
        return root / (given or ARTIFACTS)

    def recording(self, factory: pytest.TempPathFactory) -> Path | None:
        """Return the path of the next recording, in pytest's temporary directory."""
        if self.trace == "off":
            return None
        if self._directory is None:
            self._directory = factory.mktemp("telex")
        self._recordings += 1
        return self._directory / f"{self._recordings}.cast"

    def shown(self, path: str | Path) -> str:
        """Return a path as a person at the command line would write it."""
        return os.path.relpath(path, self.config.invocation_params.dir)

    # While tests run.

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Keep pytest out of goldens, of which it would run `>>>` as a doctest. Note those of
        modules that are gone, as pytest looks through the directories."""
        if collection_path.name != GOLDENS or not collection_path.is_dir():
            return None
        if self._asks_for(collection_path.parent):
            modules = {path.stem for path in collection_path.parent.iterdir() if path.is_file()}
            left = [one for one in collection_path.iterdir() if one.name not in modules]
            self._left.update(map(str, left))
        return True

    def _asks_for(self, directory: Path) -> bool:
        """Return whether the command line names a directory, or one above, and not its files."""
        places = (found := directory.resolve(), *found.parents)
        args = [self.config.invocation_params.dir / one for one in self.config.args]
        return any(one.resolve() in places for one in args)

    def pytest_deselected(self) -> None:
        self._whole = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Collect what the reports carry, also those of xdist's workers."""
        if self._worker:
            return
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)
        self._used.update(getattr(report, "telex_used", ()))
        if (kept := getattr(report, "telex_kept", None)) is not None:
            self._kept = (self._kept or set()).union(kept)
        self._written += getattr(report, "telex_written", ())
        if report.outcome == "failed" and (data := getattr(report, "telex_failure", None)):
            self._failures.append((report.nodeid, data))

    # At the end.

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist has collected."""
        told = getattr(node, "workeroutput", {}).get("telex")
        if told is not None:
            self._collected.update(told["collected"])
            self._whole = self._whole and told["whole"]
            self._left.update(told["left"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._collected.update(_golden_places(getattr(session, "items", [])))
        asked = [str(one) for one in self.config.invocation_params.args]
        if self.config.getoption("lf", default=False) or any(
            one.startswith(("-k", "-m")) for one in asked
        ):
            self._whole = False  # tests may be left out without being deselected
        if self._worker:
            output: dict[str, Any] = self.config.workeroutput  # type: ignore[attr-defined]  # xdist's
            output["telex"] = {
                "collected": self._collected,
                "whole": self._whole,
                "left": sorted(self._left),
            }
            return
        self._find_unused()
        if self._kept is not None:
            try:
                self._write_page(self._kept)
            except OSError as error:  # the run itself is not to fail
                self._page_words = f"the page of failures cannot be written: {error}"

    def pytest_keyboard_interrupt(self) -> None:
        """Keep the terminals of the test that the person has ended; it gets no report."""
        if self.open_programs is not None and not self._worker:
            from telex.testing.failure_report import summary

            self._interrupted = summary(self.open_programs.finished(), []).split("\n")

    def _write_page(self, kept: set[str]) -> None:
        """Write the page, in the place of what the former run has left."""
        from telex.testing.failure_page import failure_page, remove_former

        page = self._artifacts_path() / PAGE
        remove_former(page, kept)
        if not self._failures:
            return
        self.artifacts()
        page.write_text(failure_page([data for _, data in self._failures], sorted(kept)), "utf-8")
        page.chmod(0o600)
        self._page_words = f"what the terminals showed: {self.shown(page)}"

    def _find_unused(self) -> None:
        directories = {place.rpartition("/")[0] for place in self._collected.values()} | self._left
        if not directories:
            return
        from telex.testing.golden_place import SUFFIX, unused_goldens

        existing = {
            one: sorted([path.name for path in Path(one).glob(f"*{SUFFIX}")]) for one in directories
        }
        self._unused = unused_goldens(
            existing, self._collected, passed=self._passed, used=self._used, whole=self._whole
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        lines = [f"golden written: {one}" for one in sorted(set(self._written))]
        if self._unused:
            names = [self.shown(one) for one in self._unused]
            lines += [f"{len(names)} unused golden{'s' if len(names) > 1 else ''}; to remove:"]
            lines += [f"  rm {shlex.quote(name)}" for name in names]
        lines += self._interrupted
        lines += [self._page_words] if self._page_words else []
        if lines:
            terminalreporter.write_sep("-", "telex")
            for line in lines:
                terminalreporter.write_line(line)


def _golden_places(items: list[pytest.Item]) -> dict[str, str]:
    """Return directory and stem of each test in a module that has goldens."""
    directories: dict[Path, bool] = {}
    found: dict[str, str] = {}
    for item in items:
        directory = golden_directory(item.path)
        if item.path not in directories:
            directories[item.path] = directory.is_dir()
        if directories[item.path]:
            from telex.testing.golden_place import stem_of

            found[item.nodeid] = f"{directory}/{stem_of(item.nodeid)}"
    return found


RUN = pytest.StashKey[TelexRun]()
PROGRAMS = pytest.StashKey["SpawnedPrograms"]()
GOLDEN = pytest.StashKey["Golden"]()


def golden_directory(module: Path) -> Path:
    return module.parent / GOLDENS / module.stem


def pytest_configure(config: pytest.Config) -> None:
    run = config.stash[RUN] = TelexRun(config)
    config.pluginmanager.register(run, "telex-run")


# Fixtures.


@pytest.fixture
def telex(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SpawnedPrograms]:
    """The module `telex`, whose `spawn` ends its programs after the test.

    On failure the report has the last screens and what was typed, and recordings are kept."""
    from telex.testing.spawned_programs import SpawnedPrograms

    run = request.config.stash[RUN]
    programs = SpawnedPrograms(lambda: run.recording(tmp_path_factory), run.timeout)
    request.node.stash[PROGRAMS] = programs
    run.open_programs = programs
    try:
        yield programs
    finally:
        run.open_programs = None
        programs.close()
        if run.trace == "on":
            _keep(run, request.node, programs)
        for trace in programs.traces:
            if trace.recording is not None:
                trace.recording.unlink(missing_ok=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """Compares a terminal's screen with a file: `golden(term)`, `golden(term, "name", mask=[…])`.

    `pytest --telex-update` writes the files, in `__golden__` beside the test."""
    import shutil

    from telex.testing.golden_fixture import Golden, GoldenPlace
    from telex.testing.golden_place import stem_of

    run, node = request.config.stash[RUN], request.node
    directory = golden_directory(node.path)
    compared = Golden(
        GoldenPlace(
            directory,
            stem_of(node.nodeid),
            run.shown(directory),
            f"pytest --telex-update {shlex.quote(node.nodeid)}",
            run.updates,
            shutil.get_terminal_size().columns,
        )
    )
    node.stash[GOLDEN] = compared
    yield compared
    compared.check_awaited()


# What a test leaves.


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, None]:
    """Add to a report: the goldens that the test used and, if it failed, its terminals."""
    outcome = yield
    report: Any = outcome.get_result()
    compared = item.stash.get(GOLDEN, None)
    if compared is not None and report.when == "call":
        directory = golden_directory(item.path)
        report.telex_used = [f"{directory}/{name}" for name in sorted(compared.used)]
        run = item.config.stash[RUN]
        report.telex_written = [run.shown(directory / name) for name in compared.written]
    programs = item.stash.get(PROGRAMS, None)
    if programs is None or not programs.traces:
        return
    if report.failed:
        error = call.excinfo.value if call.excinfo is not None else None
        try:
            _describe(item, programs, report, error)
        except Exception as problem:  # noqa: BLE001  # it must not hide why the test failed
            report.sections.append(("telex", f"the terminals cannot be shown: {problem!r}"))
    report.telex_kept = sorted(programs.kept)


def _describe(
    item: pytest.Item, programs: SpawnedPrograms, report: Any, error: BaseException | None
) -> None:
    from telex.testing.failure_report import encode_failure, summary

    run = item.config.stash[RUN]
    traces = programs.finished()
    report.telex_failure = encode_failure(item.nodeid, report.when, error, traces, run.shown)
    try:
        kept = _keep(run, item, programs) if run.trace != "off" else []
    except OSError:  # named at the end of the run, with the page that is missing too
        kept = []
    report.sections.append(("telex", summary(traces, [run.shown(path) for path in kept], error)))


def _keep(run: TelexRun, item: pytest.Item, programs: SpawnedPrograms) -> list[Path]:
    """Copy the recordings of a test to the artifacts."""
    import hashlib

    from telex.redaction import Redactor
    from telex.testing.golden_place import recording_name

    name = Redactor().redact(item.nodeid)
    stem = recording_name(name)
    if name != item.nodeid:  # two that differ in a secret stay two
        stem += f"-{hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]}"
    kept = []
    for number, trace in enumerate(programs.finished(), 1):
        target = run.artifacts() / f"{stem}{f'-{number}' if number > 1 else ''}.cast"
        if trace.keep_recording(target):
            kept.append(target)
            programs.kept.add(target.name)
    return kept
