"""`telex adapter test`: run the fixtures of adapters in real workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli import completion_candidates
from telex.cli.console import coloured, printable, say
from telex.config import places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.adapters.fixtures import Fixture, FixtureDifference
    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua.worker_pool import WorkerPool
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState

HELP = """Run the fixtures of adapters and show differences.

A fixture is a table in a TOML file of the adapter's directory `fixtures`: a screen, and the state
that the adapter must see in it.

\b
  screen          the screen's text
  state           the state's name
  rule            the rule that decided
  evidence        why
  min_confidence  from 0 to 1
  metadata        by key; other keys are not compared
  last_intent     the last intent that was sent
  context         further input of the adapter: stable_ms, title, screen_cursor,
                  transcript, process_exited, exit_code, alternate_screen, size
  near_miss       the state that this screen resembles, for readers
  note            a comment for readers

All but the first two are optional. The exit code is 0 if all fixtures pass, else 1.

\b
  telex adapter test ./mine
  telex adapter test -v ./mine ./another
"""

_MADE = "`telex adapter record` makes them"


@click.command(help=HELP)
@click.option("-v", "--verbose", is_flag=True, help="Also show the states of fixtures that pass.")
@click.argument(
    "names",
    metavar="NAME...",
    nargs=-1,
    required=True,
    shell_complete=completion_candidates.adapters,
)
def command(names: tuple[str, ...], verbose: bool) -> int:
    from telex.cli.event_loop import run

    return 0 if run(_tested(names, verbose)) else 1


async def _tested(names: tuple[str, ...], verbose: bool) -> bool:
    from telex.adapters.lua.worker_pool import WorkerPool
    from telex.adapters.lua_plugin import PluginRefused
    from telex.adapters.manifest import BadManifest
    from telex.adapters.plugin_registry import find_plugin

    here = places.find()
    workers = WorkerPool()
    passed = True
    try:
        for name in names:
            try:
                plugin = find_plugin(name, here)
            except (BadManifest, PluginRefused) as bad:
                _print("FAIL", f"{name}: {bad}")
                passed = False
            else:
                passed &= await _Testing(plugin, workers, verbose).run()
    finally:
        await workers.close()
    return passed


class _Testing:
    """Runs the fixtures of one plugin, one after the other."""

    def __init__(self, plugin: LuaPlugin, workers: WorkerPool, verbose: bool) -> None:
        self._plugin = plugin
        self._workers = workers
        self._verbose = verbose
        self._passed = self._failed = 0

    async def run(self) -> bool:
        """Run all fixtures and print the results. Returns whether all passed."""
        from telex.adapters.fixtures import DIRECTORY, read_fixtures

        manifest = self._plugin.manifest
        where = (self._plugin.directory or Path()) / DIRECTORY
        say(f"{manifest.name} {manifest.version}")
        fixtures, problems = read_fixtures(where)
        instance = self._workers.instance(self._plugin)
        try:
            await self._describe(instance)
            for fixture in fixtures:
                await self._test(instance, fixture)
        finally:
            await instance.close()
        for problem in problems:
            self._fail(problem)
        if not fixtures and not problems:
            what = "they are in telex's sources" if self._plugin.builtin else _MADE
            self._fail(f"there are no fixtures in {where}; {what}")
        say(f"{manifest.name}: {self._passed} passed, {self._failed} failed")
        return not self._failed

    async def _describe(self, instance: Instance) -> None:
        """Call the plugin's `describe` once, so that an error in it is shown."""
        from telex.adapters.classification import read_catalogue
        from telex.adapters.errors import PluginProblem

        try:
            if "describe" in await instance.exports():
                read_catalogue(self._plugin.name, await instance.call("describe"))
        except PluginProblem as problem:
            self._fail(f"{problem.function}: {problem.problem}")

    async def _test(self, instance: Instance, fixture: Fixture) -> None:
        from telex.adapters.classification import classify
        from telex.adapters.fixtures import differences

        said = await classify(instance, fixture.context())
        if said.problem is not None:
            self._fail(fixture.name)
            _print("", f"{said.problem.function}: {said.problem.problem}")
        elif found := differences(fixture.expected, said.state):
            self._fail(fixture.name)
            for line in _diff(found):
                click.echo(line)
        else:
            self._passed += 1
            _print("ok", fixture.name)
        if self._verbose and said.problem is None:
            _print("", _told(said.state))

    def _fail(self, what: str) -> None:
        self._failed += 1
        _print("FAIL", what)


def _told(state: AdapterState) -> str:
    rule = f" by {state.rule}" if isinstance(state.rule, str) else ""
    return f"{state.state} {state.confidence:g}{rule}: {state.evidence}"


def _diff(found: list[FixtureDifference]) -> Iterator[str]:
    """Yield both values of each field, one above the other, so that the difference is visible."""
    wide = max(len(one.field) for one in found)
    for one in found:
        for word, value, colour in (("wanted", one.wanted, "green"), ("got   ", one.got, "red")):
            field = one.field if word == "wanted" else ""
            shown = printable(value)
            shown = click.style(shown, fg=colour) if coloured() else shown
            yield f"{'':8}{printable(field):{wide}}  {word} {shown}"


def _print(mark: str, text: str) -> None:
    """Print a line; with a mark, in the colour of the mark."""
    head = f"  {mark:<6}"
    if coloured() and mark:
        head = click.style(head, fg="green" if mark == "ok" else "red")
    click.echo(f"{head}{printable(text)}")
