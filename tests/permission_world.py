"""The machine of tests/corpus/permissions, said instead of looked at, and its cases."""

from __future__ import annotations

import fnmatch
import json
import posixpath
from pathlib import Path
from typing import Any

from telex.agent.judging import Judge, Layer, Mode, Request, from_tables

CORPUS = Path(__file__).parent / "corpus" / "permissions"
WORLD = json.loads((CORPUS / "world.json").read_text())
ROOT: str = WORLD["root"]


class Said:
    """`paths.Files` of the world."""

    def __init__(self) -> None:
        self.links = {f"{ROOT}/{name}": target for name, target in WORLD["links"].items()}
        self.all = set(self.links)
        for name in WORLD["files"]:
            path = f"{ROOT}/{name.rstrip('/')}"
            while path != "/":
                self.all.add(path)
                path = posixpath.dirname(path)

    def real(self, path: str) -> str:
        done = "/"
        for part in path.split("/"):
            done = posixpath.normpath(posixpath.join(done, part))
            done = self.links.get(done, done)
        return done

    def names(self, pattern: str) -> tuple[str, ...]:
        parts = posixpath.normpath(pattern).split("/")
        return tuple(path for path in sorted(self.all) if self._fits(path.split("/"), parts))

    def is_directory(self, path: str) -> bool:
        return any(name.startswith(self.real(path) + "/") for name in self.all) or any(
            f"{ROOT}/{name}" == self.real(path) + "/" for name in WORLD["files"]
        )

    def _fits(self, names: list[str], parts: list[str]) -> bool:
        return len(names) == len(parts) and all(
            fnmatch.fnmatchcase(name, part) and (part[:1] == "." or name[:1] != ".")
            for name, part in zip(names, parts, strict=True)
        )


FILES = Said()


def cases(*files: str) -> list[dict[str, Any]]:
    paths = [CORPUS / f"{name}.json" for name in files] or sorted(CORPUS.glob("*.json"))
    return [
        {**case, "file": path.stem}
        for path in paths
        if path.stem != "world"
        for case in json.loads(path.read_text())["cases"]
    ]


def judge_of(case: dict[str, Any]) -> Judge:
    rules = from_tables(case.get("rules", ()), "corpus")
    return Judge(
        [Layer("corpus", rules, trusted=case.get("layer_trusted", True))],
        Mode(case.get("mode", WORLD["mode"])),
        ROOT,
        WORLD["home"],
        FILES,
        trusted=case.get("trusted", WORLD["trusted"]),
    )


def request_of(case: dict[str, Any]) -> Request:
    if "command" in case:
        return shell(case["command"])
    return Request(case["tool"], case["arguments"], WORLD["cwd"])


def shell(command: str, cwd: str = ROOT) -> Request:
    return Request("shell", {"command": command}, cwd)
