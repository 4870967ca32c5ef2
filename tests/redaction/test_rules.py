"""Each rule, on texts it was made for and on texts it was not."""

from __future__ import annotations

import ast
import inspect
import pydoc_data.topics
from importlib import import_module

from redaction.examples import EXAMPLES, INNOCENT, KEY, Example, some
from telex.redaction import MARKER, Redactor
from telex.redaction.families import FAMILIES
from telex.redaction.rules import LEAD_CHARS, RULES

REDACTOR = Redactor()


def in_feeds(feeds: list[str]) -> str:
    stream = REDACTOR.stream()
    return "".join(map(stream.feed, feeds)) + stream.finish()


def test_a_secret_is_hidden_and_the_text_around_it_stays() -> None:
    for example in EXAMPLES:
        assert REDACTOR.redact(example.text) == example.redacted


def test_a_secret_cut_anywhere_across_two_feeds_does_not_escape() -> None:
    for example in EXAMPLES:
        text = example.text
        for cut in range(len(text) + 1):
            assert in_feeds([text[:cut], text[cut:]]) == example.redacted, f"cut at {cut}"


def test_a_secret_that_comes_one_character_at_a_time_does_not_escape() -> None:
    for example in EXAMPLES:
        assert in_feeds(list(example.text)) == example.redacted


def test_spans_are_the_hidden_characters() -> None:
    for example in EXAMPLES:
        text, spans = example.text, REDACTOR.spans(example.text)
        ends = [0, *(end for _, end in spans)]
        starts = [*(start for start, _ in spans), len(text)]
        shown = [text[end:start] for end, start in zip(ends, starts, strict=True)]
        assert MARKER.join(shown) == example.redacted


def test_redacting_twice_changes_nothing_more() -> None:
    for example in EXAMPLES:
        assert REDACTOR.redact(example.redacted) == example.redacted


def test_every_rule_has_an_example() -> None:
    """Those with a pattern of a family have theirs in `test_families`."""
    families = {family.id for family in FAMILIES}
    assert {example.rule for example in EXAMPLES} == {rule.name for rule in RULES} - families


def test_every_lead_is_short_enough_to_be_remembered() -> None:
    assert max(len(prefix) for rule in RULES for prefix in rule.prefixes) <= LEAD_CHARS


def test_ordinary_text_stays_as_it_is() -> None:
    for text in INNOCENT:
        assert REDACTOR.redact(text) == text
        assert REDACTOR.spans(text) == []
        assert in_feeds(list(text)) == text


def test_prose_about_secrets_is_seldom_taken_for_one() -> None:
    """Python's manual, and the docstrings of the modules that speak of passwords and tokens most."""
    names = "email.header ftplib getpass hmac http.client http.cookies imaplib netrc poplib secrets"
    names += " smtplib ssl string tokenize urllib.parse urllib.request uuid xml.dom.minidom"
    texts = [str(topic) for topic in pydoc_data.topics.topics.values()]
    texts += [text for name in names.split() for text in docstrings(name)]
    lines = sum(text.count("\n") + 1 for text in texts)
    hidden = [text[slice(*span)] for text in texts for span in REDACTOR.spans(text)]
    assert lines > 10_000
    assert len(hidden) <= lines / 1000, hidden


def docstrings(module: str) -> list[str]:
    tree = ast.parse(inspect.getsource(import_module(module)))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return [text for text in found if text]


def test_a_line_break_ends_a_key_and_what_follows_it_is_text_again() -> None:
    key = f"ghp_{some(36)}"
    assert REDACTOR.redact(f"{key[:30]}\n{key[30:]} ok") == f"{MARKER}\n{key[30:]} ok"


COMMANDS = {
    "export TOKEN=«abc»; ls": "; ls",
    "export TOKEN=«abc» && ls": " && ls",
    "export TOKEN=«abc»&& ls": "&& ls",
    "TOKEN=«abc» cmd | less": " cmd | less",
    "TOKEN=«abc»| less": "| less",
    "(export TOKEN=«abc»)": ")",
    "x=$(TOKEN=«abc» cmd); echo": " cmd); echo",
    "x=`TOKEN=«abc»`; echo": "`; echo",
    "cmd --token=«abc»; ls": "; ls",
    "cmd --token «abc»; ls": "; ls",
    "mysql -p«abc»; ls": "; ls",
    "curl -u me:«abc»; ls": "; ls",
    "sshpass -p «abc» ssh h; ls": " ssh h; ls",
    "export TOKEN='«a;b»'; ls": "'; ls",
    "bash -c 'TOKEN=«abc»; ls'": "; ls'",
    "TOKEN=«abc» &": " &",
    "TOKEN=«abc»;": ";",
    "for x in 1; do TOKEN=«abc»; done": "; done",
}


def test_what_ends_a_command_is_kept() -> None:
    for marked, kept in COMMANDS.items():
        example = Example("labelled value", marked)
        assert REDACTOR.redact(example.text) == example.redacted
        assert example.redacted.endswith(MARKER + kept)
        assert in_feeds(list(example.text)) == example.redacted


COMMAND_LINES = [
    "echo `TOKEN=«abc»`;true",
    "X_PAT=«abc»>out; echo w",
    "sh -c 'echo `TOKEN=«abc»`;true'",
    "sh -c echo `TOKEN=«abc»`;true",
    'bash -lc "X_PAT=«abc»>out; echo w" && ls',
    "TOKEN=«abc»|wc; (PASSWORD=«abc»)&true",
    "curl -u me:«hunter2»>out https://x",
    "mysql -p«hunter2»<dump.sql",
    "env 'TOKEN=«a1;b2»' ls",
    "TOKEN='«a;b»' ls|wc",
    "TOKEN=«a\\;b1» ls",
    "TOKEN=«a1$(x)b» ls",
    "cat <<E\nDB_PASSWORD=«p4;w(o)rd»\nE",
    "TOKEN=$(cat f)|wc",
    "ls -l; true",
]


def test_in_a_command_line_operators_end_a_value_and_stay() -> None:
    for marked in COMMAND_LINES:
        example = Example("labelled value", marked)
        assert REDACTOR.redact_command(example.text) == example.redacted


def test_a_quoted_value_ends_with_its_line_when_the_quote_never_closes() -> None:
    assert REDACTOR.redact('password: "abc def\nnext') == f'password: "{MARKER}\nnext'


def test_rules_act_one_by_one_and_what_they_hide_adds_up() -> None:
    """A label's value ends at the blank; the key block that began in it does not."""
    text = f"secret=-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n"
    shown = f"secret={MARKER} PRIVATE KEY-----\n{MARKER}-----END PRIVATE KEY-----\n"
    assert REDACTOR.redact(text) == shown
    quotes = "token=\"x password='my own\" phrase' y"
    assert REDACTOR.redact(quotes) == f"token=\"{MARKER}' y"
    inner = f"sk-{some(20)}-eyJ{some(20)}.{some(20)}.{some(20)}"
    assert REDACTOR.redact(inner) == MARKER


def test_a_key_block_without_an_end_is_hidden_until_there_is_no_more_sign_of_a_key() -> None:
    prose = "and so on, " * 60
    shown = REDACTOR.redact(f"-----BEGIN PRIVATE KEY-----\n{KEY}\n{prose}")
    assert shown.startswith(f"-----BEGIN PRIVATE KEY-----\n{MARKER}")
    assert some(10) not in shown
    assert prose.endswith(shown.removeprefix(f"-----BEGIN PRIVATE KEY-----\n{MARKER}"))
    assert len(prose) - 300 < len(shown) < len(prose)
