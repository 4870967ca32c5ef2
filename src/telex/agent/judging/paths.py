"""Where a path leads, and what may be done there without asking. Pure, but for `Files`.

A path is looked at twice: as it is written and as it is after all links. Either may be a secret or
denied, and only the second can be inside the root. This decides what runs without a question; what
holds a tool inside the root while it runs is the tool's own (`config.beneath`), since a link may
change in between. Used by `judge`.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from telex.agent.judging.modes import SHELL_TOOL, Access, Mode
from telex.agent.judging.rules import Decision, Rule, matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Files(Protocol):
    """What has to be looked up. `on_disk.Disk` looks; tests say."""

    def real(self, path: str) -> str:
        """An absolute path without links and dots, also of what is not there yet."""

    def names(self, pattern: str) -> tuple[str, ...] | None:
        """What an absolute pattern with `*` and `?` stands for; None when that is too much."""

    def is_directory(self, path: str) -> bool:
        """After all links."""


class Once:
    """The same, looked up once: for one judgement, since links change."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._real: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}

    def real(self, path: str) -> str:
        if path not in self._real:
            self._real[path] = self._files.real(path)
        return self._real[path]

    def names(self, pattern: str) -> tuple[str, ...] | None:
        if pattern not in self._names:
            self._names[pattern] = self._files.names(pattern)
        return self._names[pattern]

    def is_directory(self, path: str) -> bool:
        return self._files.is_directory(path)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of one thing, and why."""

    decision: Decision
    why: str
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """A path that something reads or writes."""

    access: Access
    path: str
    """Absolute, as it is written."""
    real: str
    is_secret: bool
    verdict: Verdict


_SECRETS: Final = re.compile(
    r"/(?:"
    r"\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials"
    r"|\.password-store|\.mozilla|\.env|\.env\.[^/]*|\.envrc|id_(?:rsa|dsa|ecdsa|ed25519)[^/]*"
    r"|[^/]*\.(?:pem|key|p12|pfx|keystore|jks|kdbx|ppk)|\.[^/]*_history|credentials(?:\.[^/]*)?"
    r"|\.git/(?:.*/)?config(?:\.worktree)?|\.vault-token|\.htpasswd|\.config/(?:gcloud|gh)|Library/Keychains"
    r")(?:/|$)"
    r"|^/etc/(?:g?shadow-?|sudoers|sudoers\.d|ssl/private)(?:/|$)"
    r"|^/(?:proc|dev)/(?!(?:cpuinfo|meminfo|version|loadavg|null|zero|u?random|std(?:in|out|err))$)"
    r"|^/(?:proc|dev)$",
    re.IGNORECASE,
)
_NO_SECRETS: Final = re.compile(r"/(?:\.env\.(?:example|sample|template|dist)|id_[a-z0-9]+\.pub)$")
_GUARDED: Final = re.compile(
    r"/(?:\.git|\.jj|\.hg|\.svn|\.telex|\.agents|\.claude|\.codelia|\.opencode|\.vscode|\.idea"
    r"|\.husky|\.github|\.gitattributes|\.gitmodules|\.gitconfig|\.ripgreprc|\.bashrc|\.profile"
    r"|AGENTS\.md|CLAUDE\.md|SKILL\.md|HEAD)(?:/|$)",
    re.IGNORECASE,
)
"""What programs and agents obey: who writes here, commands later. `HEAD` makes a git repository of
any directory, whose `config` then names programs to run."""
_OBEYED_AT_HOME: Final = ("bin", "Library")
"""Besides what is hidden there: login files, `.config`, `.local`, `.ssh`, `.gitconfig`."""
NOWHERE: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_ORDER: Final = (Decision.DENY, Decision.ALLOW, Decision.ASK)


def is_secret(path: str) -> bool:
    """By its name alone, anywhere on the way."""
    path = _seen(path)
    return _SECRETS.search(path) is not None and _NO_SECRETS.search(path) is None


def _seen(path: str) -> str:
    """Without what some file systems skip when they compare names."""
    if path.isascii():
        return path
    return "".join(char for char in path if unicodedata.category(char) != "Cf")


def is_name(text: str) -> bool:
    """Whether a file can be called that at all. Half a surrogate pair is a byte, or nothing."""
    return text != "" and not re.search("[\0\ud800-\udc7f\udd00-\udfff]", text)


@dataclass(frozen=True, slots=True)
class Paths:
    """The policy for paths: rules first, then secrets, then the root and the mode."""

    root: str
    home: str
    mode: Mode
    rules: Sequence[Rule]
    files: Files
    own: Sequence[str] = ()
    """Where telex keeps its configuration, its state and what was remembered."""

    def absolute(self, path: str, cwd: str) -> str:
        """Dots stay: after a link, `..` is somewhere else."""
        return posixpath.join(cwd, path)

    def is_inside(self, path: str) -> bool:
        return _is_below(self.files.real(path), self.files.real(self.root))

    def is_root(self, path: str) -> bool:
        return self.files.real(path) == self.files.real(self.root)

    def is_guarded(self, path: str) -> bool:
        """Below the root only: a checkout may itself lie in a directory of such a name."""
        real, root = self.files.real(path), self.files.real(self.root)
        below = _seen(real).removeprefix(root.rstrip("/"))
        return (
            _GUARDED.search(below) is not None
            or any(_is_below(real, place) for place in map(self.files.real, self.own))
            or any(_is_below(real, place) for place in self._at_home(real))
            or any(self._holds(place, "HEAD") for place in self._up(posixpath.dirname(real)))
        )

    def has_guarded(self, directory: str) -> bool:
        """Whether it holds the home, what is telex's own or what programs obey, so that all below
        is too much."""
        places = map(self.files.real, (self.home, *self.own))
        return any(_is_below(place, directory) for place in places) or any(
            names is None or any(_GUARDED.search("/" + posixpath.basename(n)) for n in names)
            for names in (self.files.names(posixpath.join(directory, p)) for p in ("*", ".*"))
        )

    def _at_home(self, real: str) -> Iterator[str]:
        """Places of the home that a login, a shell or a program obeys, whatever link leads there.
        Not one that the root itself is in: somebody chose to work there."""
        home, root = self.files.real(self.home), self.files.real(self.root)
        hidden = self.files.names(posixpath.join(home, ".*")) or ()
        places = [leads for name in hidden if (leads := self.files.real(name)) != name]
        if _is_below(real, home) and real != home:
            first = real[len(home.rstrip("/")) + 1 :].split("/")[0]
            if first.startswith(".") or first in _OBEYED_AT_HOME:
                places.append(posixpath.join(home, first))
        return (place for place in places if not _is_below(root, place))

    def is_other_repository(self, cwd: str) -> bool:
        """Whether git, looking upwards from here, comes by another repository than the root's. One
        above the root is another: who trusts a directory has not seen what is above it."""
        real, root = self.files.real(cwd), self.files.real(self.root)
        if not _is_below(real, root) or not self._holds(root, ".git"):
            return True
        return any(
            self._holds(place, "HEAD") or (place != root and self._holds(place, ".git"))
            for place in self._up(real)
        )

    def _is_hidden_directory(self, real: str) -> bool:
        """Below the root only: the root may itself lie in one."""
        below = real.removeprefix(self.files.real(self.root).rstrip("/"))
        return "/." in below and self.files.is_directory(real)

    def _up(self, real: str) -> Iterator[str]:
        """A directory and those above it, up to the root."""
        root = self.files.real(self.root)
        while _is_below(real, root):
            yield real
            if real == root:
                return
            real = posixpath.dirname(real)

    def _holds(self, directory: str, name: str) -> bool:
        return self.files.names(posixpath.join(directory, name)) != ()

    def touched(
        self,
        access: Access,
        path: str,
        cwd: str,
        tool: str,
        *,
        recursive: bool = False,
        skips_hidden: bool = False,
    ) -> Touched:
        absolute = self.absolute(path, cwd)
        real = self.files.real(absolute)
        secret = is_secret(absolute) or is_secret(real)
        # What is told to begin in `.git` comes by `.git/config`.
        secret = secret or (skips_hidden and self._is_hidden_directory(real))
        rule = self._rule(access, absolute, real, cwd, tool, secret=secret)
        verdict = self._verdict(access, absolute, real, rule, secret=secret, recursive=recursive)
        return Touched(access, absolute, real, secret, verdict)

    def covers(self, rule: Rule, absolute: str, real: str) -> bool:
        """Whether a rule's path is this one. To be allowed, it has to be so after all links."""
        if rule.path is None or self._fits(rule.path, real, self.files.real(self.root)):
            return True
        written = posixpath.normpath(absolute)
        return rule.decision is not Decision.ALLOW and self._fits(rule.path, written, self.root)

    def _fits(self, pattern: str, path: str, root: str) -> bool:
        """Compared below the root or the home: their own names are no patterns."""
        base, below = self._parts(pattern, root)
        if base == "":
            return matches(pattern, path)
        inside = _is_below(path, base) and matches(below, path[len(base.rstrip("/")) + 1 :])
        return inside or (below == "**" and path == base)

    def _parts(self, pattern: str, root: str) -> tuple[str, str]:
        """Where a rule's path begins, and the rest."""
        if pattern.startswith("/"):
            return "", pattern
        return (self.home, pattern[2:]) if pattern.startswith("~/") else (root, pattern)

    def _verdict(
        self,
        access: Access,
        absolute: str,
        real: str,
        rule: Rule | None,
        *,
        secret: bool,
        recursive: bool,
    ) -> Verdict:
        if rule is not None:
            return Verdict(rule.decision, f"a rule says {rule.decision} for {absolute}", rule)
        if absolute in NOWHERE:
            return Verdict(Decision.ALLOW, f"{absolute} is no file")
        if secret:
            return Verdict(Decision.ASK, f"{absolute} may hold secrets")
        if recursive and (below := self._rule_below(real)):
            return Verdict(Decision.ASK, f"a rule is about what lies below {absolute}", below)
        return self._by_place(access, absolute)

    def _by_place(self, access: Access, absolute: str) -> Verdict:
        if self.mode is Mode.FULL:
            return Verdict(Decision.ALLOW, "mode full")
        if not self.is_inside(absolute):
            return Verdict(Decision.ASK, f"{absolute} is outside the root")
        if access is Access.READ:
            return Verdict(Decision.ALLOW, f"{absolute} is inside the root")
        if self.is_guarded(absolute):
            return Verdict(Decision.ASK, f"programs or agents obey what is in {absolute}")
        if self.mode is Mode.TRUSTED:
            return Verdict(Decision.ALLOW, f"{absolute} is inside the root; mode trusted")
        return Verdict(Decision.ASK, f"mode {self.mode} asks before {absolute} is written")

    def _rule(
        self, access: Access, absolute: str, real: str, cwd: str, tool: str, *, secret: bool
    ) -> Rule | None:
        """The strongest. One that allows must name the access: a shell writes by `write` rules."""
        found: dict[Decision, Rule] = {}
        for rule in self._about_paths():
            allows = rule.decision is Decision.ALLOW
            if allows and secret and rule.path is None:
                continue
            names = {str(access), tool} - ({SHELL_TOOL} if allows else set())
            if any(rule.is_for(name, cwd) for name in names) and self.covers(rule, absolute, real):
                found.setdefault(rule.decision, rule)
        return next((found[decision] for decision in _ORDER if decision in found), None)

    def _rule_below(self, real: str) -> Rule | None:
        """A rule that restricts something that a walk from here may come by."""
        for rule in self._about_paths():
            if rule.path is not None and rule.decision is not Decision.ALLOW:
                base, below = self._parts(rule.path, self.files.real(self.root))
                fixed = posixpath.join(base, re.split(r"[*?]", below)[0])
                if fixed.startswith(real.rstrip("/") + "/") or real.startswith(fixed):
                    return rule
        return None

    def _about_paths(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.command is None and rule.text is None]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
