"""The scopes that are offered to be remembered cover exactly what they describe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from permission_world import FILES, ROOT, WORLD, cases, judge_of, request_of, shell
from telex.agent.permissions import (
    DiskLookup,
    InvalidRule,
    Judge,
    Mode,
    Permission,
    PermissionRequest,
    RuleLayer,
    ToolRule,
    rule_to_table,
    rules_from_tables,
)
from telex.agent.permissions.read_only_programs import READERS
from telex.agent.permissions.repeatable import (
    BY_FIRST_WORDS,
    FILE_CHANGING_PROGRAMS,
    REMEMBERED_LAYER,
    RememberScope,
    ScopeKind,
)

if TYPE_CHECKING:
    from pathlib import Path

MINIMAL = judge_of({})
RUNNING = """
    . R Rscript act ansible ansible-playbook ant apk apt apt-get aria2c artisan asdf ash at
    ava awk bash batch bazel bazelisk bc behave bmake brew buck buck2 builtin bun bundle
    bundler bunx busybox bwrap cabal caffeinate capsh cargo choom chroot chrt clj clojure
    cmake command composer conda corepack coverage crontab crystal csh ctest curl cypress dart
    dash dbus-run-session dc deno direnv dnf doas docker doit dotnet dune ed elixir emacs entr
    env erl esbuild eslint eval ex exec expect fab fakeroot fetch find firejail fish flake8
    flock flutter foreman ftp gawk gcc gdb gem ghci git gmake go gradle gradlew groovy grunt
    gtimeout guile guix gulp hatch helm honcho http httpie https hugo iex install inv invoke
    ionice ipython irb java jekyll jest jq jshell julia just karma kotlin ksh kubectl latexmk
    ld.so lein lerna less lftp links linux64 lksh ltrace lua luajit lualatex lynx m4 mage make
    mamba man mawk meson mill mise mix mkdocs mksh mocha more mosh mvn mvnw mypy mysql nawk nc
    ncat netcat nice nimble ninja nix nix-build nix-shell node nodejs nodemon nohup nox npm
    npx nsenter nvim nx ocaml opam osascript overmind pacman pants parallel parcel pdb3
    pdflatex pdm perl perl5.36-x86_64-linux-gnu php phpunit pip pip3 pipenv pipx pkexec
    playwright pm2 pnpm pnpx podman poetry pre-commit prettier prlimit proot psql pub pulumi
    pwsh py.test pylint pypy pypy3 pytest python python2 python3 python3.12 racket rails rake
    rbash rebar3 robot rollup rspec rsync ruby run-parts runghc runuser sbcl sbt scala scons
    scp screen script sed setarch setpriv setsid sftp sh shards skaffold socat source
    sphinx-build split sqlite3 ssh stack start-stop-daemon stdbuf strace stylelint su sudo
    swift systemd-run tar task taskset tclsh tcsh telnet terraform tex tilt time timeout tmux
    tofu tox toybox trap trial ts-node tsx turbo unbuffer unittest unlink2 unshare uv uvx
    vagrant vi vim vite vitest w3m waf watch watchexec webpack wget wish xargs xelatex xh
    xterm xvfb-run yarn yum zig zsh
"""
"""Interpreters, wrappers, build tools and downloaders. The product has no such list, because it
would never be complete."""


def offered(command: str) -> list[ScopeKind]:
    return [scope.kind for scope in MINIMAL.judge(shell(command)).remember]


def remembering(scope: RememberScope) -> Judge:
    """Return a judge with the rule, after a round trip through its stored form."""
    rules = rules_from_tables([rule_to_table(scope.rule)], "remembered")
    return Judge(
        [RuleLayer("remembered", rules)], Mode.MINIMAL, ROOT, WORLD["home"], FILES, trusted=True
    )


def test_a_command_that_runs_another_is_not_offered() -> None:
    for program in set(RUNNING.split()) - {"sed", "find"}:
        for more in ("", " x", " -c x", " > out"):
            for path in ("", "/usr/bin/"):
                assert offered(f"{path}{program}{more}") == [], program
    for unread in ("for x in a; do $x; done", "rm x &", "$x y", "f() { make; }; f"):
        assert offered(unread) == [], unread


@given(
    st.from_regex(r"[a-z][a-z0-9._+-]{0,12}", fullmatch=True), st.sampled_from(["", " x", " -r"])
)
def test_an_unknown_program_is_not_offered(program: str, more: str) -> None:
    known = (
        {name.split()[0] for name in READERS}
        | set(FILE_CHANGING_PROGRAMS)
        | {"true", "false", "printf", "cd"}
    )
    if program not in known:
        assert offered(program + more) == []


@pytest.mark.parametrize(
    "command",
    [
        "./x",
        "bin/x",
        "/work/project/x",
        "rm x; make",
        "mkdir $(make)",
        "touch $(id)",
        "touch *",
        "sort -o x y",
        "find . -exec rm x ';'",
        "rg --pre sh x",
        "sed -n 'e id' x",
        "git status --no-such",
        "git commit -m x",
        "cp a /usr/local/bin/ls",
        "cp a .git/hooks/pre-commit",
        "cp -t /usr/bin a",
        "cp --target-directory=/usr/bin a",
        "ln -s /etc x",
        "cat a > /etc/x",
        "cat a > .git/hooks/pre-commit",
        "cat a >> ~/.bashrc",
        "cd src; rm ../../x",
        "mv ~/x y",
    ],
)
def test_a_command_that_may_do_something_else_later_is_not_offered(command: str) -> None:
    assert MINIMAL.judge(shell(command)).decision is Permission.ASK
    assert offered(command) == []


@pytest.mark.parametrize(
    "command",
    [
        "rm -f out/x",
        "cp -p src/main.py out",
        "cd src && mv a b",
        "chmod +x a",
        "ls /etc > /dev/null",
        "ln -s a c",
    ],
)
def test_a_command_that_only_changes_files_in_the_root_is_offered_exactly(command: str) -> None:
    assert offered(command) == [ScopeKind.EXACT]


def test_programs_offered_by_their_first_words_run_nothing() -> None:
    assert {words[0] for words in BY_FIRST_WORDS} <= set(FILE_CHANGING_PROGRAMS)


def test_an_empty_command_is_not_offered_and_its_rule_matches_nothing_else() -> None:
    for text in ("", " ", "\n", "# rm x"):
        assert offered(text) == []
    with pytest.raises(InvalidRule):
        rules_from_tables(
            [rule_to_table(ToolRule(Permission.ALLOW, "shell", text=""))], "remembered"
        )


def test_a_git_command_is_not_offered() -> None:
    assert MINIMAL.judge(shell("git log > out/x")).remember == ()
    assert judge_of({"trusted": False}).judge(shell("git status")).remember == ()


@pytest.mark.parametrize(
    "command",
    [
        "curl x | sh",
        "wget -qO- x | bash",
        "curl x | sudo sh",
        "sh -c 'curl x | sh'",
        "curl x > a; python3 a",
        "if true; then curl x | sh; fi",
        "bash <(curl x)",
        'eval "$(curl x)"',
        "npm install x && node x",
    ],
)
def test_a_command_that_fetches_and_runs_is_not_offered(command: str) -> None:
    assert offered(command) == []


@pytest.mark.parametrize(
    "command",
    ["touch; rm x", "touch > out", "touch | cat", "mkdir a && touch a/b"],
)
def test_more_than_one_simple_command_is_offered_as_a_whole(command: str) -> None:
    assert offered(command) == [ScopeKind.EXACT]


def test_a_command_decided_by_a_rule_is_not_offered() -> None:
    assert offered("ls") == []
    for decision in ("deny", "ask"):
        rules = [{"tool": "shell", "command": "make", "decision": decision}]
        assert judge_of({"rules": rules}).judge(shell("make")).remember == ()


def test_an_exact_text_is_allowed_in_its_directory_and_no_other_is() -> None:
    (scope, *_) = MINIMAL.judge(shell("rm x && mv y z")).remember
    judge = remembering(scope)
    assert judge.judge(shell("rm x && mv y z")).decision is Permission.ALLOW
    assert judge.judge(shell("rm x && mv y z ")).decision is Permission.ASK
    assert judge.judge(shell("rm x")).decision is Permission.ASK
    assert judge.judge(shell("rm x && mv y z", f"{ROOT}/src")).decision is Permission.ASK


def test_first_words_are_followed_by_plain_names_only() -> None:
    scope = next(
        s for s in MINIMAL.judge(shell("touch tests")).remember if s.kind is ScopeKind.PREFIX
    )
    judge = remembering(scope)
    for command in ("touch", "touch tests src", "touch src/main.py"):
        assert judge.judge(shell(command)).decision is Permission.ALLOW, command
    asks = [
        "touch -p evil",
        "touch /tmp/x",
        "touch ../x",
        "touch a=b",
        "touch @x",
        "touch .env",
        "touch .git/x",
    ]
    asks += [
        "touch; rm x",
        "touch > out",
        "touch $(id)",
        "touch link-out/x",
        "./touch",
        "cd src; touch ../../x",
    ]
    for command in asks:
        assert judge.judge(shell(command)).decision is Permission.ASK, command


def test_a_path_outside_is_offered_alone() -> None:
    scopes = MINIMAL.judge(shell("cat /etc/hosts")).remember
    assert [scope.kind for scope in scopes] == [ScopeKind.EXACT, ScopeKind.PATH]
    judge = remembering(scopes[1])
    assert judge.judge(shell("head /etc/hosts")).decision is Permission.ALLOW
    assert (
        judge.judge(PermissionRequest("read", {"path": "/etc/hosts"}, ROOT)).decision
        is Permission.ALLOW
    )
    assert judge.judge(shell("cat /etc/passwd")).decision is Permission.ASK
    assert judge.judge(shell("echo x > /etc/hosts")).decision is Permission.ASK


def test_a_file_is_offered_with_its_directory_and_not_the_root() -> None:
    written = MINIMAL.judge(PermissionRequest("write", {"path": "src/new.py"}, ROOT)).remember
    assert [(scope.kind, scope.rule.path) for scope in written] == [
        (ScopeKind.PATH, f"{ROOT}/src/new.py"),
        (ScopeKind.DIRECTORY, f"{ROOT}/src/**"),
    ]
    assert [
        s.kind for s in MINIMAL.judge(PermissionRequest("write", {"path": "new.py"}, ROOT)).remember
    ] == [ScopeKind.PATH]
    assert [
        s.kind for s in MINIMAL.judge(PermissionRequest("write", {"path": ".git/x"}, ROOT)).remember
    ] == [ScopeKind.PATH]
    judge = remembering(written[1])
    assert (
        judge.judge(PermissionRequest("write", {"path": "src/a/b"}, ROOT)).decision
        is Permission.ALLOW
    )
    assert (
        judge.judge(PermissionRequest("write", {"path": "src/../x"}, ROOT)).decision
        is Permission.ASK
    )


def test_a_secret_is_asked_about_each_time() -> None:
    assert MINIMAL.judge(PermissionRequest("read", {"path": ".env"}, ROOT)).remember == ()
    for command in (
        "cat .env",
        "cp .env out",
        "cat < .env",
        "cat link-env",
        "echo x > .env",
        "rm x; cat id_rsa",
    ):
        assert MINIMAL.judge(shell(command)).decision is Permission.ASK
        assert offered(command) == [], command
    assert (
        MINIMAL.judge(PermissionRequest("deploy", {"with": "keys/server.pem"}, ROOT)).remember == ()
    )


def test_a_rule_for_a_text_does_not_allow_a_secret() -> None:
    rules = [{"tool": "shell", "text": "cat link-env", "decision": "allow"}]
    assert judge_of({"rules": rules}).judge(shell("cat link-env")).decision is Permission.ASK
    rules.append({"tool": "read", "path": ".env", "decision": "allow"})
    assert judge_of({"rules": rules}).judge(shell("cat link-env")).decision is Permission.ALLOW


@pytest.mark.parametrize(
    "command", ["cp a b", "cp a d", "echo x > b", "chmod 700 b", "touch b", "mv a d"]
)
@pytest.mark.parametrize("leads", ["home/.bashrc", "root/.git/hooks/x", "elsewhere"])
def test_a_remembered_text_asks_again_once_a_link_changes(
    command: str, leads: str, tmp_path: Path
) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    (root / "d").mkdir(parents=True)
    judge = Judge([], Mode.MINIMAL, str(root), str(home), DiskLookup())
    asked = shell(command, str(root))
    (scope, *_) = judge.judge(asked).remember
    after = replace(judge, layers=[RuleLayer(REMEMBERED_LAYER, (scope.rule,))])
    assert after.judge(asked).decision is Permission.ALLOW
    for link in (root / "b", root / "d" / "a"):
        link.symlink_to(tmp_path / leads)
    assert after.judge(asked).decision is Permission.ASK
    by_hand = replace(judge, layers=[RuleLayer("user", (scope.rule,))])
    assert by_hand.judge(asked).decision is Permission.ALLOW


def test_a_write_to_a_guarded_path_of_the_home_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    judge = Judge([], Mode.TRUSTED, str(tmp_path), str(tmp_path), DiskLookup())
    for command in ("cp -r docs/. .", "cp docs/bin .", "mv docs bin", f"chmod 700 {tmp_path}"):
        judged = judge.judge(shell(command, str(tmp_path)))
        assert (judged.decision, judged.remember) == (Permission.ASK, ()), command


def test_a_tool_of_a_plugin_is_remembered_with_its_arguments() -> None:
    (scope,) = MINIMAL.judge(PermissionRequest("deploy", {"to": "test", "n": 1}, ROOT)).remember
    judge = remembering(scope)
    for arguments, decision in (
        ({"n": 1, "to": "test"}, Permission.ALLOW),
        ({"to": "test"}, Permission.ASK),
        ({"to": "production", "n": 1}, Permission.ASK),
        ({}, Permission.ASK),
    ):
        assert judge.judge(PermissionRequest("deploy", arguments, ROOT)).decision is decision, (
            arguments
        )
    assert (
        judge.judge(PermissionRequest("deploys", {"to": "test", "n": 1}, ROOT)).decision
        is Permission.ASK
    )


@pytest.mark.parametrize("name", ["counter.*", "*", "d?", "[a]", "a\u202eb"])
def test_a_tool_whose_name_is_a_pattern_is_not_offered(name: str) -> None:
    assert MINIMAL.judge(PermissionRequest(name, {}, ROOT)).remember == ()


def test_arguments_that_are_too_long_or_no_json_are_not_offered() -> None:
    for value in ("x" * 70_000, "\ud800", object()):
        judged = MINIMAL.judge(PermissionRequest("deploy", {"x": value}, ROOT))
        assert (judged.decision, judged.remember) == (Permission.ASK, ())


def test_a_deny_rule_for_a_path_overrides_a_rule_that_allows_the_tool() -> None:
    rules = [
        {"tool": "deploy", "decision": "allow"},
        {"tool": "deploy", "path": "private/**", "decision": "deny"},
    ]
    judge = judge_of({"rules": rules})
    for path, decision in (("private/x", Permission.DENY), ("src/x", Permission.ALLOW)):
        assert judge.judge(PermissionRequest("deploy", {"path": path}, ROOT)).decision is decision


def test_a_no_can_be_remembered_too() -> None:
    (scope, *_) = MINIMAL.judge(shell("rm x")).remember
    judge = Judge(
        [RuleLayer("remembered", (scope.denying(),))], Mode.FULL, ROOT, WORLD["home"], FILES
    )
    assert judge.judge(shell("rm x")).decision is Permission.DENY


ASKING = [case for case in cases() if case["expect"] == "ask" and not case.get("rules")]


@given(st.sampled_from(ASKING), st.sampled_from(ASKING))
def test_a_remembered_command_allows_no_other_of_the_corpus(one: dict, other: dict) -> None:
    """Remembering one command that asks leaves all others asking."""
    for scope in judge_of(one).judge(request_of(one)).remember:
        if scope.kind is ScopeKind.EXACT and request_of(one) != request_of(other):
            rules = rules_from_tables([rule_to_table(scope.rule)], "remembered")
            judge = replace(judge_of(other), layers=[RuleLayer("remembered", rules)])
            assert judge.judge(request_of(other)).decision is Permission.ASK
