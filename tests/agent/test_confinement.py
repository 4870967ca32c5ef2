"""The kernel sandbox confines commands that run without a question, also if the judge was wrong."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from agent.ui_side import ALL, an_agent
from agent.working import TOOLS, context_in
from telex.agent.command_runner import CommandResult, run_command
from telex.agent.permissions import Judge, Mode, Permission, PermissionRequest, RuleLayer, ToolRule
from telex.agent.permissions.confinement import (
    confinement,
    describe_confinement,
    git_read_paths,
    was_refused_by_kernel,
    without_service_sockets,
)
from telex.agent.permissions.confirmation import (
    AllowedCall,
    Confirmer,
    ConfirmQuestion,
    FailedCall,
    RefusedCall,
)
from telex.agent.permissions.read_only_programs import READERS
from telex.agent.permissions.workspace_permissions import RememberedAnswers, WorkspacePermissions
from telex.agent.protocol.ui_requests import UiConfirmResult
from telex.agent.questions import UiAnswer
from telex.processes.sandbox import Kernel, asked_kernel
from telex.processes.syscall_filter import Sockets

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.agent.permissions import Judgement
    from telex.agent.store import Store
    from telex.agent.tools.tool import ToolContext, ToolResult
    from telex.processes.sandbox import Confinement

KERNEL = asked_kernel()
pytestmark = pytest.mark.skipif(
    not (KERNEL.landlock and KERNEL.machine), reason="this kernel has no Landlock, or no filters"
)
NOTHING_REMEMBERED = RememberedAnswers(cast("Store", None))
"""The tests remember no answer, so no store is needed."""
STOPPED = "by the kernel's sandbox"


@dataclass
class Workspace:
    """A root, a home next to it, and the answer to questions."""

    context: ToolContext
    home: Path
    trusted: bool = True
    rules: tuple[ToolRule, ...] = ()
    kernel: Kernel | None = None
    answer: bool | None = None
    """The answer to every question; None if no user can be asked."""
    questions: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.context.sandbox.root

    def permissions(self, mode: str) -> WorkspacePermissions:
        layers = [RuleLayer("user", self.rules)]
        return WorkspacePermissions(
            *(str(self.root), str(self.home), NOTHING_REMEMBERED, Mode(mode), layers),
            trusted=self.trusted,
        )

    async def confirm(
        self, text: str, mode: str = "minimal", tool: str = "shell", **more: object
    ) -> AllowedCall | RefusedCall | FailedCall:
        arguments = {"command": text, **more} if tool == "shell" else {"pattern": text, **more}
        confirmer = Confirmer(self.permissions(mode), self.kernel)
        found = await confirmer.confirm(TOOLS.prepare(tool, arguments), self.context)
        if isinstance(found, ConfirmQuestion):
            return await confirmer.settle(found, self._ask(found))
        return found

    async def confined(self, text: str, mode: str = "minimal", **more: Any) -> Confinement | None:
        found = await self.confirm(text, mode, **more)
        assert isinstance(found, AllowedCall), found
        return found.context.confinement

    async def run(self, text: str, mode: str = "minimal", **more: Any) -> ToolResult:
        found = await self.confirm(text, mode, **more)
        assert isinstance(found, AllowedCall), found
        return await found.call.run(found.context)

    def _ask(self, question: ConfirmQuestion) -> UiAnswer | None:
        self.questions.append(question.params.message)
        if self.answer is None:
            return None
        return UiAnswer(UiConfirmResult(ok=self.answer), question.digest, "q1", "test")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    home = Path(os.path.realpath(tmp_path)) / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("a secret\n")
    context = context_in(tmp_path, HOME=str(home))
    (context.sandbox.root / "here").write_text("inside\n")
    return Workspace(context, home)


@pytest.fixture
def credulous(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that allows everything, as if it had every possible hole."""
    judge = Judge.judge

    def judged(self: Judge, request: PermissionRequest) -> Judgement:
        found = judge(self, request)
        return replace(found, decision=Permission.ALLOW, rule=None, not_understood=None)

    monkeypatch.setattr(Judge, "judge", judged)


def python(code: str) -> str:
    return f"{sys.executable} -I -S -c '{code}'"


LEAKS = {
    "a link": "cat link",
    "a magic link": "cd src && cat ../l/x",
    "a magic link to the root": "cat r$HOME/.ssh/id_rsa",
    "the home": "cat ~/.ssh/id_rsa",
    "a file of another process": f"cat /proc/{os.getpid()}/environ",
    "the root of another process": f"cat /proc/{os.getpid()}/root$HOME/.ssh/id_rsa",
    "a listing": "ls ~/.ssh",
    "a secret of the system": "cat /etc/shadow",
    "a shell in a shell": "sh -c 'exec cat ~/.ssh/id_rsa'",
    "a copy": "cp ~/.ssh/id_rsa $TMPDIR/x",
    "a background process": "setsid cat ~/.ssh/id_rsa & wait",
    "another directory": "cd ~/.ssh && cat id_rsa",
}


@pytest.mark.usefixtures("credulous")
async def test_the_sandbox_refuses_reads_that_the_judge_missed(workspace: Workspace) -> None:
    root, secret = workspace.root, workspace.home / ".ssh" / "id_rsa"
    (root / "src").mkdir()
    (root / "link").symlink_to(secret)
    (root / "l").symlink_to("/proc/self/cwd")
    (root / "r").symlink_to("/proc/self/root")
    (root / "x").write_text("decoy")
    (root / "src" / "x").symlink_to(secret)
    for name, text in LEAKS.items():
        for mode in ("minimal", "trusted"):
            said = await workspace.run(text, mode)
            assert "a secret" not in said.text, name
            assert STOPPED in said.text, (name, said.text)
    # Without the sandbox the read succeeds, so the checks above prove something.
    workspace.kernel = Kernel(linux=False, landlock=0)
    assert (await workspace.run(LEAKS["a magic link"])).text == "a secret"


@pytest.mark.usefixtures("credulous")
async def test_the_sandbox_refuses_writes_that_the_judge_missed(workspace: Workspace) -> None:
    (workspace.root / ".git" / "hooks").mkdir(parents=True)
    (workspace.root / "docs").mkdir()
    writes = [
        *("echo x > new", "echo x >> here", "mkdir made", "rm here", "mv here there"),
        *("touch here", "chmod 777 here", "ln -s / link", "truncate -s 0 here"),
        *("echo x > .git/hooks/pre-commit", "echo x > ~/x", "echo x > ../x", "rm -rf ~/.ssh"),
    ]
    for text in writes:
        said = await workspace.run(text)
        assert said.is_error, text
        assert STOPPED in said.text, (text, said.text)
    # In mode trusted the command may write only the file that the judge found in its text.
    text = "echo x > docs/new; echo x > here; rm here; echo x > .git/hooks/h; echo x > ~/x"
    found = await workspace.run(text, "trusted")
    assert STOPPED in found.text
    assert sorted(path.name for path in workspace.root.rglob("*")) == [
        *(".git", "docs", "here", "hooks", "new"),
    ]
    assert (workspace.root / "here").read_text() == "x\n"
    assert sorted(path.name for path in workspace.home.rglob("*")) == [".ssh", "id_rsa"]


@pytest.mark.usefixtures("credulous")
async def test_the_sandbox_has_no_network_in_mode_minimal(workspace: Workspace) -> None:
    at = str(workspace.home / "agent")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind(at)
        named.listen()
        port = server.getsockname()[1]
        tcp = python(f'import _socket; _socket.socket().connect(("127.0.0.1", {port}))')
        udp = python("import _socket; _socket.socket(2, 2)")
        unix = python(f'import _socket; _socket.socket(1).connect("{at}")')
        for text in (tcp, udp, unix):
            said = await workspace.run(text)
            assert said.is_error
            assert STOPPED in said.text, said.text
        assert not (await workspace.run(tcp, "trusted")).is_error
        assert STOPPED in (await workspace.run(unix, "trusted")).text


SAMPLES = {
    "basename": "basename a/b",
    "dirname": "dirname a/b",
    "which": "which ls",
    "seq": "seq 3",
    "stat": "stat -c %n:%s a",
    "ls": "ls -l",
    "du": "du -a",
    "df": "true",  # tested alone below, because it reads its own data in /proc
    "cut": "cut -c1 a",
    "tr": "tr a b < a",
    "grep": "grep o a",
    "rg": "rg --sort=path o",
    "date": "date +%Y",
    "sed": "sed -n 1p a",
    "find": "find . -name a",
    "echo": "echo a",
    "comm": "comm a b",
    "cmp": "cmp a b",
    "diff": "diff a b",
    "paste": "paste a b",
    "git grep": "git grep o",
    "git blame": "git blame HEAD -- a",
    "git cat-file": "git cat-file -p HEAD:a",
    "git merge-base": "git merge-base HEAD HEAD",
    "git describe": "git describe --always --dirty",
    **{name: name for name in ("git remote", "git tag", "git reflog", "git stash list")},
    "git worktree list": "git worktree list",
}
TAKE_NOTHING = ("pwd", "whoami", "id", "uname", "hostname", "nproc", "arch")


def sample(reader: str) -> str:
    if reader in TAKE_NOTHING:
        return reader
    default = f"{reader} HEAD" if reader.startswith("git ") else f"{reader} a"
    return SAMPLES.get(reader, default)


def git(directory: Path, home: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    who = ("-c", "user.name=n", "-c", "user.email=e@x")
    argv = ["git", *who, "-C", str(directory), *words]
    return subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.usefixtures("credulous")
async def test_every_reader_works_the_same_in_the_sandbox(
    workspace: Workspace, program: Callable[[str], str]
) -> None:
    for name in ("git", "rg", "file", "hexdump"):
        program(name)
    root = workspace.root
    (root / "a").write_text("one\ntwo\n")
    (root / "b").write_text("one\nthree\n")
    git(root, workspace.home, "init", "-q")
    git(root, workspace.home, "add", "a")
    git(root, workspace.home, "commit", "-qm", "first")
    (root / "a").write_text("one\ntwo\nmore\n")
    texts = [f"echo '[{name}]'; {sample(name)} 2>&1; echo $?" for name in READERS]
    texts += ["sort -S 1M a b", "cat <<end\ntext\nend", "cat a | sort | uniq -c | head -1"]
    script = "\n".join(texts)
    allowed = await workspace.confirm(script)
    assert isinstance(allowed, AllowedCall)
    environment, confined = allowed.context.environment, allowed.context.confinement
    assert confined is not None
    walled, free = [
        await run_command(
            ["bash", "-c", script], env=environment, cwd=root, seconds=60, confinement=by
        )
        for by in (confined, None)
    ]
    assert walled.stdout.split("\n[") == free.stdout.split("\n[")
    assert (walled.stderr, walled.exit_code) == ("", 0)
    assert "denied" not in walled.stdout
    assert "[git log]\ncommit " in walled.stdout


async def test_df_alone_knows_its_file_system(workspace: Workspace) -> None:
    said = await workspace.run("df .")
    assert not said.is_error
    assert "denied" not in said.text


async def test_git_in_the_sandbox_reads_its_worktree_objects_and_settings(
    workspace: Workspace, program: Callable[[str], str]
) -> None:
    """A worktree of a repository that borrows its objects, with settings that include others. A
    rule allows reading the borrowed objects; without it git asks, and the sandbox gets no path."""
    program("git")
    home, away = workspace.home, workspace.home / "away"
    origin, main = away / "origin", away / "main"
    origin.mkdir(parents=True)
    git(origin, home, "init", "-q")
    (origin / "file").write_text("text\n")
    git(origin, home, "add", "file")
    git(origin, home, "commit", "-qm", "borrowed")
    git(away, home, "clone", "-q", "--shared", "origin", "main")
    shutil.rmtree(workspace.root)
    git(main, home, "worktree", "add", "-q", str(workspace.root))
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "config").write_text("[core]\n\texcludesFile = ~/ignored\n")
    (home / ".gitconfig").write_text('[include]\n\tpath = "more settings"\n')
    (home / "more settings").write_text("[status]\n\tshort = true\n")
    (home / "ignored").write_text("*.o\n")
    (workspace.root / "x.o").write_text("")
    (workspace.root / "new").write_text("")
    assert isinstance(await workspace.confirm("git status"), RefusedCall)
    lent = ToolRule(Permission.ALLOW, "read", path=f"{origin}/.git/**")
    workspace.rules = (lent,)
    assert (await workspace.run("git status")).text == "?? new"
    assert "borrowed" in (await workspace.run("git log -p")).text
    assert "text" in (await workspace.run("cat file")).text


async def test_an_invalid_repository_adds_no_path_to_the_sandbox(workspace: Workspace) -> None:
    (workspace.root / ".git").write_text(f"gitdir: {workspace.home}/.ssh\n")
    assert isinstance(await workspace.confirm("git status"), RefusedCall)
    paths = workspace.permissions("minimal").judge.paths
    assert not [place for place in git_read_paths(paths, {}) if ".ssh" in place]


COMMAND = ToolRule(Permission.ALLOW, "shell", command=("make",))
WHOLE = ToolRule(Permission.ALLOW, "shell")
EVERYTHING = ToolRule(Permission.ALLOW)
TEXT = ToolRule(Permission.ALLOW, "shell", text="cat here; make")
ELSEWHERE = ToolRule(Permission.ALLOW, "read", path="/elsewhere/**")


@pytest.mark.parametrize(
    ("text", "mode", "rules", "is_confined"),
    [
        ("cat here", "minimal", (), True),
        ("cat here", "trusted", (), True),
        ("cat here", "full", (), False),
        ("make", "full", (), False),
        ("make", "minimal", (COMMAND,), False),
        ("cat here; make", "trusted", (COMMAND,), False),
        ("cat here; make", "minimal", (TEXT,), False),
        ("cat here", "minimal", (COMMAND,), True),
        ("cat here", "minimal", (WHOLE,), False),
        ("make", "minimal", (WHOLE,), False),
        ("make", "minimal", (EVERYTHING,), False),
        ("cat here", "minimal", (ELSEWHERE,), True),
        ("cat here", "minimal", (ToolRule(Permission.ALLOW, "read"),), True),
        ("cat here", "minimal", (replace(WHOLE, cwd="/elsewhere"),), True),
    ],
)
async def test_commands_allowed_by_the_user_are_not_confined(
    workspace: Workspace, text: str, mode: str, rules: tuple[ToolRule, ...], is_confined: bool
) -> None:
    workspace.rules = rules
    assert ((await workspace.confined(text, mode)) is not None) is is_confined


async def test_an_approved_command_is_not_confined(workspace: Workspace) -> None:
    workspace.answer = True
    said = await workspace.run("cat ~/.ssh/id_rsa; echo x > new")
    assert (said.text, said.details["kernel_sandbox"]) == ("a secret", False)
    assert (workspace.root / "new").read_text() == "x\n"


async def test_a_path_rule_adds_only_its_paths_to_the_sandbox(
    workspace: Workspace, tmp_path: Path
) -> None:
    shared = Path(os.path.realpath(tmp_path)) / "shared"
    shared.mkdir()
    (shared / "data").write_text("shared\n")
    workspace.rules = (
        ToolRule(Permission.ALLOW, "read", path=f"{shared}/**"),
        ToolRule(Permission.ALLOW, "write", path="out/**"),
    )
    (workspace.root / "out").mkdir()
    said = await workspace.run(f"cat here {shared}/data > out/new")
    assert not said.is_error, said.text
    assert (workspace.root / "out" / "new").read_text() == "inside\nshared\n"
    confined = await workspace.confined(f"cat {shared}/data")
    assert confined is not None
    assert str(shared / "data") in {rule.path for rule in confined.rules or ()}
    assert str(shared) not in {rule.path for rule in confined.rules or ()}
    assert confined.sockets is Sockets.NONE


async def test_a_request_to_leave_the_sandbox_asks(workspace: Workspace) -> None:
    refused = await workspace.confirm("cat here", outside_sandbox=True)
    assert isinstance(refused, RefusedCall)
    assert "outside the kernel sandbox" in refused.why
    workspace.answer = True
    said = await workspace.run("cat here", outside_sandbox=True)
    assert (said.text, said.details["kernel_sandbox"]) == ("inside", False)
    assert "outside_sandbox: true" in workspace.questions[-1]
    assert "outside the kernel sandbox" in workspace.questions[-1]
    assert "Remember" not in workspace.questions[-1]
    asked = len(workspace.questions)
    await workspace.run("cat here", "full", outside_sandbox=True)
    workspace.kernel = Kernel(linux=False, landlock=0)
    await workspace.run("cat here", outside_sandbox=True)
    assert len(workspace.questions) == asked


@pytest.mark.usefixtures("credulous")
async def test_a_refused_command_reports_the_sandbox_and_the_way_out(
    workspace: Workspace,
) -> None:
    fine = await workspace.run("cat here")
    assert (fine.text, fine.details["kernel_sandbox"]) == ("inside", True)
    missing = await workspace.run("cat gone")
    assert "so it reads" in missing.text
    assert STOPPED not in missing.text
    none = await workspace.run("grep nothing here")
    assert none.text == "[no output]\n[exit code 1]"
    stopped = await workspace.run("cat ~/.ssh/id_rsa | head -1")
    assert STOPPED in stopped.text
    assert f"reads {workspace.root} and the system's programs, writes only temp" in stopped.text
    assert "no network" in stopped.text
    assert '"outside_sandbox": true' in stopped.text


async def test_the_search_tool_is_confined(
    workspace: Workspace, program: Callable[[str], str]
) -> None:
    program("rg")
    assert (await workspace.run("inside", tool="search")).text == "here:1:inside"
    assert (await workspace.confined("inside", tool="search")) is not None
    assert (await workspace.confined("inside", "full", tool="search")) is None


async def test_tools_that_run_no_program_are_not_confined(workspace: Workspace) -> None:
    judge = workspace.permissions("minimal").judge
    judged = judge.judge(PermissionRequest("read", {"path": "here"}, str(workspace.root)))
    assert judged.decision is Permission.ALLOW
    assert confinement(judged, judge, "read", {}) is None


async def test_the_description_claims_only_restrictions_that_the_kernel_supports(
    workspace: Workspace,
) -> None:
    async def said(kernel: Kernel, mode: str = "minimal") -> str:
        workspace.kernel = kernel
        confined = await workspace.confined("cat here", mode)
        assert confined is not None
        return describe_confinement(confined, workspace.root).rpartition(", and has ")[2]

    assert await said(KERNEL) == "no network"
    assert await said(KERNEL, "trusted") == "no local sockets"
    assert await said(Kernel(linux=True, landlock=4)) == "no TCP"
    assert await said(Kernel(linux=True, landlock=4), "trusted") == "your network"
    assert await said(Kernel(linux=True, landlock=3)) == "your network"


async def test_a_kernel_without_landlock_still_closes_the_network(workspace: Workspace) -> None:
    workspace.kernel = replace(KERNEL, landlock=0)
    confined = await workspace.confined("cat here")
    assert confined is not None
    assert (
        describe_confinement(confined, workspace.root)
        == "reads and writes the same files as you, and has no network"
    )
    assert (await workspace.run("cat here")).text == "inside"


async def test_programs_in_a_home_do_not_open_the_whole_home(
    workspace: Workspace, tmp_path: Path
) -> None:
    home = workspace.home
    for place in (".cargo/bin", ".local/bin", ".local/lib", ".local/share", ".tool/shims", "bin"):
        (home / place).mkdir(parents=True)
    (home / ".tool" / "versions").mkdir()
    shutil.copy("/bin/cat", home / ".local" / "lib" / "cat")
    (home / ".local" / "bin" / "cat").symlink_to("../lib/cat")
    path = f"{home}/.cargo/bin:{home}/.local/bin:{home}/.tool/shims:{home}/bin:{home}:/:/bin"
    workspace.context = replace(
        workspace.context, environment={**workspace.context.environment, "PATH": path}
    )
    assert (await workspace.run("cat here")).text == "inside"
    confined = await workspace.confined("cat here")
    assert confined is not None
    own = {rule.path for rule in confined.rules or () if rule.path.startswith(str(home))}
    below = (".cargo/bin", ".local/bin", ".local/lib", ".tool/shims", ".tool", "bin")
    assert own == {str(home / place) for place in below}
    assert "/" not in {rule.path for rule in confined.rules or ()}


def test_service_sockets_are_removed_from_the_environment() -> None:
    doors = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "DISPLAY")
    assert without_service_sockets({**dict.fromkeys(doors, "x"), "PATH": "/bin"}) == {
        "PATH": "/bin"
    }


def test_a_refusal_is_recognised_in_the_language_of_the_environment(tmp_path: Path) -> None:
    place = tmp_path / "de" / "LC_MESSAGES"
    place.mkdir(parents=True)
    original, said = b"Permission denied", b"Keine Berechtigung"
    header = struct.pack("<7I", 0x950412DE, 0, 1, 28, 36, 0, 0)
    where = struct.pack("<4I", len(original), 44, len(said), 44 + len(original) + 1)
    (place / "libc.mo").write_bytes(header + where + original + b"\0" + said + b"\0")

    def refused(stdout: str, stderr: str, code: int, signal: str | None = None) -> bool:
        ran = CommandResult(
            stdout, stderr, code, signal, timed_out=False, overflowed=False, duration_ms=1
        )
        return was_refused_by_kernel(ran, {"LANG": "de_DE.UTF-8"}, str(tmp_path))

    assert refused("", "cat: x: Keine Berechtigung\n", 1)
    assert refused("", "cat: x: Permission denied\n", 0)
    assert refused("cat: x: Operation not permitted\n", "", 1)
    assert refused("", "", 0, "SIGSYS")
    assert not refused("Keine Berechtigung\n", "", 0)
    assert not refused("", "cat: x: No such file or directory\n", 1)


async def test_permission_explain_describes_the_sandbox(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as agent:
        ui = await agent.connect(**ALL)

        async def explained(**arguments: object) -> Any:
            params = {"tool": "shell", "arguments": arguments}
            return await ui.call("permission.explain", params)

        (agent.root / "a").write_text("a")
        said = await explained(command="cat a")
        assert said["decision"] == "allow"
        assert said["details"]["kernel_sandbox"].startswith(f"it reads {agent.root} and")
        asked = await explained(command="cat a", outside_sandbox=True)
        assert (asked["decision"], asked["details"]["kernel_sandbox"]) == ("ask", None)
        called = await ui.call("tool.call", {"name": "shell", "arguments": {"command": "cat a"}})
        assert called["result"]["kernel_sandbox"] is True
