"""The cases of tests/corpus/permissions, and the machine on which they are judged: its files are
declared in JSON, so that no disk is read."""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from telex.agent.permissions import Judge, Mode, PermissionRequest, RuleLayer, rules_from_tables
from telex.agent.permissions.path_walk import SYSTEM_PLACES, DirectoryScan, Link, LinkFollower

CORPUS = Path(__file__).parent / "corpus" / "permissions"
WORLD = json.loads((CORPUS / "world.json").read_text())
ROOT: str = WORLD["root"]


class DeclaredFiles(LinkFollower):
    """The `FileLookup` of the declared machine. A case may add links, files with text, and
    errors."""

    def __init__(self, case: Mapping[str, Any] | None = None) -> None:
        case = case or {}
        links = {**WORLD["links"], **case.get("links", {})}
        self.targets = {_placed(name): target for name, target in links.items()}
        self.texts = {_placed(name): text for name, text in case.get("texts", {}).items()}
        self.errors = {_placed(name): code for name, code in case.get("errors", {}).items()}
        self.shared = {_placed(name) for name in case.get("hard_links", ())}
        self.system = (*SYSTEM_PLACES, *map(_placed, case.get("system", ())))
        self.directories = {_placed(n) for n in WORLD["files"] if n.endswith("/")}
        self.all: set[str] = set()
        for path in (*map(_placed, WORLD["files"]), *self.targets, *self.texts):
            while path != "/":
                self.all.add(path)
                path = posixpath.dirname(path)

    def link(self, path: str) -> Link | None:
        if path in self.errors:
            code = getattr(errno, self.errors[path])
            raise OSError(code, os.strerror(code), path)
        target = self.targets.get(path)
        return None if target is None else Link(target)

    def system_places(self) -> tuple[str, ...]:
        return self.system

    def glob(self, pattern: str) -> tuple[str, ...] | None:
        parts = posixpath.normpath(pattern).split("/")
        found = [path for path in sorted(self.all) if self._fits(path.split("/"), parts)]
        for link in self.targets:
            names = link.split("/")
            is_above = len(names) < len(parts) and self._fits(names, parts[: len(names)])
            if is_above and self.resolve(link).unknown:
                return None
        return tuple(found)

    def is_directory(self, path: str) -> bool:
        real = self.real(path)
        return real in self.directories or any(name.startswith(real + "/") for name in self.all)

    def links(self, directory: str, depth: int | None = None) -> tuple[str, ...] | None:
        return self.scan(directory, depth).links

    def scan(
        self, directory: str, depth: int | None = None, *, whole: bool = False
    ) -> DirectoryScan:
        below = directory.rstrip("/") + "/"
        found = (link for link in sorted(self.targets) if link.startswith(below))
        levels = len(below.split("/")) - 1
        links = (one for one in found if depth is None or one.count("/") < levels + depth)
        named = (one for one in sorted(self.all) if posixpath.basename(one) == ".git")
        trees = (posixpath.dirname(one) for one in named if one.startswith(below))
        return DirectoryScan(tuple(links), tuple(trees))

    def contents(self, path: str, most_bytes: int) -> bytes | None:
        if self.is_directory(path):
            return None
        return self.texts.get(self.real(path), "").encode()[: most_bytes + 1]

    def is_hard_linked(self, path: str) -> bool:
        return self.real(path) in self.shared

    def is_own(self, path: str) -> bool:
        return True

    def _fits(self, names: list[str], parts: list[str]) -> bool:
        return len(names) == len(parts) and all(
            fnmatch.fnmatchcase(name, part) and (part[:1] == "." or name[:1] != ".")
            for name, part in zip(names, parts, strict=True)
        )


def _placed(name: str) -> str:
    """Return the absolute path of a name below the root, or below the home for `~/`."""
    name = name.rstrip("/")
    if name.startswith("~/"):
        return posixpath.join(WORLD["home"], name[2:])
    return posixpath.join(ROOT, name)


FILES = DeclaredFiles()
_ADDED = {"links", "texts", "errors", "hard_links", "system"}


def cases(*files: str) -> list[dict[str, Any]]:
    paths = [CORPUS / f"{name}.json" for name in files] or sorted(CORPUS.glob("*.json"))
    return [
        {**case, "file": path.stem}
        for path in paths
        if path.stem != "world"
        for case in json.loads(path.read_text())["cases"]
    ]


def judge_of(case: dict[str, Any]) -> Judge:
    rules = rules_from_tables(case.get("rules", ()), "corpus")
    return Judge(
        [RuleLayer("corpus", rules, trusted=case.get("layer_trusted", True))],
        Mode(case.get("mode", WORLD["mode"])),
        ROOT,
        WORLD["home"],
        DeclaredFiles(case) if case.keys() & _ADDED else FILES,
        trusted=case.get("trusted", WORLD["trusted"]),
        own=[_placed(name) for name in case.get("own", ())],
    )


def request_of(case: dict[str, Any]) -> PermissionRequest:
    if "command" in case:
        return shell(case["command"], case.get("cwd", ROOT))
    return PermissionRequest(case["tool"], case["arguments"], case.get("cwd", WORLD["cwd"]))


def shell(command: str, cwd: str = ROOT) -> PermissionRequest:
    return PermissionRequest("shell", {"command": command}, cwd)
