"""A rule that allows one command of a text does not weaken the protection of the others."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, cast

import pytest

from agent.working import TOOLS, context_in
from telex.agent.permissions import Mode, Permission, RuleLayer, ToolRule
from telex.agent.permissions.confirmation import (
    AllowedCall,
    Confirmer,
    ConfirmQuestion,
    RefusedCall,
)
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions

if TYPE_CHECKING:
    from pathlib import Path

    from telex.agent.store import Store
    from telex.agent.tools.tool import ToolContext

NOTHING_REMEMBERED = RememberedAnswers(cast("Store", None))
SECRET = "opensesame"


async def said(context: ToolContext, home: Path, text: str, *rules: ToolRule) -> str | RefusedCall:
    permissions = WorkspacePermissions(
        *(str(context.sandbox.root), str(home), NOTHING_REMEMBERED, Mode.MINIMAL),
        [RuleLayer("user", rules)],
        trusted=True,
    )
    confirmer = Confirmer(permissions)
    call = TOOLS.prepare("shell", {"command": text})
    found = await confirmer.confirm(call, context)
    if isinstance(found, ConfirmQuestion):
        found = await confirmer.settle(found, None)
    if isinstance(found, RefusedCall):
        return found
    assert isinstance(found, AllowedCall), found
    return (await found.call.run(found.context)).text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ls; rg opens", ToolRule(Permission.ALLOW, "shell", command=("ls",))),
        (
            "mkdir new; rg opens",
            ToolRule(Permission.ALLOW, "shell", command=("mkdir",), plain=True),
        ),
        ("echo a > out/x; rg opens", ToolRule(Permission.ALLOW, "write", path="out/**")),
        ("cat README.md; rg opens", ToolRule(Permission.ALLOW, "read", path="README.md")),
        ("rg opens docs", ToolRule(Permission.ALLOW, "read", path="docs/**")),
        (
            "cat README.md | rg -v zzz; rg opens",
            ToolRule(Permission.ALLOW, "read", path="README.md"),
        ),
    ],
)
async def test_a_rule_for_another_command_does_not_make_rg_print_hidden_files(
    tmp_path: Path, text: str, rule: ToolRule
) -> None:
    context = context_in(tmp_path)
    root = context.sandbox.root
    for directory in (root, root / "docs"):
        directory.mkdir(exist_ok=True)
        (directory / ".env").write_text(f"{SECRET}\n")
        (directory / ".ignore").write_text("!.env\n")
    (root / "out").mkdir()
    (root / "README.md").write_text("read me\n")
    found = await said(context, tmp_path / "home", text, rule)
    assert isinstance(found, str), found
    assert SECRET not in found


def with_a_hook(root: Path) -> None:
    """Create a repository with a hook that `git status` runs."""
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / "a").write_text("a\n")
    subprocess.run(["git", "add", "a"], cwd=root, check=True)
    hook = root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {root}/hooked\n")
    hook.chmod(0o755)
    (root / "a").write_text("a\n")


async def test_a_rule_for_another_command_does_not_make_git_run_hooks(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root, home = context.sandbox.root, tmp_path / "home"
    with_a_hook(root)
    rule = ToolRule(Permission.ALLOW, "shell", command=("ls",))
    assert isinstance(await said(context, home, "ls; git status", rule), str)
    assert not (root / "hooked").exists()
    # With a rule for git itself, the hook runs.
    alone = ToolRule(Permission.ALLOW, "shell", command=("git", "status"))
    assert isinstance(await said(context, home, "git status", alone), str)
    assert (root / "hooked").exists()


async def test_a_line_that_needs_two_environments_asks(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    with_a_hook(context.sandbox.root)
    rule = ToolRule(Permission.ALLOW, "shell", command=("npm", "test"))
    found = await said(context, tmp_path / "home", "npm test --version; git status", rule)
    assert isinstance(found, RefusedCall)
    assert '"git status" runs in a restricted environment, and "npm test --ver' in found.why
    assert not (context.sandbox.root / "hooked").exists()
