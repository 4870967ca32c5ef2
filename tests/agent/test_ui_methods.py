"""Files, artifacts, history and undo for UIs: what is shown, refused and restored."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.ui_side import ALL, an_agent
from telex.agent.content_store import ContentStore
from telex.agent.ignore_rules import IgnoreRules
from telex.agent.protocol.extensions import (
    WorkspaceListParams,
    WorkspaceListResult,
    WorkspaceReadParams,
)
from telex.agent.sandbox_files import FileRefused, OutsideSandbox, Sandbox, sha256_hex
from telex.agent.undo import CannotUndo, FileChange, RunChanges
from telex.agent.workspace_files import list_page, read_page
from telex.redaction import Redactor
from telex.wire.limits import MIB

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "work"
    made.mkdir()
    return made


def listed(root: Path, **params: Any) -> WorkspaceListResult:
    return list_page(Sandbox(root), root, WorkspaceListParams(**params), threading.Event())


def paths(root: Path, **params: Any) -> list[str]:
    return [entry.path for entry in listed(root, **params).entries]


def put(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_a_listing_leaves_out_what_git_ignores_unless_it_is_asked_for(root: Path) -> None:
    put(root, _gitignore="*.log\n/build/\n!keep.log\n", a_py="", a_log="", keep_log="")
    put(root, build__x_o="", sub__build__y_o="")
    assert paths(root) == [".gitignore", "a.py", "keep.log", "sub"]
    assert paths(root, recursive=True) == [
        ".gitignore",
        "a.py",
        "keep.log",
        "sub",
        "sub/build",
        "sub/build/y.o",
    ]
    everything = listed(root, include_ignored=True).entries
    assert {entry.path for entry in everything if entry.ignored} == {"a.log", "build"}


@pytest.mark.parametrize(
    "rules",
    [
        {"": "*.o\n!b.o\n", "d": "b.o\n"},
        {"": "d/\n", "d": "!a.o\n"},
        {"": "/d/*\n!/d/e\n"},
        {"": "**/e\n# c\n\\#x\n", "d": "!e\n"},
        {"": "a[\n[z-a]\nb.?\n"},
        {"": "d/**/c.o\nx \n"},
        {"": "*\n!*/\n!*.o\n"},
        {"d": "/a.o\ne/\n"},
    ],
)
def test_ignored_files_are_those_that_git_ignores(root: Path, rules: dict[str, str]) -> None:
    names = ["a.o", "b.o", "x", "#x", "d/a.o", "d/b.o", "d/e/c.o", "d/e/e/c.o", "d/f/c.o"]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for directory, text in rules.items():
        (root / directory / ".gitignore").write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    command = ["git", "check-ignore", "--no-index", "--stdin"]
    said = subprocess.run(
        command, cwd=root, input="\n".join(names), capture_output=True, text=True, check=False
    )
    ours = IgnoreRules(Sandbox(root))
    mine = {name for name in names if ours.ignores(name, is_directory=False)}
    assert mine == {line.strip('"') for line in said.stdout.splitlines()}


def test_pages_of_a_listing_are_the_whole_listing(root: Path) -> None:
    for number in range(7):
        (root / f"f{number}").write_text("")
    seen, cursor = [], None
    while True:
        page = listed(root, limit=3, cursor=cursor)
        seen += [entry.path for entry in page.entries]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"f{number}" for number in range(7)]


def test_the_best_match_of_typed_characters_comes_first(root: Path) -> None:
    put(root, src__session_py="", docs__sessions_md="", tests__test_session_py="", a_txt="")
    assert paths(root, recursive=True, match="session") == [
        "src/session.py",
        "docs/sessions.md",
        "tests/test.session.py",
    ]
    assert paths(root, recursive=True, match="srcpy") == ["src/session.py"]
    assert paths(root, recursive=True, match="zz") == []


def test_nothing_outside_the_root_is_listed_or_read(root: Path) -> None:
    (root.parent / "outside").write_text("x")
    (root / "link").symlink_to("../outside")
    assert [(entry.path, entry.kind) for entry in listed(root).entries] == [("link", "link")]
    for path in ("..", "/etc", "link/.."):
        with pytest.raises(OutsideSandbox):
            listed(root, path=path)
    for path in ("link", "/etc/hostname", "../outside"):
        with pytest.raises(OutsideSandbox):
            read_page(Sandbox(root), root, WorkspaceReadParams(path), Redactor())


def test_a_file_is_read_in_pages_an_image_whole_and_of_a_binary_its_size(root: Path) -> None:
    (root / "t").write_text("one\ntwo\nthree")
    (root / "i.png").write_bytes(PNG)
    (root / "b").write_bytes(b"a\0b")
    (root / "e").write_text("")

    def read(path: str, **more: Any) -> Any:
        return read_page(Sandbox(root), root, WorkspaceReadParams(path, **more), Redactor())

    first = read("t", limit=2)
    assert (first.text, first.lines, first.next_offset) == ("one\ntwo\n", 3, 2)
    last = read("t", offset=2)
    assert (last.text, last.next_offset) == ("three", None)
    assert (read("i.png").kind, read("i.png").media_type) == ("image", "image/png")
    assert (read("b").kind, read("b").text, read("b").size) == ("binary", None, 3)
    assert (read("e").text, read("e").lines) == ("", 0)
    with pytest.raises(FileRefused, match="is a directory"):
        read(".")


def test_secrets_in_a_file_are_masked_unless_the_ui_asks_otherwise(root: Path) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    (root / "t").write_text(f"token {token}\n")
    for redact in (True, False):
        params = WorkspaceReadParams("t", redact=redact)
        page = read_page(Sandbox(root), root, params, Redactor())
        assert (token in (page.text or "")) is not redact


def test_an_undo_restores_all_files_or_none(root: Path) -> None:
    sandbox, versions = Sandbox(root), ContentStore(root.parent / "versions", MIB)
    (root / "a").write_bytes(b"new")
    (root / "made").write_bytes(b"made")
    versions.save(b"old")
    changes = RunChanges.of(
        [
            FileChange("a", sha256_hex(b"old"), sha256_hex(b"middle")),
            FileChange("made", "", sha256_hex(b"made")),
            FileChange("a", sha256_hex(b"middle"), sha256_hex(b"new")),
            FileChange("same", sha256_hex(b"x"), sha256_hex(b"x")),
        ]
    )
    (root / "made").write_bytes(b"changed by hand")
    with pytest.raises(CannotUndo, match="made was changed since"):
        changes.undo(sandbox, versions, dry_run=False)
    assert (root / "a").read_bytes() == b"new"
    (root / "made").write_bytes(b"made")
    tried = changes.undo(sandbox, versions, dry_run=True)
    assert [(file.path, file.action) for file in tried] == [("a", "restored"), ("made", "deleted")]
    assert (root / "a").read_bytes() == b"new"
    changes.undo(sandbox, versions, dry_run=False)
    assert (root / "a").read_bytes() == b"old"
    assert not (root / "made").exists()


def test_an_undo_is_refused_where_an_old_content_is_gone(root: Path) -> None:
    sandbox, versions = Sandbox(root), ContentStore(root.parent / "versions", 4)
    versions.save(b"old")
    versions.save(b"more")
    (root / "a").write_bytes(b"new")
    changes = RunChanges.of([FileChange("a", sha256_hex(b"old"), sha256_hex(b"new"))])
    with pytest.raises(CannotUndo, match="not stored any more"):
        changes.undo(sandbox, versions, dry_run=False)


async def test_undo_goes_back_run_by_run_and_says_when_nothing_is_left(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent:
        ui = await agent.connect(**ALL)
        for text in ("one", "two"):
            run_id = await ui.start(f"write a.txt: {text}")
            assert await ui.until_ended(run_id) == "completed"
        (session,) = (await ui.call("session.list"))["sessions"]
        asked, file = {"session_id": session["session_id"]}, agent.root / "a.txt"
        for content in ("two", "one"):
            assert file.read_text().strip() == content
            file.write_text("by hand")
            assert "was changed since" in str(await ui.refusal("history.undo", asked))
            file.write_text(content)
            undone = await ui.call("history.undo", asked)
            assert "are undone already" in str(
                await ui.refusal("history.undo", {**asked, "run_id": undone["run_id"]})
            )
        assert not file.exists()
        refused = await ui.refusal("history.undo", asked)
        assert "no changes of files that can be undone" in str(refused)


async def test_an_artifact_is_read_in_parts_between_characters(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        cache = (await agent.workspace()).context.cache
        whole = "aé日😀" * 20
        cache.save("long", whole)
        text, offset = "", 0
        while offset is not None:
            part = await ui.call(
                "artifact.read", {"artifact_id": "long", "offset": offset, "limit": 5}
            )
            text, offset = text + part["text"], part.get("next_offset")
        assert text == whole
        for artifact, said in (("none", "there is no output"), ("../x", "not a valid output id")):
            refused = await ui.refusal("artifact.read", {"artifact_id": artifact})
            assert said in str(refused)


async def test_an_export_as_markdown_has_the_conversation_in_order(tmp_path: Path) -> None:
    async with an_agent(tmp_path, mode="trusted") as agent:
        ui = await agent.connect(**ALL)
        await ui.until_ended(await ui.start("write a.md: ```` fence"))
        (session,) = (await ui.call("session.list"))["sessions"]
        asked = {"session_id": session["session_id"]}
        exported = await ui.call("history.export", asked)
        text = (await ui.call("artifact.read", {"artifact_id": exported["artifact_id"]}))["text"]
        assert text.index("## You") < text.index("**write**") < text.index("a.md created")
        assert "\n`````" in text  # the fence is longer than the one in the text
        lines = await ui.call("history.export", {**asked, "format": "ndjson"})
        read = await ui.call("artifact.read", {"artifact_id": lines["artifact_id"]})
        assert read["text"].startswith('{"type":"telex.agent.export"')


async def test_a_missing_file_is_named_as_the_ui_named_it(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)
        for method, more in (("list", {}), ("read", {}), ("search", {"pattern": "x"})):
            refused = await ui.refusal(f"workspace.{method}", {"path": "no/where", **more})
            assert refused.code == -32602
            assert "no/where: No such file or directory" in refused.message
