"""`telex when`, `telex frame` and `telex diff` on recordings of real programs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import telex as api

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

SECRET = "password=hunter2secret"


@pytest.fixture(scope="module")
def casts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of bash with less in it, and of vim, in both versions."""
    place = tmp_path_factory.mktemp("casts")
    (place / "numbers").write_text("".join([f"line {n}\n" for n in range(1, 101)]))
    with api.spawn(["bash", "--norc"], cwd=place, env={"PS1": "$ "}) as term:
        term.record(place / "bash.cast")
        term.wait("$")
        term.type("echo one; echo two\n")
        term.wait("two\n$")
        term.type("less numbers\n")
        term.wait("line 10")
        term.type("/line 77\n")
        term.wait("line 90")
        term.type("q")
        term.wait("numbers\n$")
        term.type("exit\n")
        term.wait(api.match.exited())
    vim(place / "vim.cast", "hello from vim", format=3)
    vim(place / "slow.cast", *"hello from vim")
    vim(place / "other.cast", "hello from Vim")
    return place


def vim(cast: Path, *typed: str, **how: int) -> None:
    """Record vim while something is typed, at once or with a wait for each part."""
    with api.spawn(["vim", "-u", "NONE", "-i", "NONE", "-n", "notes"], cwd=cast.parent) as term:
        term.record(cast, **how)
        term.wait("~")
        term.type(":set noshowmode noruler\ni")
        for so_far, part in enumerate(typed, 1):
            term.type(part)
            term.wait("".join(typed[:so_far]).rstrip())
        term.type("\x1b")
        term.wait(api.match.stable(150))
        term.type(":q!\n")
        term.wait(api.match.exited())


def times(said: str) -> list[tuple[float, float | None]]:
    lines = [line.split()[:2] for line in said.splitlines()]
    return [(float(begin), None if end == "end" else float(end)) for begin, end in lines]


def test_when_tells_each_time_and_frame_shows_it(inside: Run, casts: Path) -> None:
    cast = str(casts / "bash.cast")
    ran = inside("when", cast, "line 78")
    assert (ran.returncode, ran.stderr) == (0, "")
    ((found, gone),) = times(ran.stdout)
    assert gone is not None
    assert "line 78\n" in inside("frame", cast, "--at", str(found)).stdout
    for other in (found - 0.000001, gone):
        assert "line 78" not in inside("frame", cast, "--at", f"{other:.6f}").stdout
    assert inside("frame", cast, "--at", "end").stdout == inside("frame", cast).stdout


def test_when_finds_what_vim_showed_although_its_screen_is_gone(inside: Run, casts: Path) -> None:
    cast = str(casts / "vim.cast")
    (one,) = json.loads(inside("when", "--json", cast, "hello from vim").stdout)
    assert (one["row"], one["col"], one["line"]) == (0, 0, "hello from vim")
    ran = inside("frame", cast)
    assert "hello" not in ran.stdout
    found = re.fullmatch(
        r"telex: note: the program left its full screen at [\d.]+ s, and this is blank; try "
        r"--at ([\d.]+)\n",
        ran.stderr,
    )
    assert found is not None, ran.stderr
    assert "hello" in inside("frame", cast, "--at", found[1]).stdout
    assert "hello" in inside("frame", cast, "--at", str(one["appeared"])).stdout


def test_when_takes_a_regular_expression(inside: Run, casts: Path) -> None:
    cast = str(casts / "bash.cast")
    ran = inside("when", "-e", cast, r"^(one|two)$")
    assert [line.split()[-1] for line in ran.stdout.splitlines()] == ["one", "two"]
    assert inside("when", "-i", cast, "LINE 1").returncode == 0
    ran = inside("when", "-e", cast, "(")
    assert ran.returncode == 2
    assert "'(' is not a regular expression" in ran.stderr


def test_a_text_that_never_stood_there_is_a_sentence_and_1(inside: Run, casts: Path) -> None:
    cast = str(casts / "bash.cast")
    ran = inside("when", cast, "no such text")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"telex: 'no such text' never stood on the screen of {cast}\n"
    assert inside("when", "--json", cast, "no such text").stdout == "[]\n"
    assert inside("when", cast, "").returncode == 2


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [(".png", b"\x89PNG"), (".svg", b"<svg"), (".html", b"<!"), (".txt", b"line"), (".ansi", b"")],
)
def test_frame_draws_every_kind_of_picture(
    inside: Run, casts: Path, work: Path, suffix: str, begins: bytes
) -> None:
    cast = str(casts / "bash.cast")
    ((found, _),) = times(inside("when", cast, "line 78").stdout)
    ran = inside("frame", cast, "--at", str(found), "-o", f"x{suffix}", "--scale", "1")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (work / f"x{suffix}").read_bytes().startswith(begins)


def test_a_time_after_the_end_is_the_last_screen_with_a_note(inside: Run, casts: Path) -> None:
    cast = str(casts / "bash.cast")
    ran = inside("frame", cast, "--at", "9999")
    assert ran.stdout == inside("frame", cast).stdout
    assert re.fullmatch(
        r"telex: note: .* ends at \d+\.\d+ s; this is its last screen\n", ran.stderr
    )


def test_a_blank_screen_is_told_with_the_time_before_it(inside: Run, work: Path) -> None:
    header = '{"version": 2, "width": 20, "height": 4}\n'
    events = [(1, "one"), (2, "two"), (3, "three"), (3, "\\u001b[2J"), (4, " ")]
    lines = "".join([f'[{time}, "o", "{text}"]\n' for time, text in events])
    (work / "a.cast").write_text(header + lines)
    for at in ("end", "3.5"):
        ran = inside("frame", "a.cast", "--at", at)
        assert ran.stderr == (
            "telex: note: the screen was cleared at 3.000000 s, and this is blank; try "
            "--at 2.000000\n"
        )
    assert inside("frame", "a.cast", "--at", "2.000000").stdout == "onetwo\n"
    assert inside("frame", "a.cast", "--at", "0.5").stderr == ""


@pytest.mark.parametrize("time", ["-1", "nan", "inf", "soon", ""])
def test_a_time_is_seconds_or_end(inside: Run, casts: Path, time: str) -> None:
    ran = inside("frame", str(casts / "bash.cast"), "--at", time)
    assert ran.returncode == 2
    assert "is not a time in seconds" in ran.stderr


def test_secrets_of_a_raw_recording_are_masked_unless_raw(inside: Run, work: Path) -> None:
    header = '{"version": 2, "width": 80, "height": 24}\n'
    (work / "raw.cast").write_text(f'{header}[0.5, "o", "my {SECRET} swordfish"]\n')
    listed = {"TELEX_REDACTION_EXTRA_LITERALS": "swordfish"}
    for command in (
        ["when", "raw.cast", "my"],
        ["when", "--json", "raw.cast", "hunter2"],
        ["frame", "raw.cast"],
        ["frame", "raw.cast", "--kind", "svg"],
    ):
        said = inside(*command, **listed).stdout
        assert said
        assert "hunter2" not in said
        assert "swordfish" not in said
        assert "hunter2secret" in inside(*command, "--raw", **listed).stdout


def test_control_characters_of_a_recording_are_not_printed(inside: Run, work: Path) -> None:
    header = '{"version": 3, "term": {"cols": 80, "rows": 24}}\n'
    (work / "a.cast").write_text(f'{header}[0.5, "o", "a\\u001b]0;title\\u0007\\u0085 \\u202eb"]\n')
    for command in (["when", "a.cast", "a"], ["frame", "a.cast"]):
        assert not set("\x1b\x07\x85\u202e") & set(inside(*command).stdout)


def test_a_damaged_recording_is_a_sentence_with_the_line(inside: Run, work: Path) -> None:
    whole = ['{"version": 2, "width": 80, "height": 24}', '[0.5, "o", "one"]', '[1, "o", "two"]']
    (work / "bad.cast").write_text("\n".join([*whole[:2], "garbage", whole[2]]) + "\n")
    (work / "huge.cast").write_text(whole[0].replace("80", "99999") + "\n")
    (work / "grown.cast").write_text("\n".join([*whole, '[2, "r", "90000x10"]']) + "\n")
    (work / "cut.cast").write_text("\n".join([*whole, '[2, "o", "th']))
    (work / "empty.cast").write_text("")
    for command in ("when", "frame"):
        word = ["one"] if command == "when" else []
        for file, said in {
            "bad.cast": "bad.cast is not a whole recording: line 3",
            "huge.cast": "huge.cast is not a whole recording: line 1",
            "grown.cast": "line 4 is not an event of a recording: 90000x10 is larger",
            "empty.cast": "empty.cast is not a whole recording: line 1",
            "none.cast": "No such file",
        }.items():
            ran = inside(command, file, *word)
            assert (ran.returncode, ran.stdout) == (2, "")
            assert said in ran.stderr
            assert ran.stderr.count("\n") == 1
        ran = inside(command, "cut.cast", *word)
        assert ran.returncode == 0
        assert "one" in ran.stdout
        assert ran.stderr == (
            "telex: warning: cut.cast was cut off in line 4; it is read up to that line\n"
        )


def test_a_recording_in_a_directory_that_cannot_be_written_is_read(
    inside: Run, casts: Path, work: Path
) -> None:
    locked = work / "locked"
    locked.mkdir()
    (locked / "a.cast").write_bytes((casts / "bash.cast").read_bytes())
    locked.chmod(0o500)
    try:
        assert inside("when", "locked/a.cast", "two").returncode == 0
        assert inside("frame", "locked/a.cast").returncode == 0
        assert [file.name for file in locked.iterdir()] == ["a.cast"]
    finally:
        locked.chmod(0o700)


# Differences.


def test_two_runs_of_vim_are_the_same_although_one_was_typed_slowly(
    inside: Run, casts: Path
) -> None:
    ran = inside("diff", str(casts / "vim.cast"), str(casts / "slow.cast"))
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert ran.stdout.startswith("no difference in ")
    ran = inside("diff", "--json", str(casts / "slow.cast"), str(casts / "vim.cast"))
    assert json.loads(ran.stdout)["same"] is True


def test_another_letter_is_told_with_its_place(inside: Run, casts: Path) -> None:
    files = str(casts / "vim.cast"), str(casts / "other.cast")
    ran = inside("diff", *files)
    assert (ran.returncode, ran.stderr) == (1, "")
    said = ran.stdout.splitlines()
    assert re.fullmatch(
        r"first difference: .*vim.cast step \d+ at .*other.cast step \d+ .*", said[0]
    )
    assert said[1:4] == [
        "  row 0, columns 11-13: 'vim' → 'Vim'",
        "    - hello from vim",
        "    + hello from Vim",
    ]
    assert said[4:] == ["at the end the screens are the same"]
    assert inside("diff", "-i", *files).returncode == 2
    assert inside("diff", "--ignore", "(?i)vim", *files).returncode == 0
    facts = json.loads(inside("diff", "--json", *files).stdout)
    assert facts["first"]["rows"][0]["new"] == "hello from Vim"
    assert (facts["end"]["same"], facts["exit_codes"]) == (True, [0, 0])


def test_a_long_difference_is_cut_unless_all_of_it_is_asked_for(inside: Run, work: Path) -> None:
    header = '{"version": 2, "width": 80, "height": 24}\n'
    for name in "ab":
        rows = "".join([f"{name} {n}\\r\\n" for n in range(20)])
        (work / f"{name}.cast").write_text(f'{header}[0.5, "o", "{rows}"]\n')
    said = inside("diff", "a.cast", "b.cast").stdout.splitlines()
    assert (len(said), said[-1]) == (32, "  … and 10 more rows; --all shows them")
    said = inside("diff", "--all", "a.cast", "b.cast").stdout.splitlines()
    assert (len(said), said[-1]) == (61, "    + b 19")
    facts = json.loads(inside("diff", "--json", "a.cast", "b.cast").stdout)
    assert len(facts["first"]["rows"]) == 20


def test_a_difference_of_secrets_is_told_without_them(inside: Run, work: Path) -> None:
    header = '{"version": 2, "width": 80, "height": 24}\n'
    for name, secret in (("a", SECRET), ("b", "password=swordfish1234")):
        (work / f"{name}.cast").write_text(
            f'{header}[0.5, "o", "{secret}"]\n[1, "x", "{len(name)}"]\n'
        )
    ran = inside("diff", "a.cast", "b.cast")
    assert ran.returncode == 1
    assert ran.stdout == (
        "first difference: a.cast step 1 at 0.500000 s; b.cast step 1 at 0.500000 s\n"
        "  only masked text differs; --raw shows it\n"
    )
    assert "hunter2" not in ran.stdout
    assert "hunter2secret" in inside("diff", "--raw", "a.cast", "b.cast").stdout


def test_no_screen_shows_a_part_of_a_token_that_is_whole_later(inside: Run, work: Path) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    events = [
        [0.5, "o", f"key {token[10:]}"],
        [1.5, "o", f"\r\x1b[Kkey {token}"],
        [2.5, "o", "\rdone and away"],
    ]
    lines = ['{"version": 2, "width": 80, "height": 24}', *map(json.dumps, events)]
    (work / "a.cast").write_text("\n".join(lines) + "\n")
    for arguments in (
        ["frame", "a.cast", "--at", "1"],
        ["frame", "a.cast"],
        ["when", "a.cast", "key"],
        ["when", "a.cast", "done"],
    ):
        ran = inside(*arguments)
        assert ran.returncode == 0
        assert ran.stdout.strip()
        assert "aB3dE6gH9" not in ran.stdout, arguments
    assert token[10:] in inside("frame", "--raw", "a.cast", "--at", "1").stdout


def test_an_exit_code_and_a_damaged_file_are_told(inside: Run, work: Path) -> None:
    start = '{"version": 2, "width": 80, "height": 24}\n[0.5, "o", "ok"]\n'
    (work / "a.cast").write_text(f'{start}[1, "x", "0"]\n')
    (work / "b.cast").write_text(f'{start}[1, "x", "3"]\n')
    (work / "c.cast").write_text(f"{start}garbage\n")
    ran = inside("diff", "a.cast", "b.cast")
    assert (ran.returncode, ran.stdout) == (
        1,
        "at the end the screens are the same\nexit code: 0 → 3\n",
    )
    ran = inside("diff", "a.cast", "c.cast")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert inside("diff", "a.cast", "none.cast").returncode == 2
    assert ran.stderr.startswith("telex: c.cast is not a whole recording: line 3")
    assert inside("diff", "--ignore", "(", "a.cast", "b.cast").returncode == 2


# The how-to.

ROOT = Path(__file__).parent.parent.parent


def test_the_how_to_shows_what_the_commands_print(
    inside: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/how-to/search-recordings.md").read_text()
    monkeypatch.chdir(ROOT / "examples/recordings")
    shown = re.findall(r"^\$ telex (.*)\n((?:(?!\$ |```).*\n)*)", page, re.MULTILINE)
    assert len(shown) >= 7
    for words, output in shown:
        words, _, head = words.partition(" | head -")
        ran = inside(*shlex.split(words))
        printed = ran.stdout.splitlines(keepends=True)
        assert "".join(printed[: int(head or len(printed))]) == output, words
        assert ran.stderr == ""
