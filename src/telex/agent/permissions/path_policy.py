"""What may be done at a path without asking. Pure, but for `FileLookup`.

A path is looked at as it is written, where it leads after all links, and with each link on the way
(`path_walk`): any of these may be a secret, guarded or denied, and only the end can be inside the
root. Where nobody can say where it leads, it asks. This decides what runs without a question; what
holds a tool inside the root while it runs is the tool's own (`openat` in `telex.config`), since a
link may change in between. Used by `judge`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.display_text import in_quotes
from telex.agent.permissions.guarded_files import GuardedFiles
from telex.agent.permissions.path_walk import (
    CachedLookup,
    FileLookup,
    ResolvedPath,
    is_below,
    is_below_any,
    is_too_long_path,
    path_spellings,
)
from telex.agent.permissions.sensitive_names import is_secret, is_secret_directory
from telex.agent.permissions.tool_rules import (
    SHELL_TOOL,
    Mode,
    PathAccess,
    Permission,
    ToolRule,
    matches_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "NOWHERE",
    "CachedLookup",
    "FileLookup",
    "PathPolicy",
    "PermissionVerdict",
    "TouchedPath",
    "is_name",
    "is_secret",
]


@dataclass(frozen=True, slots=True)
class PermissionVerdict:
    """What is thought of one thing, and why."""

    decision: Permission
    why: str
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class TouchedPath:
    """A path that something reads or writes."""

    access: PathAccess
    path: str
    """Absolute, as it is written."""
    real: str
    is_secret: bool
    """By a name on its way; or nobody can say where that ends."""
    verdict: PermissionVerdict


NOWHERE: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_ORDER: Final = (Permission.DENY, Permission.ALLOW, Permission.ASK)


def is_name(text: str) -> bool:
    """Whether a file can be called that at all. Half a surrogate pair is a byte, or nothing."""
    return text != "" and not re.search("[\0\ud800-\udc7f\udd00-\udfff]", text)


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """The policy for paths: rules first, then secrets, then the root and the mode."""

    root: str
    home: str
    mode: Mode
    rules: Sequence[ToolRule]
    files: FileLookup
    own: Sequence[str] = ()
    """Where telex keeps its configuration, its state and what was remembered."""
    guards: GuardedFiles = field(init=False, compare=False)

    def __post_init__(self) -> None:
        guards = GuardedFiles(self.root, self.home, self.files, self.own)
        object.__setattr__(self, "guards", guards)

    def absolute(self, path: str, cwd: str) -> str:
        """Dots stay: after a link, `..` is somewhere else."""
        return posixpath.join(cwd, path)

    def is_inside(self, path: str) -> bool:
        way = self.files.resolve(path)
        return not way.unknown and is_below(way.end, self.files.real(self.root))

    def is_root(self, path: str) -> bool:
        way = self.files.resolve(path)
        return not way.unknown and way.end == self.files.real(self.root)

    def is_guarded(self, path: str) -> bool:
        return self.guards.is_guarded(path)

    def has_guarded(self, directory: str) -> bool:
        return self.guards.has_guarded(directory)

    def is_other_repository(self, cwd: str) -> bool:
        """Whether git, looking upwards from here, comes by another repository than the root's. One
        above the root is another: who trusts a directory has not seen what is above it."""
        real, root = self.files.real(cwd), self.files.real(self.root)
        if not self.is_inside(cwd) or not self.guards.holds(root, ".git"):
            return True
        return any(
            self.guards.holds(place, "HEAD") or (place != root and self.guards.holds(place, ".git"))
            for place in self.guards.up(real)
        )

    def _holds_secrets(self, absolute: str, way: ResolvedPath) -> bool:
        """A hidden directory, or one whose name makes secrets of what is in it: a program that
        begins there does not see that name. The root itself may lie in a hidden one."""
        below = way.end.removeprefix(self.files.real(self.root).rstrip("/"))
        named = "/." in below or any(map(is_secret_directory, path_spellings(absolute, way)))
        return named and self.files.is_directory(way.end)

    def touched(
        self,
        access: PathAccess,
        path: str,
        cwd: str,
        tool: str,
        *,
        recursive: bool = False,
        skips_hidden: bool = False,
    ) -> TouchedPath:
        absolute = self.absolute(path, cwd)
        way = self.files.resolve(absolute)
        # What no call takes as a path is a text among a program's words.
        lost = way.unknown != "" and not is_too_long_path(path)
        secret = lost or self._is_secret(absolute, way)
        # What is told to begin in `.git` comes by `.git/config`.
        secret = secret or (skips_hidden and self._holds_secrets(absolute, way))
        rule = self._rule(access, absolute, way.end, cwd, tool, secret=secret)
        told = in_quotes(absolute)
        if rule is not None:
            verdict = PermissionVerdict(
                rule.decision, f"a rule says {rule.decision} for {told}", rule
            )
        elif absolute in NOWHERE:
            verdict = PermissionVerdict(Permission.ALLOW, f"{told} is no file")
        elif lost:
            why = f"nobody can say where {told} leads: {way.unknown}"
            verdict = PermissionVerdict(Permission.ASK, why)
        elif secret:
            verdict = PermissionVerdict(Permission.ASK, f"{told} may hold secrets")
        elif recursive and (below := self._rule_below(way.end)):
            verdict = PermissionVerdict(
                Permission.ASK, f"a rule is about what lies below {told}", below
            )
        else:
            verdict = self._by_place(access, absolute, tool)
        return TouchedPath(access, absolute, way.end, secret, verdict)

    def _is_secret(self, absolute: str, way: ResolvedPath) -> bool:
        if any(map(is_secret, path_spellings(absolute, way))):
            return True
        system = is_below_any(way.end, self.files.system_places())
        if system and not way.end.startswith(("/proc/", "/dev/")):  # those go by their names
            return True
        return is_below_any(way.end, self.guards.kept)

    def covers(self, rule: ToolRule, absolute: str, real: str) -> bool:
        """Whether a rule's path is this one. To be allowed, it has to be so after all links. To be
        restricted, it may be so by any name on its way, or by where the rule's own path leads."""
        if rule.path is None:
            return True
        way = self.files.resolve(absolute)
        root = self.files.real(self.root)
        if rule.decision is Permission.ALLOW:
            return not way.unknown and self._fits(rule.path, real, root)
        return any(
            self._fits(pattern, place, base, fold=True)
            for pattern in self._forms(rule.path)
            for base in {root, self.root}
            for place in {real, *path_spellings(absolute, way)}
        )

    def _forms(self, pattern: str) -> Iterator[str]:
        """A rule's path, and the same where the links in its fixed part lead."""
        yield pattern
        base, below = self._parts(pattern, self.files.real(self.root))
        fixed, star, rest = _cut(below)
        place = posixpath.join(base, fixed) if base else fixed
        leads = self.files.real(place)
        if leads != posixpath.normpath(place):
            yield posixpath.join(leads, rest) if star else leads

    def _fits(self, pattern: str, path: str, root: str, *, fold: bool = False) -> bool:
        """Compared below the root or the home: their own names are no patterns. With `fold`, as a
        file system does that takes capital and small letters for the same."""
        base, below = self._parts(pattern, root)
        if fold:
            pattern, path, base, below = map(str.casefold, (pattern, path, base, below))
        if base == "":
            return matches_pattern(pattern, path)
        inside = is_below(path, base) and matches_pattern(below, path[len(base.rstrip("/")) + 1 :])
        return inside or (below == "**" and path == base)

    def _parts(self, pattern: str, root: str) -> tuple[str, str]:
        """Where a rule's path begins, and the rest."""
        if pattern.startswith("/"):
            return "", pattern
        return (self.home, pattern[2:]) if pattern.startswith("~/") else (root, pattern)

    def _by_place(self, access: PathAccess, absolute: str, tool: str) -> PermissionVerdict:
        told = in_quotes(absolute)
        if self.mode is Mode.FULL:
            return PermissionVerdict(Permission.ALLOW, "mode full")
        if not self.is_inside(absolute):
            return PermissionVerdict(Permission.ASK, f"{told} is outside the root")
        if access is PathAccess.READ:
            return PermissionVerdict(Permission.ALLOW, f"{told} is inside the root")
        if self.is_guarded(absolute):
            return PermissionVerdict(Permission.ASK, f"programs or agents obey what is in {told}")
        if self.mode is not Mode.TRUSTED:
            return PermissionVerdict(
                Permission.ASK, f"mode {self.mode} asks before {told} is written"
            )
        # Our own tools put a new file in its place, which leaves the other name alone.
        if tool == SHELL_TOOL and self.files.is_hard_linked(absolute):
            return PermissionVerdict(
                Permission.ASK, f"{told} has another name, maybe outside the root"
            )
        return PermissionVerdict(Permission.ALLOW, f"{told} is inside the root; mode trusted")

    def _rule(
        self, access: PathAccess, absolute: str, real: str, cwd: str, tool: str, *, secret: bool
    ) -> ToolRule | None:
        """The strongest. One that allows must name the access: a shell writes by `write` rules."""
        found: dict[Permission, ToolRule] = {}
        for rule in self._about_paths():
            allows = rule.decision is Permission.ALLOW
            if allows and secret and rule.path is None:
                continue
            names = {str(access), tool} - ({SHELL_TOOL} if allows else set())
            if any(rule.is_for(name, cwd) for name in names) and self.covers(rule, absolute, real):
                found.setdefault(rule.decision, rule)
        return next((found[decision] for decision in _ORDER if decision in found), None)

    def _rule_below(self, real: str, *names: str) -> ToolRule | None:
        """A rule that restricts something that a walk from here may come by; with names, one for
        these tools."""
        for rule in self._about_paths():
            is_for = not names or any(rule.is_for(name, real) for name in names)
            if is_for and rule.path is not None and rule.decision is not Permission.ALLOW:
                for form in self._forms(rule.path):
                    base, below = self._parts(form, self.files.real(self.root))
                    fixed = posixpath.join(base, re.split(r"[*?]", below)[0])
                    if fixed.startswith(real.rstrip("/") + "/") or real.startswith(fixed):
                        return rule
        return None

    def rule_for_reading(self, cwd: str) -> ToolRule | None:
        """One that keeps anything from being read."""
        for rule in self._about_paths():
            reads = any(rule.is_for(name, cwd) for name in (PathAccess.READ, SHELL_TOOL))
            if reads and rule.path is not None and rule.decision is not Permission.ALLOW:
                return rule
        return None

    def rule_for_writing_below(self, directory: str) -> ToolRule | None:
        """One that keeps something below from being written."""
        return self._rule_below(self.files.real(directory), PathAccess.WRITE, SHELL_TOOL)

    def rule_for_writing_around(self, cwd: str) -> ToolRule | None:
        """One that keeps what is in this directory, or in one above it inside the root, from being
        written: a program that is run here may write it without naming it."""
        real, root = self.files.real(cwd), self.files.real(self.root)
        for rule in self._about_paths():
            writes = any(rule.is_for(name, cwd) for name in (PathAccess.WRITE, SHELL_TOOL))
            if rule.path is None or rule.decision is Permission.ALLOW or not writes:
                continue
            for form in self._forms(rule.path):
                base, below = self._parts(form, root)
                place = posixpath.join(base, _cut(below)[0]) or "/"
                if is_below(real, place) and not is_below(root, place):
                    return rule
            if self.covers(rule, cwd, real):
                return rule
        return None

    def _about_paths(self) -> list[ToolRule]:
        return [rule for rule in self.rules if rule.command is None and rule.text is None]


def _cut(pattern: str) -> tuple[str, bool, str]:
    """The directory before the first `*` or `?`, whether there is one, and what follows."""
    found = re.search(r"[*?]", pattern)
    if found is None:
        return pattern, False, ""
    fixed = pattern[: found.start()].rpartition("/")[0]
    return fixed, True, pattern[len(fixed) :].lstrip("/")
