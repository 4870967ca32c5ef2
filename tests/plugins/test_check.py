"""`telex plugin check`: a plugin with one flaw fails the clause about it; and the command itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import click
import pytest

from telex.cli.plugin.check import _target
from telex.plugins import protocol as spec
from telex.plugins.check import CLAUSES, check
from telex.plugins.check.bench import (
    CheckedProcess,
    CheckReport,
    ClauseLevel,
    ClauseOutcome,
    ClauseResult,
)

GREET = Path(__file__).parent.parent.parent / "examples/plugins/greet.py"
CHECK = [sys.executable, "-m", "telex", "plugin", "check"]

MAIN = 'if __name__ == "__main__":'
READY = '        self._stage = "ready"\n'
Flaws = dict[str, list[tuple[str, str]]]


CODES: Flaws = {
    "handshake.code": [("-32001", "-32000")],
    "handshake.first": [("-32802", "-32000")],
    "method.unknown": [("-32601", "-32600")],
    "broken.json.code": [("-32700", "-32000")],
    "broken.message.code": [("-32600", "-32000")],
    "command.unknown.code": [("-32002", "-32000")],
}
LENIENT: Flaws = {
    "handshake.other-protocol": [('protocol != "rpp" or ', "")],
    "handshake.other-version": [("version != 0", "False")],
    "command.unknown": [('        if params.get("name") != COMMAND["name"]:', "        if False:")],
    "task.unknown": [
        ('        if params.get("type") != TASK["type"]:', "        if False:"),
        ("check_write(self._task(params))", "self._task(params)"),
    ],
    "shutdown.after": [('if self._stage == "leaving":', "if False:")],
    "exit": [('return 0 if self._stage == "leaving" else 1', "return 1")],
    "log": [('"msg": text', '"text": text')],
    "cancel": [
        ('"name": NAME, "version"', '"name": NAME, "capabilities": {"cancel": True}, "version"'),
        (
            "        hello(self, values)",
            '        hello(self, values)\n        raise Refused(-32004, "")',
        ),
    ],
    "stdout": [(MAIN, 'print("Hello!", flush=True)\n' + MAIN)],
    "nothing-left": [
        (
            MAIN,
            'import subprocess\nsubprocess.Popen(["sleep", "60"], start_new_session=True)\n' + MAIN,
        )
    ],
}
TALKATIVE: Flaws = {
    "notification.unknown": [("elif id is not None:", "else:")],
    "response.unknown": [("return None  # an answer", "self._fail(id, -32600, '')  # an answer")],
    "concurrent": [
        (
            "        except Refused as refused:",
            "        except Refused as refused:\n            self._fail(id, 1, '')",
        )
    ],
    "initialize.unknown-members": [
        (READY, f"        if 'telexCheck' in params: raise Refused(-32602, '')\n{READY}")
    ],
    "shutdown": [('        self._stage = "leaving"', '        raise Refused(-32603, "no")')],
}
FRAGILE: Flaws = {
    "initialize.null": [
        (READY, f"        if None in params.values(): raise Refused(-32602, '')\n{READY}")
    ],
    "params.null": [
        ("            needed, handler", "            dict(params)\n            needed, handler"),
        ("if method not in", "dict(params)\n            if method not in"),
    ],
    "frame.split": [("self._source.read(length or 0)", "self._source.read1(length or 0)")],
    "frame.bytes": [("json.loads(content)", 'json.loads(content.decode("ascii"))')],
    "broken.json": [("except ValueError:", "except KeyError:")],
    "broken.message": [("message if isinstance(message, dict) else {}", "message")],
}
SILENT: Flaws = {
    "id.type": [('"id": id, "error"', '"id": str(id), "error"')],
    "frame.large": [("int(value)", "min(int(value), 65536)")],
    "eof": [
        (
            "                return code\n        return 0\n",
            "                return code\n        import time; time.sleep(60)\n        return 0\n",
        )
    ],
}
MORE_SILENT: Flaws = {
    "id.string": [("isinstance(id, (int, str))", "isinstance(id, int)")],
    "frame.fields": [('name.strip().lower() == b"content-length"', 'name == b"Content-Length"')],
    "exit.alone": [
        (
            'return 0 if self._stage == "leaving" else 1',
            'return 0 if self._stage == "leaving" else None',
        )
    ],
}
ALL = {
    "codes": CODES,
    "lenient": LENIENT,
    "talkative": TALKATIVE,
    "fragile": FRAGILE,
    "silent": SILENT,
}


def flawed(directory: Path, flaws: Flaws) -> Path:
    source = GREET.read_text()
    for right, wrong in itertools.chain.from_iterable(flaws.values()):
        assert right in source, right
        source = source.replace(right, wrong)
    path = directory / "flawed"
    path.write_text(source)
    path.chmod(0o755)
    return path


async def results(
    path: Path, ids: Collection[str], command: str = "hello"
) -> dict[str, ClauseResult]:
    needed = {"handshake", "handshake.other-protocol", *ids}
    clauses = [clause for clause in CLAUSES if clause.id in needed]
    report = await check(path, seconds=2.0, command=command, clauses=clauses)
    return {one.clause.id: one.result for one in report.outcomes if one.clause.id in ids}


@pytest.mark.parametrize("flaws", ALL.values(), ids=ALL.keys())
async def test_each_flaw_breaks_the_clause_about_it(flaws: Flaws, tmp_path: Path) -> None:
    found = await results(flawed(tmp_path, flaws), flaws)
    assert found == dict.fromkeys(found, ClauseResult.FAILED)
    assert found.keys() == flaws.keys()


@pytest.mark.counted
async def test_flaws_that_make_it_silent_break_their_clauses(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    flaws = dict(list(MORE_SILENT.items())[: counted(1, 3)])
    assert await results(flawed(tmp_path, flaws), flaws) == dict.fromkeys(
        flaws, ClauseResult.FAILED
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"name": NAME', '"name": 5'),
        ('"protocol": protocol', '"protocol": "rpp2"'),
        ("self._sink.flush()", "pass"),
        ('"key": "loud", "value": False', '"key": "loud", "value": "no"'),
        ('"key": "loud"', '"key": "name"'),
    ],
)
async def test_an_unacceptable_handshake_fails_and_the_other_clauses_are_untried(
    right: str, wrong: str, tmp_path: Path
) -> None:
    clauses = [clause for clause in CLAUSES if clause.id in ("handshake", "method.unknown")]
    report = await check(flawed(tmp_path, {"": [(right, wrong)]}), seconds=0.5, clauses=clauses)
    assert [one.result for one in report.outcomes] == [ClauseResult.FAILED, ClauseResult.UNTRIED]


async def test_progress_without_a_token_breaks_its_clause(tmp_path: Path) -> None:
    source = (
        (GREET.parent / "counter.py").read_text().replace("/usr/bin/env python3", sys.executable)
    )
    wrong = source.replace("call.progress(number, up_to)", 'call._tell("$/progress", {"token": 1})')
    (tmp_path / "flawed").write_text(wrong)
    (tmp_path / "flawed").chmod(0o755)
    found = await results(tmp_path / "flawed", ["progress", "progress.unasked"], "count")
    assert set(found.values()) == {ClauseResult.FAILED}


def test_every_clause_has_a_flaw_that_breaks_it_or_a_similar_clause() -> None:
    shown = {id for flaws in (*ALL.values(), MORE_SILENT) for id in flaws}
    akin = {"start", "handshake", "handshake.protocol", "initialize", "id.any", "run"}
    akin |= {"envelope.unknown-members", "frame.joined", "broken.header", "cancel.unknown"}
    akin |= {"eof.inside", "tools.list", "tools.unknown", "progress", "progress.unasked"}
    assert shown | akin == {clause.id for clause in CLAUSES}


async def test_if_the_plugin_cannot_start_other_clauses_are_untried(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    report = await check(tmp_path / "text", seconds=1.0)
    failed = [one.clause.id for one in report.outcomes if one.result is ClauseResult.FAILED]
    assert failed == ["start", "handshake"]
    assert len({one.result for one in report.outcomes[2:]}) == 1
    assert not report.ok


async def failed_ids(path: Path, seconds: float = 20.0) -> set[str]:
    report = await check(path, seconds=seconds, command="hello")
    return {one.clause.id for one in report.outcomes if one.result is ClauseResult.FAILED}


async def test_a_fault_with_string_ids_fails_only_the_clauses_about_ids(
    tmp_path: Path,
) -> None:
    """Like the original's SDK, it exits when an id is a string."""
    dies = (
        "    return id is None or (",
        "    return id is None or (not isinstance(id, str) or exit(9)) and (",
    )
    assert await failed_ids(flawed(tmp_path, {"": [dies]})) == {"id.string", "id.type", "id.any"}


async def test_an_id_of_another_type_in_a_response_is_reported_at_once(tmp_path: Path) -> None:
    path = flawed(tmp_path, {"": [('"id": id, "error"', '"id": str(id), "error"')]})
    clauses = [clause for clause in CLAUSES if clause.id in ("handshake", "id.type")]
    report = await check(path, seconds=3600, clauses=clauses)
    assert report.outcomes[-1].seen == 'telex/check had the id 7000001, and its answer "7000001"'


@pytest.mark.parametrize("length", ["16777217", "9999999999", "99999999999", "9" * 100])
async def test_a_length_over_the_limit_breaks_a_clause_at_once(length: str, tmp_path: Path) -> None:
    (tmp_path / "long").write_text(
        f"#!/bin/sh\nprintf 'Content-Length: {length}\\r\\n\\r\\n{{}}'\nexec sleep 600\n"
    )
    (tmp_path / "long").chmod(0o755)
    clauses = [clause for clause in CLAUSES if clause.id == "handshake"]
    report = await check(tmp_path / "long", seconds=3600, clauses=clauses)
    assert report.outcomes[0].seen == "it announced a message of over 16777216 bytes of content"


async def test_a_generation_b_plugin_is_checked_as_one(tmp_path: Path) -> None:
    old = {
        "": [
            ('"rpp"', '"reginald"'),
            ('self._stage = "introduced"', 'self._stage = "ready"'),
            ('params.get("name")', 'params.get("cmd")'),
            ("-32001", "-32000"),
            ("-32002", "-32001"),
        ]
    }
    manifest = spec.PluginManifest("greet", "flawed")
    ids = ("handshake", "initialize", "command.unknown.code", "shutdown", "exit")
    clauses = [clause for clause in CLAUSES if clause.id in ids]
    report = await check(flawed(tmp_path, old), manifest, seconds=5.0, clauses=clauses)
    assert report.protocol == "reginald"
    assert [one.result.value for one in report.outcomes] == [
        "passed",
        "untried",
        "passed",
        "passed",
        "passed",
    ]


def test_a_directory_is_checked_by_its_manifest(tmp_path: Path) -> None:
    def run(manifest: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "manifest.json").write_text(manifest)
        return subprocess.run(
            [*CHECK, "--json", "--timeout", "1", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    (tmp_path / "out").symlink_to("/bin/sh")
    ran = run('{"name": "nobody", "executable": "out"}')
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "leads out of its directory" in ran.stderr
    ran = run("{}")
    assert ran.returncode == 1
    assert "manifest.json cannot be used: " in ran.stderr
    ran = run('{"name": "nobody", "executable": "missing"}')
    said = json.loads(ran.stdout)
    assert (ran.returncode, said["ok"], said["clauses"][0]["result"]) == (1, False, "failed")


def test_checking_a_directory_without_a_manifest_asks_for_the_executable(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"has no manifest\.json; name the executable"):
        _target(tmp_path)


async def test_a_header_that_is_not_understood_is_shown_as_it_was_sent(tmp_path: Path) -> None:
    path = flawed(tmp_path, {"frame.fields": MORE_SILENT["frame.fields"]})
    clauses = [clause for clause in CLAUSES if clause.id in ("handshake", "frame.fields")]
    report = await check(path, seconds=3.0, clauses=clauses)
    assert "whose header begins 'content-length:" in report.outcomes[-1].seen
    assert "{" not in report.outcomes[-1].seen


def test_the_check_command_prints_advice_and_sets_the_exit_code(tmp_path: Path) -> None:
    path = flawed(tmp_path, {"method.unknown": CODES["method.unknown"]})
    ran = subprocess.run(
        [*CHECK, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert [line.split()[1] for line in ran.stdout.splitlines() if line[:1] == "✗"] == [
        "method.unknown"
    ]
    assert "✓ handshake " in ran.stdout
    assert "– cancel " in ran.stdout
    assert "Answer every request, also one with an unknown method" in ran.stdout
    assert (
        ran.stdout.rstrip()
        .splitlines()[-1]
        .startswith("greet does not conform: 1 MUST clause failed")
    )


def test_the_grade_depends_on_must_clauses() -> None:
    should = next(clause for clause in CLAUSES if clause.level is ClauseLevel.SHOULD)
    report = CheckReport("x", outcomes=[ClauseOutcome(should, ClauseResult.FAILED)])
    assert report.ok
    assert report.grade == "conforms, but 1 SHOULD clause failed"


def test_new_writes_a_plugin_once_and_prints_the_next_steps(tmp_path: Path) -> None:
    new = [sys.executable, "-m", "telex", "plugin", "new"]

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*new, *args], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

    ran = run("mine", "--language", "shell")
    assert ran.returncode == 0, ran.stderr
    assert "telex plugin check --run hello ./mine" in ran.stdout
    assert (tmp_path / "mine").read_text().startswith("#!/bin/sh\n")
    assert run("mine").returncode == 1
    assert run("a b").returncode == 2


async def test_closing_a_plugin_that_has_just_closed_its_input_ends_it_once() -> None:
    argv = ["sh", "-c", "read line; exec 0<&-; exec sleep 60"]
    subject = await CheckedProcess.start(argv, os.environ, 5.0)
    writing = subject._writing
    assert writing is not None
    subject.send(b"now\n")
    while not writing.is_closing():  # before the loop calls connection_lost
        await asyncio.sleep(0)
    await subject.close()
