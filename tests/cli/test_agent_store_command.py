"""`telex agent export|import|verify` with what is missing, broken or elsewhere: sentences."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from telex.config import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Here = Callable[..., tuple[int, str, str]]


def test_a_session_that_is_not_there_is_exported_to_nowhere(here: Here, work: Path) -> None:
    here("exec", "help")
    code, out, err = here("export", "--session", "nope")
    assert (code, out) == (1, "")
    assert "session nope does not exist" in err
    assert here("export", "--session", "nope", "--to", "f")[0] == 1
    assert not (work / "f").exists()


def test_an_import_from_stdin_prints_the_new_ids(
    here: Here, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("exec", "help")
    here("export", "--to", "f")
    with (work / "f").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, out, _ = here("import", "--new-ids", "-")
    assert code == 0
    told, counted = out.splitlines()
    assert counted == "1 sessions, 1 runs, 1 events"
    _, old, _, new, _ = told.split()
    listed = here("sessions")[1]
    assert old in listed
    assert new in listed


@pytest.mark.parametrize(
    ("flaw", "said"),
    [
        ("empty", "is empty"),
        ("a link to nowhere", "is not a regular file of your user"),
        ("cut", "cannot be read as a database"),
    ],
)
def test_verify_reports_the_flaw_of_the_file(here: Here, flaw: str, said: str) -> None:
    here("exec", "help")
    path = places.find().database
    match flaw:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[:10_000])
        case _:
            path.unlink()
            path.symlink_to("nowhere")
    code, _, err = here("verify")
    assert code == 1
    assert said in err
    assert "telex agent verify" not in err
    assert "internal" not in err


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_a_script_that_is_nested_too_deeply_is_refused(here: Here, work: Path, depth: int) -> None:
    step = '{"tool":"read","arguments":{"x":' + "[" * depth + "]" * depth + "}}"
    (work / "s.json").write_text('{"steps":[' + step + "]}")
    code, _, err = here("exec", "--script", "s.json", "go")
    assert code != 0
    assert "nested too deeply" in err
    assert "internal" not in err
