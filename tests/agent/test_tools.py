"""The tools of the agent: their results and their refusals."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.working import TOOLS, call, context_in, gone, refused, said
from telex.agent.command_runner import agent_environment
from telex.agent.diffs import unified_diff
from telex.agent.excerpts import line_pattern, lines_of, matching_lines
from telex.agent.sandbox_files import BadGlob, Glob
from telex.agent.tools import search as searching_tool
from telex.agent.tools.tool import AgentTool, Preview, ToolContext, ToolResult
from telex.agent.tools.tool_registry import BadArguments, ToolRegistry, UnknownTool
from telex.processes.shielded import run_in_thread
from telex.redaction import Redactor


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# The registry


def test_every_tool_has_a_valid_schema_and_a_description() -> None:
    names = [tool.name for tool in TOOLS]
    assert names == [
        *("read", "read_line", "view_image", "write", "edit", "search", "list", "shell", "todo"),
        *("skill_load", "clipboard_read"),
        *("tool_output_cache", "tool_output_cache_line", "tool_output_cache_grep"),
        *("terminal_open", "terminal_do", "terminal_see", "terminal_wait", "terminal_close"),
    ]
    for tool in TOOLS:
        jsonschema.Draft202012Validator.check_schema(tool.schema)
        assert tool.schema["type"] == "object"
        assert tool.schema["additionalProperties"] is False
        assert len(tool.description) > 20


def test_an_unknown_tool_is_refused_with_the_known_names() -> None:
    with pytest.raises(UnknownTool, match=r"'rm'.*read, "):
        TOOLS.prepare("rm", {})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", b"{}"),
        ("read", b'{"file_path":""}'),
        ("read", b'{"file_path":"a","offset":-1}'),
        ("read", b'{"file_path":"a","wrong":1}'),
        ("read", b'{"file_path":1}'),
        ("read", b'["a"]'),
        ("read", b"not json"),
        ("read", b'{"file_path":"\xff"}'),
        ("read", b'{"file_path":' + b"[" * 100_000),
        ("read", None),
        ("shell", {"command": "x", "timeout_seconds": 0}),
        ("shell", {"command": "x", "label": "l" * 81}),
        ("write", {"file_path": "a", "content": "", "expected_hash": "short"}),
        ("write", {"file_path": "a", "content": "\ud800"}),
        ("todo", {"action": "new", "entries": [{"content": "x", "priority": 6}]}),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(
    name: str, arguments: bytes | dict[str, object] | None
) -> None:
    with pytest.raises(BadArguments, match=f"invalid arguments for {name}"):
        TOOLS.prepare(name, arguments)


async def test_arguments_are_accepted_as_received(context: ToolContext) -> None:
    (context.cwd / "a").write_text("x")
    for arguments in (b'{"file_path":"a"}', msgspec.Raw(b'{"file_path":"a"}'), {"file_path": "a"}):
        assert not (await TOOLS.call("read", arguments, context)).is_error


async def test_a_foreign_tool_cannot_replace_a_built_in_tool(context: ToolContext) -> None:
    async def run(arguments: object, context: ToolContext) -> ToolResult:
        return ToolResult("x" * 300_000)

    foreign = [
        AgentTool(name, "From a plugin.", {"type": "object"}, msgspec.json.decode, run)
        for name in ("read", "foreign")
    ]
    tools = ToolRegistry([*TOOLS, *foreign])
    assert tools.prepare("read", {"file_path": "a"}).tool is not foreign[0]
    result = await tools.call("foreign", {"any": 1}, context)
    assert len(result.text) < 70_000, "the result of any tool is limited"
    ref_id = result.text.rsplit(" ", 1)[1].rstrip("]")
    assert "x" in await said(context, "tool_output_cache_line", ref_id=ref_id, line_number=0)


# read


async def test_a_file_is_read_with_numbered_lines_and_its_hash(context: ToolContext) -> None:
    (context.cwd / "f").write_text("one\ntwo\nthree\n")
    result = await call(context, "read", file_path="f")
    assert (
        result.text
        == f"    1  one\n    2  two\n    3  three\n[sha256 {sha('one' + chr(10) + 'two' + chr(10) + 'three' + chr(10))}]"
    )
    assert result.details["lines"] == 3
    part = await said(context, "read", file_path="f", offset=1, limit=1)
    assert part.startswith("    2  two\n[lines 2 to 2 of 3: continue with offset 2; sha256 ")
    assert "3 lines" in await refused(context, "read", file_path="f", offset=3)


async def test_a_large_file_is_read_in_pages_and_long_lines_in_parts(context: ToolContext) -> None:
    (context.cwd / "f").write_text("short\n" + "x" * 5000 + "\n" + "y\n" * 3000)
    text = await said(context, "read", file_path="f")
    assert "    2  " + "x" * 1000 + "...[line clipped]\n" in text
    assert "lines 1 to 2000 of 3002: continue with offset 2000" in text
    part = await said(
        context, "read_line", file_path="f", line_number=2, char_offset=4990, char_limit=100
    )
    assert part == "x" * 10


async def test_a_file_that_is_not_text_is_refused_with_a_reason(context: ToolContext) -> None:
    (context.cwd / "binary").write_bytes(b"\x7fELF\0\0")
    (context.cwd / "empty").touch()
    with (context.cwd / "huge").open("wb") as file:
        file.truncate(11 * 2**20)
    assert "binary file of 6 bytes" in await refused(context, "read", file_path="binary")
    assert "10 MiB" in await refused(context, "read", file_path="huge")
    assert "is a directory; use `list`" in await refused(context, "read", file_path=".")
    assert "No such file" in await refused(context, "read", file_path="missing")
    assert "outside" in await refused(context, "read", file_path="/etc/passwd")
    assert "empty" in await said(context, "read", file_path="empty")


async def test_text_that_is_not_utf_8_is_read_all_the_same(context: ToolContext) -> None:
    (context.cwd / "f").write_bytes(b"caf\xe9\r\n")
    assert "    1  caf\ufffd\n[lines end in CR LF; " in await said(context, "read", file_path="f")


# write, edit


async def test_a_file_is_written_and_missing_directories_are_created(context: ToolContext) -> None:
    result = await call(context, "write", file_path="a/b/f", content="hé\n")
    assert (context.cwd / "a" / "b" / "f").read_text() == "hé\n"
    assert result.text.startswith("a/b/f created: 4 bytes\ndiff --git a/a/b/f b/a/b/f\n")
    assert "\n--- /dev/null\n+++ b/a/b/f\n@@ -0,0 +1 @@\n+hé\n[sha256 " in result.text
    assert result.details["sha256"] == sha("hé\n")
    assert (await said(context, "write", file_path="g", content="x")).startswith(
        "g created: 1 byte\n"
    )


async def test_a_file_that_changed_meanwhile_is_not_overwritten(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("theirs")
    for name, more in (
        ("write", {"content": "x"}),
        ("edit", {"old_string": "t", "new_string": "x"}),
    ):
        told = await refused(context, name, file_path="f", expected_hash=sha("before"), **more)
        assert sha("theirs") in told
    assert "not the expected file" in await refused(
        context, "write", file_path="f", content="x", expected_hash=""
    )
    assert file.read_text() == "theirs"
    await said(context, "write", file_path="f", content="ours", expected_hash=sha("theirs"))
    assert file.read_text() == "ours"
    told = await refused(context, "write", file_path="g", content="", expected_hash=sha("x"))
    assert "it does not exist" in told


async def test_a_text_that_occurs_once_is_replaced(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_bytes(b"one\ntwo\r\n\xe9two\n")
    edit = {"file_path": "f", "old_string": "two", "new_string": "2"}
    assert "occurs 2 times" in await refused(context, "edit", **edit)
    assert "nothing was written" in await said(
        context, "edit", **edit, replace_all=True, dry_run=True
    )
    assert file.read_bytes() == b"one\ntwo\r\n\xe9two\n"
    assert "edited in 2 places" in await said(context, "edit", **edit, replace_all=True)
    assert file.read_bytes() == b"one\n2\r\n\xe92\n", "only the requested text changes"
    await said(context, "edit", file_path="f", old_string="", new_string="all new")
    assert file.read_text() == "all new"


async def test_a_text_that_is_not_found_is_refused(context: ToolContext) -> None:
    (context.cwd / "f").write_bytes(b"a\r\n  b\r\n")
    edit = {"file_path": "f", "new_string": "x"}
    assert "CR LF" in await refused(context, "edit", old_string="a\n  b", **edit)
    assert "white space" in await refused(context, "edit", old_string="a b", **edit)
    assert "read it again" in await refused(context, "edit", old_string="c", **edit)
    assert "nothing to change" in await refused(context, "edit", old_string="x", **edit)


async def test_a_file_that_is_not_writable_is_not_replaced(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("x")
    file.chmod(0o400)
    result = await call(context, "write", file_path="f", content="y")
    if os.geteuid() == 0:  # root may write everything
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("y", 0o400)
    else:
        assert "is not writable" in result.text
        assert file.read_text() == "x"


async def test_a_change_is_bound_to_the_file_that_was_shown(context: ToolContext) -> None:
    file = context.cwd / "f"
    file.write_text("a\nb\nc\n")
    prepared = TOOLS.prepare("edit", {"file_path": "f", "old_string": "b", "new_string": "B"})
    preview = await prepared.preview(context)
    assert isinstance(preview, Preview)
    assert preview.diff.splitlines()[3:] == ["@@ -1,3 +1,3 @@", " a", "-b", "+B", " c"]
    assert file.read_text() == "a\nb\nc\n", "a preview changes nothing"
    file.write_text("b\n")
    assert (await prepared.pinned(preview).run(context)).is_error
    assert file.read_text() == "b\n"
    fresh = await TOOLS.prepare("write", {"file_path": "new", "content": "x"}).preview(context)
    assert isinstance(fresh, Preview)
    assert fresh.pinned.expected_hash == "", "a file that has appeared since is not overwritten"
    assert await TOOLS.prepare("list", {}).preview(context) is None
    failing = await TOOLS.prepare("write", {"file_path": "../x", "content": ""}).preview(context)
    assert isinstance(failing, ToolResult)
    assert failing.is_error


def test_a_diff_is_limited_in_lines_and_time() -> None:
    before = b"same\n" * 50_000 + b"old\n" * 20_000 + b"end\n"
    shown = unified_diff("f", before, before.replace(b"old", b"new"))
    lines = shown.text.splitlines()
    assert shown.truncated
    assert len(lines) == 124
    assert lines[3].startswith("@@ -49998,")
    assert lines[-1] == "...[difference truncated]..."
    assert unified_diff("f", b"a", b"a").text == ""


def test_an_incomplete_diff_is_marked_as_truncated() -> None:
    assert unified_diff("f", b"", b"x" * 1001).truncated, "a line that is clipped"
    other = unified_diff("f", b"\xe9\n", b"\xe8\n")
    assert (other.rows, other.truncated) == (("@@ -1 +1 @@", "-\ufffd", "+\ufffd"), True)
    for lines in (994, 995, 996, 997, 998):
        before = b"0\n" * lines + b"1\n2\n3\n4\n"
        shown = unified_diff("f", b"a\n" + before, b"b\n" + before.replace(b"0\n1\n", b"0\n9\n1\n"))
        added = [row for row in shown.rows if row.startswith("+")]
        assert shown.truncated or added == ["+b", "+9"], "equal contents are no change"


_LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", " ", "\r", "a\r", "-", "+b", "\\", "@@", "é"]), max_size=12
)


@example(["a"] * 5, ["b", *["a"] * 4], False, False, "f", False)
@given(
    _LINES,
    _LINES,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["f", "a b", 'q"\\é', "new\nline", "t\tab", "d/e/f"]),
    st.booleans(),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_git_applies_a_diff(
    program: Callable[[str], str],
    old: list[str],
    new: list[str],
    old_ended: bool,
    new_ended: bool,
    name: str,
    is_new: bool,
) -> None:
    before = None if is_new else ("\n".join(old) + "\n" * old_ended).encode()
    after = ("\n".join(new) + "\n" * new_ended).encode()
    found = unified_diff(name, before, after)
    assert not found.truncated
    assert (found.text == "") == (before == after)
    with TemporaryDirectory() as directory:
        file = Path(directory, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        if before is not None:
            file.write_bytes(before)
        if found.text:
            git = [program("git"), "apply", "--whitespace=nowarn", "--unsafe-paths", "-"]
            given = found.text.encode()
            subprocess.run(git, cwd=directory, input=given, check=True, timeout=60)
        assert file.read_bytes() == after


# list


async def test_a_directory_is_listed(context: ToolContext) -> None:
    (context.cwd / "sub").mkdir()
    (context.cwd / "sub" / "deep.py").touch()
    (context.cwd / "b.py").touch()
    (context.cwd / "out").symlink_to("/etc")
    (context.cwd / "two\nlines").touch()
    assert await said(context, "list") == "b.py\nout@\nsub/\n'two\\nlines'"
    assert await said(context, "list", pattern="*.py") == "b.py\nsub/deep.py"
    assert await said(context, "list", path="sub") == "sub/deep.py"
    assert "[no matching files]" in await said(context, "list", pattern="passwd")
    assert "outside" in await refused(context, "list", path="out")
    assert (await said(context, "list", limit=1)).startswith("b.py\n[the first 1;")


async def test_a_pattern_finds_nothing_in_hidden_directories_unless_it_names_one(
    context: ToolContext,
) -> None:
    for place in (".venv/lib", ".git", "src/.cache"):
        (context.cwd / place).mkdir(parents=True)
        (context.cwd / place / "a.py").touch()
    (context.cwd / ".b.py").touch()
    assert await said(context, "list", pattern="*.py") == ".b.py"
    assert await said(context, "list", pattern=".venv/**/*.py") == ".venv/lib/a.py"
    assert await said(context, "list", pattern="src/.cache/*") == "src/.cache/a.py"
    assert await said(context, "list", path=".venv", pattern="*.py") == ".venv/lib/a.py"


@pytest.mark.parametrize(
    ("glob", "fits", "not_"),
    [
        ("*.py", "a.py a/b.py .x.py", "a.pyc py a/b.py/c"),
        ("a/*.py", "a/b.py", "a/b/c.py x/a/b.py"),
        ("a/**/*.py", "a/b.py a/b/c.py", "b/a.py"),
        ("**/*.py", "b.py a/b.py", "b.pyx"),
        ("*.{ts,tsx}", "a.ts a/b.tsx", "a.tsxx a.t"),
        ("a?c", "abc", "ac a/c"),
        ("[a-c].x", "a.x c.x", "d.x"),
        ("[!a-c].x", "d.x", "a.x"),
        ("a+(b).c", "a+(b).c", "aab.c"),
        ("./a,b", "a,b", "a"),
    ],
)
def test_a_glob_matches_names_and_paths(glob: str, fits: str, not_: str) -> None:
    assert all(map(Glob(glob).matches, fits.split()))
    assert not any(map(Glob(glob).matches, not_.split()))


@pytest.mark.parametrize("glob", ["{a", "a}", "[z-a]"])
def test_an_invalid_pattern_is_refused_with_a_reason(glob: str) -> None:
    with pytest.raises(BadGlob):
        Glob(glob)


# search


@pytest.fixture(params=["ripgrep", "our own"])
def searching(
    request: pytest.FixtureRequest, tmp_path: Path, program: Callable[[str], str]
) -> ToolContext:
    """With and without ripgrep: the results are the same."""
    if request.param == "our own":
        return context_in(tmp_path, PATH="/nowhere")
    program("rg")
    return context_in(tmp_path)


async def test_lines_are_found_in_files(searching: ToolContext) -> None:
    root = searching.cwd
    (root / "sub").mkdir()
    (root / ".git").mkdir()
    (root / "a.py").write_text("import os\nx = os.path(1)\nx.y\n")
    (root / "sub" / "b.txt").write_text("OS here\n\nos.path(2) os.path(3)")
    (root / ".git" / "config").write_text("os.path")
    (root / ".hidden").write_text("os.path in it\n")
    (root / "binary").write_bytes(b"\0os.path(\n")
    (root / "link").symlink_to("a.py")
    assert await said(searching, "search", pattern="os.path(") == (
        "a.py:2:x = os.path(1)\nsub/b.txt:3:os.path(2) os.path(3)"
    )
    assert await said(searching, "search", pattern="^os", regex=True, ignore_case=True) == (
        "sub/b.txt:1:OS here\nsub/b.txt:3:os.path(2) os.path(3)"
    )
    assert await said(searching, "search", pattern="os", glob="*.py", path=".") == (
        "a.py:1:import os\na.py:2:x = os.path(1)"
    )
    assert await said(searching, "search", pattern="OS", path="sub/b.txt") == "sub/b.txt:1:OS here"
    assert "[no matches]" in await said(searching, "search", pattern="-zzz")
    assert (await said(searching, "search", pattern="os", max_matches=1)).endswith(
        "\n[the first 1 matches; narrow the search for more]"
    )
    assert "regular expression" in await refused(searching, "search", pattern="(", regex=True)
    assert "outside" in await refused(searching, "search", pattern="x", path="..")
    assert "No such" in await refused(searching, "search", pattern="x", path="missing")


async def test_a_match_is_within_one_line_although_white_space_spans_several(
    searching: ToolContext,
) -> None:
    (searching.cwd / "f").write_text("a\n\n\n  def f\n\nend\n\ndef g\n")
    found = await said(searching, "search", pattern=r"^\s*def", regex=True)
    assert found == "f:4:  def f\nf:8:def g"
    assert "no matches" in await said(searching, "search", pattern=r"a\s+def", regex=True)
    assert await said(searching, "search", pattern=r"^$", regex=True) == "f:2:\nf:3:\nf:5:\nf:7:"
    every = await said(searching, "search", pattern=r"[^x]*", regex=True)
    assert len(every.splitlines()) == 8


@given(
    st.lists(st.text(alphabet="ab \t", max_size=3), max_size=8).map("\n".join),
    st.sampled_from(
        [r"^\s*a", r"a\s*$", r"\s", r"a[^b]*", r"^$", r"a|b", r"\ba", r"(?s)a.*b", r""]
    ),
)
def test_the_lines_found_are_those_that_match_by_themselves(text: str, source: str) -> None:
    pattern = line_pattern(source, regex=True)
    expected = [
        (number, line) for number, line in enumerate(lines_of(text)) if pattern.search(line)
    ]
    assert list(matching_lines(pattern, text)) == expected


async def test_files_that_need_a_question_to_read_are_searched_only_if_named(
    searching: ToolContext,
) -> None:
    root = searching.cwd
    for name in (".env", "server.pem", ".cache/x", "sub/.npmrc", "a/credentials.json", "plain"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("needle\n")
    assert await said(searching, "search", pattern="needle") == "plain:1:needle"
    for named in (".env", "server.pem"):
        found = await said(searching, "search", pattern="needle", path=named)
        assert found == f"{named}:1:needle"
    assert await said(searching, "search", pattern="needle", path=".cache") == ".cache/x:1:needle"


async def test_a_project_directory_named_like_a_system_directory_is_searched(
    searching: ToolContext,
) -> None:
    for name in ("dev/x", "proc/x", "etc/shadow"):
        (searching.cwd / name).parent.mkdir()
        (searching.cwd / name).write_text("needle\n")
    found = await said(searching, "search", pattern="needle")
    assert found.splitlines() == ["dev/x:1:needle", "etc/shadow:1:needle", "proc/x:1:needle"]


async def test_a_pipe_is_not_searched(searching: ToolContext) -> None:
    os.mkfifo(searching.cwd / "pipe")
    assert "neither" in await refused(searching, "search", pattern="x", path="pipe")
    assert "no matches" in await said(searching, "search", pattern="x")


async def test_matches_in_a_directory_that_became_a_link_are_discarded(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, program: Callable[[str], str]
) -> None:
    program("rg")
    root = context.cwd
    for name in ("d", ".hidden"):
        (root / name).mkdir()
        (root / name / "f").write_text(f"needle in {name}\n")
    (root / "g").write_text("needle in g\n")
    run = searching_tool.command_runner.run_command

    async def after_a_change(*argv: Any, **more: Any) -> Any:
        (root / "d").rename(root / "was")
        (root / "d").symlink_to(".hidden")
        return await run(*argv, **more)

    monkeypatch.setattr(searching_tool.command_runner, "run_command", after_a_change)
    assert "became a link" in await refused(context, "search", pattern="needle", path="d")
    # A single file is searched in Python, which follows no link.
    assert await said(context, "search", pattern="needle", path="g") == "g:1:needle in g"
    assert "[no matches]" in await said(context, "search", pattern="x", path="g")


async def test_a_link_that_leads_out_is_not_searched(searching: ToolContext) -> None:
    (searching.cwd.parent / "secret").write_text("needle")
    (searching.cwd / "out").symlink_to(searching.cwd.parent)
    assert "no matches" in await said(searching, "search", pattern="needle")
    assert "outside" in await refused(searching, "search", pattern="needle", path="out/secret")


async def test_a_search_does_not_run_a_program_named_in_a_configuration_file(
    tmp_path: Path, program: Callable[[str], str]
) -> None:
    program("rg")
    configuration = tmp_path / "rc"
    configuration.write_text(f"--pre=touch {tmp_path / 'ran'}\n--files\n")
    context = context_in(tmp_path, RIPGREP_CONFIG_PATH=str(configuration))
    (context.cwd / "f").write_text("x")
    assert await said(context, "search", pattern="x") == "f:1:x"


# shell


async def test_a_command_returns_its_output_and_exit_status(
    context: ToolContext,
) -> None:
    assert await said(context, "shell", command="echo hello") == "hello"
    assert await said(context, "shell", command="true") == "[no output]"
    both = await refused(context, "shell", command="echo out; echo err >&2; exit 3")
    assert both == "out\n[stderr]\nerr\n[exit code 3]"
    assert "SIGKILL" in await refused(context, "shell", command="kill -9 $$")
    assert "outside" in await refused(context, "shell", command="pwd", cwd="/")
    assert "empty" in await refused(context, "shell", command=" ")


async def test_a_long_output_is_cached(context: ToolContext) -> None:
    result = await call(context, "shell", command="seq 1000; echo password=hunter22")
    assert "...[841 lines omitted]..." in result.text
    assert "hunter22" not in result.text, "text for a model contains no secrets"
    ref_id = result.details["stdout_cache_id"]
    found = await said(context, "tool_output_cache", ref_id=ref_id, offset=499, limit=1)
    assert found.startswith("  499  500\n")


async def test_a_command_of_the_agent_has_no_keys(tmp_path: Path) -> None:
    secrets = {
        "OPENAI_API_KEY": "x",
        "GH_TOKEN": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "PGPASSWORD": "x",
        "DATABASE_URL": "postgres://me:hunter22@db/x",
        "INNOCENT": "ghp_" + "a" * 36,
        "BASH_ENV": str(tmp_path / "startup"),
        "BASH_FUNC_ls%%": "() { echo fooled; }",
    }
    (tmp_path / "startup").write_text("echo fooled")
    context = context_in(tmp_path, **secrets, EDITOR="vi", SHELL="/no/such")
    told = await said(context, "shell", command="env | sed 's/=.*//'; ls")
    assert not set(secrets) & set(told.split())
    assert {"EDITOR", "PATH", "HOME", "PWD"} <= set(told.split())
    assert "fooled" not in told


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "KEYBOARD", "SSH_AUTH_SOCK", "MONKEY", "PATH"])
def test_a_variable_that_only_looks_like_a_secret_stays(name: str) -> None:
    assert name in agent_environment({name: "/x"}, Redactor())


async def test_a_cancelled_tool_kills_its_processes(context: ToolContext) -> None:
    os.mkfifo(context.cwd / "begun")
    command = "sleep 60 & echo $! > begun; wait"
    task = asyncio.ensure_future(call(context, "shell", command=command))
    pid = int(await asyncio.to_thread((context.cwd / "begun").read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pid)


async def test_a_write_that_was_cancelled_before_it_began_is_not_made(context: ToolContext) -> None:
    free = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, free.wait)
    task = asyncio.ensure_future(call(context, "write", file_path="f", content="x"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await busy
    assert os.listdir(context.cwd) == []


async def test_a_cancellation_signals_its_thread_and_waits_for_it() -> None:
    begun, done = threading.Event(), []

    def work(unwanted: threading.Event) -> None:
        begun.set()
        done.append(unwanted.wait(60))

    task = asyncio.ensure_future(run_in_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]


# todo


async def test_a_todo_list_can_be_read_and_changed(context: ToolContext) -> None:
    new = [{"content": "one", "status": "in_progress"}, {"content": "two", "priority": 1}]
    assert await said(context, "todo", action="new", entries=new) == "1. [>] one\n2. [ ] two"
    second = {"id": 2, "status": "in_progress"}
    assert "at most one" in await refused(context, "todo", action="patch", changes=[second])
    assert await said(context, "todo", action="read") == "1. [>] one\n2. [ ] two"
    first = {"id": 1, "status": "completed"}
    changed = await call(context, "todo", action="patch", changes=[second, first])
    assert changed.text == "1. [x] one\n2. [>] two"
    assert changed.details["todos"][1] == {
        "id": 2,
        "content": "two",
        "status": "in_progress",
        "priority": 1,
    }
    assert "no entry 9" in await refused(context, "todo", action="patch", changes=[{"id": 9}])
    appended = await said(context, "todo", action="append", entries=[{"content": "three"}])
    assert appended.endswith("\n3. [ ] three")
    assert "at least one" in await refused(context, "todo", action="append")
    many = [{"content": "x"}] * 201
    assert "at most 200" in await refused(context, "todo", action="new", entries=many)
    assert await said(context, "todo", action="clear") == "[nothing to do]"
