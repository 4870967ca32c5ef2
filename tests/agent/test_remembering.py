"""What is offered to be remembered is exactly what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from permission_world import FILES, ROOT, WORLD, cases, judge_of, request_of, shell
from telex.agent.judging import Decision, Judge, Layer, Mode, Request, from_tables, to_table
from telex.agent.judging.programs import FETCHERS, INTERPRETERS, NEVER_BY_PREFIX, RUNNERS, WRAPPERS
from telex.agent.judging.remembering import BY_FIRST_WORDS, Kind, Scope

MINIMAL = judge_of({})


def offered(command: str) -> list[Kind]:
    return [scope.kind for scope in MINIMAL.judge(shell(command)).remember]


def remembering(scope: Scope) -> Judge:
    """As after a restart: the rule was written, and read again."""
    rules = from_tables([to_table(scope.rule)], "remembered")
    return Judge(
        [Layer("remembered", rules)], Mode.MINIMAL, ROOT, WORLD["home"], FILES, trusted=True
    )


def test_no_fetcher_is_offered_by_its_first_word() -> None:
    for program in FETCHERS:
        for more in ("", " x", " -c x", " install x"):
            assert set(offered(f"{program}{more}")) <= {Kind.EXACT}, program


def test_what_runs_files_of_the_workspace_is_not_offered_at_all() -> None:
    for program in INTERPRETERS | WRAPPERS | RUNNERS:
        for more in ("", " x", " -c x", " > out"):
            for path in ("", "/usr/bin/"):
                assert offered(f"{path}{program}{more}") == [], program
    for command in (
        "./x",
        "bin/x",
        "/work/project/x",
        "rm x; make",
        "mkdir $(make)",
        "python3.12 x",
    ):
        assert offered(command) == [], command
    for unread in ("for x in a; do $x; done", "rm x &", "$x y", "f() { make; }; f"):
        assert offered(unread) == [], unread


def test_no_listed_first_word_is_one_of_those() -> None:
    assert not [
        words for words in BY_FIRST_WORDS if len(words) == 1 and words[0] in NEVER_BY_PREFIX
    ]


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
def test_what_fetches_and_runs_is_not_offered_at_all(command: str) -> None:
    assert offered(command) == []


@pytest.mark.parametrize(
    "command",
    ["touch; rm x", "touch > out", "touch $(id)", "touch | cat", "touch *"],
)
def test_more_than_one_simple_command_is_offered_as_a_whole(command: str) -> None:
    assert offered(command) == [Kind.EXACT]


def test_what_is_allowed_or_denied_or_asked_by_a_rule_is_not_offered() -> None:
    assert offered("ls") == []
    for decision in ("deny", "ask"):
        rules = [{"tool": "shell", "command": "make", "decision": decision}]
        assert judge_of({"rules": rules}).judge(shell("make")).remember == ()


def test_an_exact_text_is_allowed_in_its_directory_and_no_other_is() -> None:
    (scope, *_) = MINIMAL.judge(shell("rm x && mv y z")).remember
    judge = remembering(scope)
    assert judge.judge(shell("rm x && mv y z")).decision is Decision.ALLOW
    assert judge.judge(shell("rm x && mv y z ")).decision is Decision.ASK
    assert judge.judge(shell("rm x")).decision is Decision.ASK
    assert judge.judge(shell("rm x && mv y z", f"{ROOT}/src")).decision is Decision.ASK


def test_first_words_are_followed_by_plain_names_only() -> None:
    scope = next(s for s in MINIMAL.judge(shell("touch tests")).remember if s.kind is Kind.PREFIX)
    judge = remembering(scope)
    for command in ("touch", "touch tests src", "touch src/main.py"):
        assert judge.judge(shell(command)).decision is Decision.ALLOW, command
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
        assert judge.judge(shell(command)).decision is Decision.ASK, command


def test_a_path_outside_is_offered_alone() -> None:
    scopes = MINIMAL.judge(shell("cat /etc/hosts")).remember
    assert [scope.kind for scope in scopes] == [Kind.EXACT, Kind.PATH]
    judge = remembering(scopes[1])
    assert judge.judge(shell("head /etc/hosts")).decision is Decision.ALLOW
    assert judge.judge(Request("read", {"path": "/etc/hosts"}, ROOT)).decision is Decision.ALLOW
    assert judge.judge(shell("cat /etc/passwd")).decision is Decision.ASK
    assert judge.judge(shell("echo x > /etc/hosts")).decision is Decision.ASK


def test_a_file_is_offered_with_its_directory_and_not_the_root() -> None:
    written = MINIMAL.judge(Request("write", {"path": "src/new.py"}, ROOT)).remember
    assert [(scope.kind, scope.rule.path) for scope in written] == [
        (Kind.PATH, f"{ROOT}/src/new.py"),
        (Kind.DIRECTORY, f"{ROOT}/src/**"),
    ]
    assert [s.kind for s in MINIMAL.judge(Request("write", {"path": "new.py"}, ROOT)).remember] == [
        Kind.PATH
    ]
    assert [s.kind for s in MINIMAL.judge(Request("write", {"path": ".git/x"}, ROOT)).remember] == [
        Kind.PATH
    ]
    judge = remembering(written[1])
    assert judge.judge(Request("write", {"path": "src/a/b"}, ROOT)).decision is Decision.ALLOW
    assert judge.judge(Request("write", {"path": "src/../x"}, ROOT)).decision is Decision.ASK


def test_a_secret_is_asked_about_each_time() -> None:
    assert MINIMAL.judge(Request("read", {"path": ".env"}, ROOT)).remember == ()
    assert offered("cat .env") == [Kind.EXACT]


def test_a_no_can_be_remembered_too() -> None:
    (scope, *_) = MINIMAL.judge(shell("rm x")).remember
    judge = Judge([Layer("remembered", (scope.denying(),))], Mode.FULL, ROOT, WORLD["home"], FILES)
    assert judge.judge(shell("rm x")).decision is Decision.DENY


ASKING = [case for case in cases() if case["expect"] == "ask" and not case.get("rules")]


@given(st.sampled_from(ASKING), st.sampled_from(ASKING))
def test_what_one_command_is_remembered_by_allows_no_other_of_the_corpus(
    one: dict, other: dict
) -> None:
    """Of all commands that ask, remembering any exactly leaves all others asking."""
    for scope in judge_of(one).judge(request_of(one)).remember:
        if scope.kind is Kind.EXACT and request_of(one) != request_of(other):
            rules = from_tables([to_table(scope.rule)], "remembered")
            judge = Judge(
                [Layer("remembered", rules)], Mode(other.get("mode", "minimal")), ROOT, WORLD["home"], FILES,
                trusted=other.get("trusted", True),
            )  # fmt: skip
            assert judge.judge(request_of(other)).decision is Decision.ASK
