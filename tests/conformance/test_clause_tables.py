"""The clause tables and the tests, held to each other both ways."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import pytest

from clause_table import CONFORMANCE, SPECS, Clause, Table, load, mistakes

ROOT = CONFORMANCE.parents[1]
Function = ast.FunctionDef | ast.AsyncFunctionDef

_NEVER_RUNS = re.compile(r"\bmark\.(skip|xfail)\b")


@lru_cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@lru_cache
def functions_in(file: Path) -> dict[str, Function]:
    """The test functions of a file, by name."""
    functions = (node for node in parsed(file).body if isinstance(node, Function))
    return {node.name: node for node in functions if node.name.startswith("test_")}


@lru_cache
def strings_in(file: Path) -> set[object]:
    return {node.value for node in ast.walk(parsed(file)) if isinstance(node, ast.Constant)}


def missing(name: str) -> str | None:
    """Why a test that a clause names shows nothing, as a sentence; None if it shows something."""
    where, _, function = name.partition("::")
    function, bracket, parameter = function.removesuffix("]").partition("[")
    file = ROOT / where
    if not file.is_file():
        return f"there is no file {where}"
    if (test := functions_in(file).get(function)) is None:
        return f"{where} has no test {function}"
    if bracket and parameter not in strings_in(file):
        return f"{where} has no parameter {parameter!r}"
    if never_runs(test) or _NEVER_RUNS.search(marks_of(parsed(file))):
        return f"{function} is always skipped"
    return None


def never_runs(test: Function) -> bool:
    """Whether it is skipped on every computer; a skip under a condition is fine."""
    marks = " ".join(map(ast.unparse, test.decorator_list))
    statements = [ast.unparse(node) for node in test.body if isinstance(node, ast.Expr)]
    return bool(_NEVER_RUNS.search(marks)) or any(s.startswith("pytest.skip(") for s in statements)


def marks_of(module: ast.Module) -> str:
    """What `pytestmark` says of every test in a file."""
    given = (node for node in module.body if isinstance(node, ast.Assign))
    return " ".join(
        ast.unparse(n.value) for n in given if ast.unparse(n.targets[0]) == "pytestmark"
    )


def undescribed(file: Path, named: set[str]) -> list[str]:
    """The tests of a file that no clause names."""
    full = (f"{file.relative_to(ROOT)}::{function}" for function in functions_in(file))
    return [name for name in full if name not in named]


def named_by(tables: list[Table]) -> set[str]:
    """Every test a clause names, without parameters."""
    clauses = [clause for table in tables for clause in table.clause]
    return {name.partition("[")[0] for clause in clauses for name in clause.tests}


def test_every_spec_has_its_folder_and_every_folder_its_table() -> None:
    folders = {file.parent.name for file in CONFORMANCE.glob("*/*.*")}
    assert folders - {"__pycache__"} == set(SPECS)
    for folder in SPECS:
        assert load(folder).clause


@pytest.mark.parametrize("folder", SPECS)
def test_every_clause_is_well_formed(folder: str) -> None:
    assert not list(mistakes(folder, load(folder)))


@pytest.mark.parametrize("folder", SPECS)
def test_every_test_that_a_clause_names_exists_and_runs(folder: str) -> None:
    named = [(clause.id, name) for clause in load(folder).clause for name in clause.tests]
    told = [f"{id}: {why}" for id, name in named if (why := missing(name))]
    assert not told, "\n" + "\n".join(told)


def test_every_conformance_test_shows_a_clause() -> None:
    named = named_by([load(folder) for folder in SPECS])
    files = [file for file in CONFORMANCE.rglob("test_*.py") if file != Path(__file__)]
    stray = [name for file in files for name in undescribed(file, named)]
    assert not stray, "name these in a clause, or keep them elsewhere:\n" + "\n".join(stray)


def test_no_section_of_a_spec_is_taken_up_twice() -> None:
    """The page is a map of the spec, in its order."""
    for folder in SPECS:
        headings = [heading for heading, _ in groupby(load(folder).clause, lambda c: c.section)]
        assert len(headings) == len(set(headings)), f"{folder}: {headings}"


def test_the_clause_check_detects_each_defect(tmp_path: Path) -> None:
    bad = [
        Clause("htty.a.b", "Framing", "No full stop", test="x"),
        Clause("htty.a.c", "Framing", "Both.", test="x", differs="because"),
        Clause("htty.a.d", "Framing", "Neither."),
        Clause("htty.a.e", "Framing", "An empty reason.", deferred=" "),
        Clause("Htty.a", "Framing", "A strange id.", test="x"),
        Clause("other.a.b", "Framing", "Another's.", test="x"),
        Clause("htty.a.b", "", "Twice, and nowhere.", test="x"),
    ]
    assert len(list(mistakes("htty", Table("", "", "", bad)))) == 9
    here = "tests/conformance/test_clause_tables.py"
    assert missing(f"{here}::test_every_clause_is_well_formed") is None
    assert missing(f"{here}::test_no_such_thing")
    assert missing(f"{here}::test_every_clause_is_well_formed[no such parameter, " + "ever]")
    assert missing("tests/no_such_file.py::test_x")
    file = tmp_path / "test_skipped.py"
    file.write_text(
        "@pytest.mark.skip\ndef test_a(): ...\n"
        "@pytest.mark.xfail(strict=True)\ndef test_b(): ...\n"
        "def test_c():\n    pytest.skip('not today')\n"
        "@pytest.mark.skipif(x, reason='')\ndef test_d(): ...\n"
        "def test_e():\n    if x:\n        pytest.skip('not here')\n"
    )
    skipped = [name for name, test in functions_in(file).items() if never_runs(test)]
    assert skipped == ["test_a", "test_b", "test_c"]
