"""Decide whether a path may be read or written without a question. Pure, except for `FileLookup`.

A path is checked as it is written, with each link that it goes through, and as its resolved target
(`path_walk`). Any of these spellings may be a secret, guarded or denied; only the target decides
whether the path is inside the root. If the target cannot be determined, the path asks.

This module decides only what runs without a question. The tools keep themselves inside the root
while they run (`openat` in `telex.config`), because a link may change in between. Used by `judge`.
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
    """The decision about one command, redirect or path, with its reason."""

    decision: Permission
    why: str
    rule: ToolRule | None = None


@dataclass(frozen=True, slots=True)
class TouchedPath:
    """A path that a command or a tool reads or writes."""

    access: PathAccess
    path: str
    """Absolute, as it is written."""
    real: str
    """The resolved path."""
    is_secret: bool
    """Whether a spelling of the path has the name of a secret, or its target is unknown."""
    verdict: PermissionVerdict


NOWHERE: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""Paths that are always allowed, because they are no files on the disk."""
_ORDER: Final = (Permission.DENY, Permission.ALLOW, Permission.ASK)


def is_name(text: str) -> bool:
    """Return whether the text can be a path at all. A lone surrogate is valid only if it encodes a
    byte that is not UTF-8."""
    return text != "" and not re.search("[\0\ud800-\udc7f\udd00-\udfff]", text)


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """Judges paths: by rules first, then secrets, then by the root and the mode."""

    root: str
    home: str
    mode: Mode
    rules: Sequence[ToolRule]
    files: FileLookup
    own: Sequence[str] = ()
    """The directories of telex: its configuration, its state and the remembered answers."""
    guards: GuardedFiles = field(init=False, compare=False)

    def __post_init__(self) -> None:
        guards = GuardedFiles(self.root, self.home, self.files, self.own)
        object.__setattr__(self, "guards", guards)

    def absolute(self, path: str, cwd: str) -> str:
        """Join the path to the directory. Dots stay, because after a link `..` is another
        directory."""
        return posixpath.join(cwd, path)

    def is_inside(self, path: str) -> bool:
        resolved = self.files.resolve(path)
        return not resolved.unknown and is_below(resolved.end, self.files.real(self.root))

    def is_root(self, path: str) -> bool:
        resolved = self.files.resolve(path)
        return not resolved.unknown and resolved.end == self.files.real(self.root)

    def is_guarded(self, path: str) -> bool:
        return self.guards.is_guarded(path)

    def has_guarded(self, directory: str) -> bool:
        return self.guards.has_guarded(directory)

    def is_other_repository(self, cwd: str) -> bool:
        """Return whether git, searching upwards from `cwd`, may find a repository other than the
        root's. A repository above the root counts as another one: trust in a directory does not
        extend to its parents."""
        real, root = self.files.real(cwd), self.files.real(self.root)
        if not self.is_inside(cwd) or not self.guards.has_entry(root, ".git"):
            return True
        return any(
            self.guards.has_entry(place, "HEAD")
            or (place != root and self.guards.has_entry(place, ".git"))
            for place in self.guards.ancestors(real)
        )

    def _holds_secrets(self, absolute: str, resolved: ResolvedPath) -> bool:
        """Return whether the path is a hidden directory, or a directory whose name makes the files
        in it secrets: a program that starts there does not see that name. The root itself may be
        inside a hidden directory."""
        below = resolved.end.removeprefix(self.files.real(self.root).rstrip("/"))
        named = "/." in below or any(map(is_secret_directory, path_spellings(absolute, resolved)))
        return named and self.files.is_directory(resolved.end)

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
        """Judge one path.

        Args:
            access: whether the path is read or written.
            path: the path as it is written, relative to `cwd`.
            tool: the tool that uses it.
            recursive: the program or tool also reads the files below the path.
            skips_hidden: it skips hidden files, unless it starts in a hidden directory.
        """
        absolute = self.absolute(path, cwd)
        resolved = self.files.resolve(absolute)
        # A word that no system call accepts as a path is a text among a program's arguments.
        is_unknown = resolved.unknown != "" and not is_too_long_path(path)
        secret = is_unknown or self._is_secret(absolute, resolved)
        # A program that starts in `.git` reads `.git/config`.
        secret = secret or (skips_hidden and self._holds_secrets(absolute, resolved))
        rule = self._rule(access, absolute, resolved.end, cwd, tool, secret=secret)
        quoted = in_quotes(absolute)
        if rule is not None:
            verdict = PermissionVerdict(
                rule.decision, f"a rule says {rule.decision} for {quoted}", rule
            )
        elif absolute in NOWHERE:
            verdict = PermissionVerdict(Permission.ALLOW, f"{quoted} is not a file on the disk")
        elif is_unknown:
            why = f"telex cannot determine where {quoted} leads: {resolved.unknown}"
            verdict = PermissionVerdict(Permission.ASK, why)
        elif secret:
            verdict = PermissionVerdict(Permission.ASK, f"{quoted} may contain secrets")
        elif recursive and (below := self._rule_below(resolved.end)):
            verdict = PermissionVerdict(
                Permission.ASK, f"a rule restricts a path below {quoted}", below
            )
        else:
            verdict = self._by_place(access, absolute, tool)
        return TouchedPath(access, absolute, resolved.end, secret, verdict)

    def _is_secret(self, absolute: str, resolved: ResolvedPath) -> bool:
        if any(map(is_secret, path_spellings(absolute, resolved))):
            return True
        is_system = is_below_any(resolved.end, self.files.system_places())
        # Paths in `/proc` and `/dev` themselves were judged by their names.
        if is_system and not resolved.end.startswith(("/proc/", "/dev/")):
            return True
        return is_below_any(resolved.end, self.guards.secret_places)

    def covers(self, rule: ToolRule, absolute: str, real: str) -> bool:
        """Return whether the path of a rule matches this path. A rule that allows must match the
        resolved path. A rule that restricts may match any spelling of the path, and its own path is
        also compared with its links resolved."""
        if rule.path is None:
            return True
        resolved = self.files.resolve(absolute)
        root = self.files.real(self.root)
        if rule.decision is Permission.ALLOW:
            return not resolved.unknown and self._matches(rule.path, real, root)
        return any(
            self._matches(pattern, place, base, fold=True)
            for pattern in self._resolved_patterns(rule.path)
            for base in {root, self.root}
            for place in {real, *path_spellings(absolute, resolved)}
        )

    def _resolved_patterns(self, pattern: str) -> Iterator[str]:
        """Yield a rule's path, and the same with the links in its fixed part resolved."""
        yield pattern
        base, below = self._parts(pattern, self.files.real(self.root))
        fixed, has_wildcard, rest = _split_pattern(below)
        place = posixpath.join(base, fixed) if base else fixed
        real = self.files.real(place)
        if real != posixpath.normpath(place):
            yield posixpath.join(real, rest) if has_wildcard else real

    def _matches(self, pattern: str, path: str, root: str, *, fold: bool = False) -> bool:
        """Compare the part below the root or the home, because their own names are no patterns.
        With `fold`, ignore case, as some file systems do."""
        base, below = self._parts(pattern, root)
        if fold:
            pattern, path, base, below = map(str.casefold, (pattern, path, base, below))
        if base == "":
            return matches_pattern(pattern, path)
        inside = is_below(path, base) and matches_pattern(below, path[len(base.rstrip("/")) + 1 :])
        return inside or (below == "**" and path == base)

    def _parts(self, pattern: str, root: str) -> tuple[str, str]:
        """Split a rule's path into the directory to which it is relative, and the rest."""
        if pattern.startswith("/"):
            return "", pattern
        return (self.home, pattern[2:]) if pattern.startswith("~/") else (root, pattern)

    def _by_place(self, access: PathAccess, absolute: str, tool: str) -> PermissionVerdict:
        quoted = in_quotes(absolute)
        if self.mode is Mode.FULL:
            return PermissionVerdict(Permission.ALLOW, "mode full")
        if not self.is_inside(absolute):
            return PermissionVerdict(Permission.ASK, f"{quoted} is outside the workspace root")
        if access is PathAccess.READ:
            return PermissionVerdict(Permission.ALLOW, f"{quoted} is inside the workspace root")
        if self.is_guarded(absolute):
            return PermissionVerdict(
                Permission.ASK, f"{quoted} is guarded: programs or agents act on its content"
            )
        if self.mode is not Mode.TRUSTED:
            return PermissionVerdict(
                Permission.ASK, f"mode {self.mode} asks before writing {quoted}"
            )
        # The file tools replace the file by a new one, so the other hard link is not changed.
        if tool == SHELL_TOOL and self.files.is_hard_linked(absolute):
            return PermissionVerdict(
                Permission.ASK,
                f"{quoted} has several hard links, and one may be outside the workspace root",
            )
        return PermissionVerdict(
            Permission.ALLOW, f"{quoted} is inside the workspace root; mode trusted"
        )

    def _rule(
        self, access: PathAccess, absolute: str, real: str, cwd: str, tool: str, *, secret: bool
    ) -> ToolRule | None:
        """Return the strongest rule for a path. A rule that allows must name the access, not the
        tool `shell`: writes of a shell are allowed by rules for `write`."""
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
        """Return a rule that restricts a path which a recursive walk from here may reach; with
        `names`, only a rule for these tools."""
        for rule in self._about_paths():
            is_for = not names or any(rule.is_for(name, real) for name in names)
            if is_for and rule.path is not None and rule.decision is not Permission.ALLOW:
                for form in self._resolved_patterns(rule.path):
                    base, below = self._parts(form, self.files.real(self.root))
                    fixed = posixpath.join(base, re.split(r"[*?]", below)[0])
                    if fixed.startswith(real.rstrip("/") + "/") or real.startswith(fixed):
                        return rule
        return None

    def rule_for_reading(self, cwd: str) -> ToolRule | None:
        """Return a rule that restricts reading any path."""
        for rule in self._about_paths():
            reads = any(rule.is_for(name, cwd) for name in (PathAccess.READ, SHELL_TOOL))
            if reads and rule.path is not None and rule.decision is not Permission.ALLOW:
                return rule
        return None

    def rule_for_writing_below(self, directory: str) -> ToolRule | None:
        """Return a rule that restricts writing a path below the directory."""
        return self._rule_below(self.files.real(directory), PathAccess.WRITE, SHELL_TOOL)

    def rule_for_writing_around(self, cwd: str) -> ToolRule | None:
        """Return a rule that restricts writing files in this directory, or in a parent of it inside
        the root: a program that runs here may write them without naming them."""
        real, root = self.files.real(cwd), self.files.real(self.root)
        for rule in self._about_paths():
            writes = any(rule.is_for(name, cwd) for name in (PathAccess.WRITE, SHELL_TOOL))
            if rule.path is None or rule.decision is Permission.ALLOW or not writes:
                continue
            for form in self._resolved_patterns(rule.path):
                base, below = self._parts(form, root)
                place = posixpath.join(base, _split_pattern(below)[0]) or "/"
                if is_below(real, place) and not is_below(root, place):
                    return rule
            if self.covers(rule, cwd, real):
                return rule
        return None

    def _about_paths(self) -> list[ToolRule]:
        return [rule for rule in self.rules if rule.command is None and rule.text is None]


def _split_pattern(pattern: str) -> tuple[str, bool, str]:
    """Return the directory before the first `*` or `?`, whether there is one, and the rest."""
    found = re.search(r"[*?]", pattern)
    if found is None:
        return pattern, False, ""
    fixed = pattern[: found.start()].rpartition("/")[0]
    return fixed, True, pattern[len(fixed) :].lstrip("/")
