"""`telex record` and `telex replay`: files, and what is said about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]


def test_a_recording_is_made_and_played_at_once_where_there_is_no_terminal(telex: Run) -> None:
    ran = telex("record", "demo.cast", "--", "sh", "-c", "echo one; sleep 0.1; echo two; exit 3")
    assert (ran.returncode, ran.stdout) == (3, "one\ntwo\n")
    assert ran.stderr == "telex: recorded in demo.cast\n"
    ran = telex("replay", "demo.cast")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "one\ntwo\n", "")


def test_a_recording_is_not_replaced_unless_one_says_so(telex: Run, work: Path) -> None:
    telex("record", "demo.cast", "--", "echo", "one")
    (work / "demo.cast").chmod(0o644)
    before = (work / "demo.cast").read_bytes()
    ran = telex("record", "demo.cast", "--", "touch", "ran")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "telex: demo.cast already exists; --force replaces it, --append continues it\n"
    )
    assert (work / "demo.cast").read_bytes() == before
    assert not (work / "ran").exists()
    telex("record", "--force", "demo.cast", "--", "echo", "two")
    assert telex("replay", "demo.cast").stdout == "two\n"
    assert (work / "demo.cast").stat().st_mode & 0o777 == 0o600
    assert telex("record", "--force", "--append", "demo.cast", "--", "true").returncode == 2


def test_a_recording_can_be_appended_to_after_its_recorder_was_killed(
    telex: Run, work: Path
) -> None:
    for version in ("2", "3"):
        file = f"{version}.cast"
        telex("record", "--format", version, file, "--", "echo", "one")
        with (work / file).open("a") as half:
            half.write('[7.0,"o","ha')
        telex("record", "--append", file, "--", "echo", "two")
        ran = telex("replay", file)
        assert (ran.stdout, ran.stderr) == ("one\ntwo\n", "")
        assert f'{{"version":{version}' in (work / file).read_text().splitlines()[0]


def test_the_file_stands_before_the_command(telex: Run, work: Path) -> None:
    for options in ([], ["--input"], ["--format", "3"], ["--format=3", "--raw"]):
        ran = telex("record", *options, "--", "less", "a b")
        assert (ran.returncode, ran.stdout) == (2, "")
        said = "there is no FILE before `--`, as in: telex record demo.cast -- less 'a b'"
        assert said in ran.stderr
        assert list(work.iterdir()) == []
    assert telex("record", "--help", "--", "less").returncode == 0
    assert telex("record", "--format", "3", "-x.cast", "--", "true").returncode == 2
    assert telex("record", "a.cast", "--", "echo", "--", "b").stdout == "-- b\n"


def test_a_program_that_cannot_start_leaves_no_recording(telex: Run, work: Path) -> None:
    assert telex("record", "demo.cast", "--", "no-such-program").returncode == 127
    assert not (work / "demo.cast").exists()


def test_a_secret_that_the_person_has_listed_is_not_recorded(telex: Run, work: Path) -> None:
    listed = {"TELEX_REDACTION_EXTRA_LITERALS": "swordfish"}
    ran = telex("record", "a.cast", "--", "echo", "swordfish", **listed)
    assert ran.stdout == "swordfish\n"
    assert "swordfish" not in (work / "a.cast").read_text()
    telex("record", "--raw", "b.cast", "--", "echo", "swordfish", **listed)
    assert "swordfish" in (work / "b.cast").read_text()


def test_a_disk_without_room_for_the_first_line_starts_no_program(telex: Run, work: Path) -> None:
    def full(*options: str) -> CompletedProcess[str]:
        mode = Path("/dev/full").stat().st_mode
        ran = telex("record", *options, "/dev/full", "--", "touch", "ran")
        assert Path("/dev/full").stat().st_mode == mode
        return ran

    ran = full("--force")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "telex: /dev/full cannot be written: No space left on device\n"
    assert not (work / "ran").exists()
    assert full().stderr.startswith("telex: /dev/full already exists;")


def test_a_file_that_is_no_recording_is_a_one_line_error(telex: Run, work: Path) -> None:
    (work / "notes").write_text("hello\n")
    for file, said in (
        ("notes", "notes is not a whole recording: line 1"),
        ("none", "No such file"),
    ):
        ran = telex("replay", file)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert said in ran.stderr
        assert ran.stderr.count("\n") == 1
