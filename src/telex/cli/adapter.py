"""`telex adapter`: commands for authors of adapters, in the order in which an author needs them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from telex.cli import completion_candidates
from telex.cli.console import coloured, explain, printable, say
from telex.config import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from telex.adapters.fixtures import Fixture, FixtureDifference
    from telex.adapters.lua.instance import Instance
    from telex.adapters.lua.worker_pool import WorkerPool
    from telex.adapters.lua_plugin import LuaPlugin
    from telex.adapters.protocol import AdapterState
    from telex.config.places import Places

HELP = """Make, try and test adapters, which know a program's states.

An adapter is a plugin in Lua: a directory with a manifest, its sources, and fixtures, which are
screens with their states. NAME is the name of a built-in or installed adapter, or a path, such as
./mine.

\b
  telex adapter list
  telex adapter new mine
  telex adapter try ./mine -- bash
  telex adapter record ./mine -- bash
  telex adapter test ./mine
"""


@click.group(help=HELP)
def command() -> None:
    pass


# telex adapter list

LIST_HELP = """List the adapters and their permissions.

Adapters are built in, or are directories with a manifest in telex's data directory for adapters.
None is run. An adapter that cannot be used is listed with the reason. The permissions are those
that its manifest asks for.

\b
  telex adapter list
  telex adapter list --json
"""


@dataclass(frozen=True, slots=True)
class ListedAdapter:
    """An adapter in the list."""

    name: str
    plugin: LuaPlugin | None
    where: str
    problem: str = ""

    @property
    def state(self) -> str:
        return "cannot be used" if self.problem else "ok"

    @property
    def builtin(self) -> bool:
        return self.plugin is not None and self.plugin.builtin

    @property
    def version(self) -> str | None:
        return self.plugin.manifest.version if self.plugin is not None else None

    @property
    def permissions(self) -> list[str]:
        return list(self.plugin.manifest.permissions) if self.plugin is not None else []


@command.command("list", help=LIST_HELP)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def list_command(as_json: bool) -> None:
    here = places.find()
    listed = sorted(_listed(here), key=lambda one: (not one.builtin, one.name))
    if as_json:
        listing = {"adapters": [_as_json(one) for one in listed], "directory": str(here.adapters)}
        say(json.dumps(listing, ensure_ascii=False))
        return
    for line in _listing(listed):
        say(line)
    if all(one.builtin for one in listed):
        explain(f"telex: yours go to {here.adapters}; `telex adapter new` writes one")


def _listed(here: Places) -> list[ListedAdapter]:
    from telex.adapters.plugin_registry import NameTaken, Plugins, builtin_plugins, scan_installed

    builtin = builtin_plugins()
    names = Plugins(builtin)
    listed = [ListedAdapter(plugin.name, plugin, "comes with telex") for plugin in builtin]
    for one in scan_installed(here.adapters):
        problem = one.problem
        if one.plugin is not None and not problem:
            try:
                names.add(one.plugin)
            except NameTaken as taken:
                problem = str(taken)
        name = one.plugin.name if one.plugin is not None else one.directory.name
        listed.append(ListedAdapter(name, one.plugin, str(one.directory), problem))
    return listed


def _listing(listed: list[ListedAdapter]) -> list[str]:
    rows = [(one.name, one.version or "-", one.state, one.where) for one in listed]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    lines: list[str] = []
    for one, row in zip(listed, rows, strict=True):
        cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join([*cells, row[3]]))
        if one.problem:
            lines.append(f"  {one.problem}")
        elif one.permissions:
            lines.append(f"  may: {' '.join(one.permissions)}")
    return lines


def _as_json(one: ListedAdapter) -> dict[str, Any]:
    target = one.plugin.manifest.default_target if one.plugin is not None else None
    return {
        "name": one.name,
        "version": one.version,
        "state": one.state,
        "where": None if one.builtin else one.where,
        "builtin": one.builtin,
        "permissions": one.permissions,
        "program": target.program if target is not None else None,
        "problem": one.problem or None,
    }


# telex adapter new

NEW_HELP = """Write a working adapter to start from.

The adapter is written to DIR/NAME, by default ./NAME, and recognises any prompt: a manifest, rules
in Lua with comments, one fixture, and a README. Existing files are not replaced.

\b
  telex adapter new mine
  telex adapter try ./mine -- bash
"""


_SKELETON: Final = ("manifest.toml", "main.lua", "README.md", "fixtures/screens.toml")
"""A working plugin with a place for its name, so that an author changes running code."""


@command.command("new", help=NEW_HELP)
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to put it.",
)
@click.argument("name")
def new_command(parent: Path, name: str) -> None:
    _check_name(name)
    directory = parent / name
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        message = f"{directory} exists already; choose another name or --dir"
        raise click.ClickException(message) from None
    for file in _SKELETON:
        path = directory / file
        path.parent.mkdir(exist_ok=True)
        text = files("telex.adapters").joinpath("skeleton", file).read_text("utf-8")
        path.write_text(text.replace("@NAME@", name), encoding="utf-8")
        say(f"wrote {path}")
    called = directory if directory.is_absolute() else f"./{directory}"
    say()
    say("Next:")
    say(f"  telex adapter test {called}             # its fixture passes")
    say(f"  telex adapter try {called} -- bash      # the state beside the program")
    say(f"  telex adapter record {called} -- bash   # keep screens as fixtures")


def _check_name(name: str) -> None:
    """Check the name: one that no server accepts is a usage error."""
    from telex.adapters.manifest import BadManifest, check
    from telex.adapters.plugin_registry import builtin_plugins

    try:
        check({"name": name, "kind": "adapter", "version": "0.1.0"})
    except BadManifest as bad:
        raise click.BadParameter(bad.problems[0].problem, param_hint="NAME") from bad
    if name in {plugin.name for plugin in builtin_plugins()}:
        raise click.BadParameter(
            f"{name} is a built-in adapter; choose another name", param_hint="NAME"
        )


# telex adapter try, telex adapter record

_target = click.argument(
    "program",
    metavar="[-- COMMAND [ARGUMENT]...]",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=completion_candidates.programs,
)


def _default_program(context: click.Context, plugin: LuaPlugin | None) -> tuple[str, ...]:
    """Return the program that a plugin's manifest names."""
    if plugin is None or plugin.manifest.default_target is None:
        raise click.UsageError("name a program: -- COMMAND", context)
    target = plugin.manifest.default_target
    return (target.program, *target.args)


def _environment(plugin: LuaPlugin | None) -> Mapping[str, str | None]:
    """Return the environment that a plugin sets for its program."""
    if plugin is None or plugin.manifest.default_target is None:
        return {}
    target = plugin.manifest.default_target
    return {**target.env, **target.required_env}


TRY_HELP = """Run a program with its adapter's state below it.

The panel shows the state, its confidence, the rule that decided, the evidence, the metadata and the
adapter's time; errors of the adapter are red. The adapter is asked whenever the screen changes, and
again when it has not changed for 300 ms.

All input goes to the program, except the key that ends it. Without a COMMAND, the program of the
manifest is run. The exit code is the program's.

\b
  telex adapter try shell
  telex adapter try ./mine -- vim notes.txt
"""


@command.command("try", help=TRY_HELP)
@click.option(
    "--key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that ends it: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.argument("name", shell_complete=completion_candidates.adapters)
@_target
@click.pass_context
def try_command(context: click.Context, key: str, name: str, program: tuple[str, ...]) -> int:
    from telex.adapters.plugin_registry import find_plugin
    from telex.passthrough.adapter_panels import TryPanel
    from telex.passthrough.attach_view import control_key
    from telex.passthrough.panel_view import run_with_panel

    leave = control_key(key)
    plugin = find_plugin(name, places.find())
    argv = program or _default_program(context, plugin)
    return run_with_panel(argv, TryPanel(plugin, key), leave, _environment(plugin))


RECORD_HELP = """Run a program and save its screens as fixtures.

Press the key to save the screen, and enter a name: Enter alone takes the next number, Escape
cancels. The screen is added to recorded.toml with the state that the adapter sees, for you to
correct. Existing fixtures are not replaced.

The file is in the adapter's directory `fixtures`, or in --into. If there is no adapter NAME yet, it
is in NAME/fixtures, and you add the state of each screen.

Secrets that telex recognises are masked. Read the file before you share it.

\b
  telex adapter record ./mine -- bash
  telex adapter record --key ctrl_g ./mine -- vim
"""


@command.command("record", help=RECORD_HELP)
@click.option(
    "--key",
    default="ctrl_]",
    show_default=True,
    metavar="KEY",
    help="Key that saves a screen: ctrl_ and a letter or one of [ \\ ] ^ _.",
)
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), help="Directory for the fixtures."
)
@click.argument("name", shell_complete=completion_candidates.adapters)
@_target
@click.pass_context
def record_command(
    context: click.Context, key: str, into: Path | None, name: str, program: tuple[str, ...]
) -> int:
    from telex.cli.configuration import load_config, redactor_of
    from telex.passthrough.adapter_panels import RecordPanel
    from telex.passthrough.attach_view import control_key
    from telex.passthrough.panel_view import run_with_panel

    pressed = control_key(key)
    redactor = redactor_of(load_config(context).settings)
    plugin, problem = _plugin(name)
    argv = program or _default_program(context, plugin)
    directory = into or _fixture_directory(name, plugin)
    called = plugin.name if plugin is not None else Path(name).absolute().name
    panel = RecordPanel(called, key, directory, redactor, plugin, problem)
    try:
        return run_with_panel(argv, panel, pressed, _environment(plugin))
    finally:
        if panel.saved:
            explain(f"telex: saved in {directory}: {', '.join(panel.saved)}")


def _plugin(name: str) -> tuple[LuaPlugin | None, str]:
    """Return the plugin, or why it does not load: screens can be saved before it works."""
    from telex.adapters.lua_plugin import PluginRefused
    from telex.adapters.manifest import BadManifest
    from telex.adapters.plugin_registry import PluginNotFound, find_plugin

    try:
        return find_plugin(name, places.find()), ""
    except PluginNotFound:
        return None, ""
    except (BadManifest, PluginRefused) as bad:
        return None, str(bad)


def _fixture_directory(name: str, plugin: LuaPlugin | None) -> Path:
    """Return where to write fixtures; for a built-in adapter not into telex itself."""
    from telex.adapters.fixtures import DIRECTORY
    from telex.adapters.plugin_registry import MANIFEST

    if plugin is not None and plugin.directory is not None and not plugin.builtin:
        return plugin.directory / DIRECTORY
    path = Path(name)
    return (path.parent if path.name == MANIFEST else path) / DIRECTORY


# telex adapter test

TEST_HELP = """Run the fixtures of adapters and show differences.

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


@command.command("test", help=TEST_HELP)
@click.option("-v", "--verbose", is_flag=True, help="Also show the states of fixtures that pass.")
@click.argument(
    "names",
    metavar="NAME...",
    nargs=-1,
    required=True,
    shell_complete=completion_candidates.adapters,
)
def test_command(names: tuple[str, ...], verbose: bool) -> int:
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
                passed &= await _FixtureTest(plugin, workers, verbose).run()
    finally:
        await workers.close()
    return passed


class _FixtureTest:
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
            _print("", _described(said.state))

    def _fail(self, what: str) -> None:
        self._failed += 1
        _print("FAIL", what)


def _described(state: AdapterState) -> str:
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
