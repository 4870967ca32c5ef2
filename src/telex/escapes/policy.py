"""The policy: rules in TOML that allow, ask about or deny commands, and the defaults behind them.

A rule has a glob for commands, in which `*` matches any characters, colons too, and an origin of
the requesting program. The first rule that matches decides; without one the command's own guard
decides. This module does not know whether there is a person to ask: `gate` asks, and denies if
there is none.

Pure. A policy is about safety, so nothing in it is ignored: an unknown field is a problem, and all
problems are reported at once, with their lines if these can be found.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal

from telex.escapes.protocol import EscapeCommand, Guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Kind = Literal["local", "remote"]

_ELSEWHERE: Final = frozenset({
    "ssh", "autossh", "sshpass", "slogin", "dbclient", "mosh", "mosh-client", "et", "tsh",
    "telnet", "rlogin", "rsh", "minicom", "picocom", "tio", "cu", "socat", "adb",
    "docker", "podman", "nerdctl", "ctr", "crictl", "kubectl", "oc", "k9s", "lxc", "incus",
    "lxc-attach", "lxc-console", "virsh", "systemd-nspawn",
    "machinectl", "distrobox", "toolbox", "vagrant", "multipass",
    "screen", "tmux", "tmate", "zellij", "dtach", "abduco", "shpool",
})  # fmt: skip
"""Programs that show output of another machine, of a container, or of programs that we cannot
see."""

_GLOB: Final = re.compile(r"[A-Za-z0-9_.:*-]{1,128}")
_HEADER: Final = re.compile(r"[ \t]*\[\[[ \t]*rule[ \t]*\]\][ \t]*(?:#.*)?")


class PolicyVerdict(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """The verdict about a command, and its reason for the audit."""

    verdict: PolicyVerdict
    by: str


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """The program that sent a request, as far as it is known."""

    kind: Kind
    program: str | None = None
    """The name of the program in the foreground, from the system. The program can choose it."""
    run: tuple[int, int] | None = None
    """One run of the program: its process group, and a hash of the start time and the executable of
    its leader, so that a lasting answer ends with an `exec`. If it is None, no answer lasts."""
    job: tuple[int, int] | None = None
    """The process group, and the start time of its leader: the same after an `exec`. Refusals are
    counted for the job, so that a program cannot ask again by becoming another program."""
    waiting: int | None = None
    """The process group that waits for the response: its exit withdraws the question. None if no
    group waits, or if a disconnect reports the exit, as on a socket."""


def origin_of(
    *names: str, run: tuple[int, int] | None = None, job: tuple[int, int] | None = None
) -> RequestOrigin:
    """Determine the origin from the names of all processes in the foreground, the leader's first.

    All names count, because the leader of `sudo ssh host` is sudo. Without any name the origin is
    remote. A local program that shows remote data (`curl`) is local: only the person can know that.
    """
    names = tuple([name.rpartition("/")[2] for name in names])
    # tmux calls itself `tmux: client`.
    away = next((name for name in names if name.partition(":")[0] in _ELSEWHERE), None)
    if away or not names:
        return RequestOrigin("remote", away, run, job)
    return RequestOrigin("local", names[0], run, job)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule for commands and an origin."""

    command: str
    """A glob."""
    origin: Literal["local", "remote", "*"]
    decision: PolicyVerdict

    def fits(self, command: str, origin: RequestOrigin) -> bool:
        return self.origin in ("*", origin.kind) and fnmatchcase(command, self.command)


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in their order; the defaults of the guards apply after them."""

    rules: tuple[PolicyRule, ...] = ()

    @classmethod
    def parse(cls, text: str, where: str = "the policy") -> Policy:
        """Parse TOML. Raises `BadPolicy` with all problems."""
        try:
            document = tomllib.loads(text + "\n")
        except (ValueError, RecursionError) as error:
            raise BadPolicy([PolicyProblem("", f"this is not TOML: {error}")], where) from error
        problems: list[PolicyProblem] = []
        rules = tuple(_rules(document, _Lines(text), problems))
        if problems:
            raise BadPolicy(problems, where)
        return cls(rules)

    def decide(self, command: EscapeCommand, origin: RequestOrigin) -> PolicyDecision:
        for number, rule in enumerate(self.rules, 1):
            if rule.fits(command.name, origin):
                return PolicyDecision(rule.decision, f"rule {number}")
        return _DEFAULTS[command.guard, origin.kind]


_DEFAULTS: Final = {
    (guard, kind): PolicyDecision(verdict, f"default for {guard.value}")
    for guard, kind, verdict in (
        (Guard.FREE, "local", PolicyVerdict.ALLOW),
        (Guard.FREE, "remote", PolicyVerdict.ALLOW),
        (Guard.REMOTE, "local", PolicyVerdict.ALLOW),
        (Guard.REMOTE, "remote", PolicyVerdict.ASK),
        (Guard.PERSON, "local", PolicyVerdict.ASK),
        (Guard.PERSON, "remote", PolicyVerdict.ASK),
    )
}


# Parsing.


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """A problem with one field of a policy, and its remedy."""

    field: str
    """Such as `rule[2].origin`; empty for the whole policy."""
    problem: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}`{self.field}`: {self.problem}" if self.field else self.problem


class BadPolicy(ValueError):
    """A policy is invalid. The message has all problems."""

    def __init__(self, problems: Iterable[PolicyProblem], where: str) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{where} cannot be used: " + ". ".join(map(str, self.problems)))


def _rules(
    document: Mapping[str, Any], lines: _Lines, problems: list[PolicyProblem]
) -> Iterator[PolicyRule]:
    unknown = "is not known; a policy is made of [[rule]]"
    problems += [PolicyProblem(key, unknown, lines.top(key)) for key in document if key != "rule"]
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        problem = "must be written as [[rule]], in two pairs of brackets"
        problems.append(PolicyProblem("rule", problem, lines.top("rule")))
        return
    lines.expect(len(tables))
    for number, table in enumerate(tables, 1):
        before = len(problems)
        for key, problem in _problems(table):
            problems.append(PolicyProblem(f"rule[{number}].{key}", problem, lines.of(number, key)))
        if len(problems) == before:
            yield PolicyRule(
                table["command"], table.get("origin", "*"), PolicyVerdict(table["decision"])
            )


_CHOICES: Final = {
    "origin": ("local", "remote", "*"),
    "decision": tuple(verdict.value for verdict in PolicyVerdict),
}


def _problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the wrong fields of one rule, each with its problem."""
    for key in ("command", "decision"):
        if key not in table:
            yield key, "is missing"
    for key, value in table.items():
        if key == "command":
            if not isinstance(value, str) or not _GLOB.fullmatch(value):
                yield key, 'must be a command or a glob of several, such as "clip:*"'
        elif key in _CHOICES:
            if value not in _CHOICES[key]:
                yield key, f"must be one of {', '.join(_CHOICES[key])}"
        else:
            yield key, "is not known; a rule has command, origin and decision"


class _Lines:
    """Finds the line of a field, which the parser does not report. It returns None if the search
    could be wrong: a multi-line string may contain text that looks like a rule.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._headers = [n for n, line in enumerate(self._lines, 1) if _HEADER.fullmatch(line)]

    def expect(self, rules: int) -> None:
        if len(self._headers) != rules:
            self._headers = []

    def of(self, number: int, key: str) -> int | None:
        """Return the line of a rule's field, or of the rule that lacks the field."""
        if not self._headers:
            return None
        first = self._headers[number - 1]
        after = self._headers[number] if number < len(self._headers) else len(self._lines) + 1
        return self._find(key, first + 1, after) or first

    def top(self, key: str) -> int | None:
        return self._find(key, 1, len(self._lines) + 1)

    def _find(self, key: str, first: int, after: int) -> int | None:
        field = re.compile(rf"[ \t]*(?:\[[ \t]*)?[\"']?{re.escape(key)}[\"']?[ \t]*[.=\]]")
        lines = range(first, after)
        return next((n for n in lines if field.match(self._lines[n - 1])), None)
