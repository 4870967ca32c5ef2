"""An `rg` that runs without a question prints no secret: the globs of ripgreprc are compared with
every pattern of names.toml, from every directory."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from permission_world import shell
from telex.agent.permissions import DiskLookup, Judge, Mode, Permission
from telex.agent.permissions.reader_environment import unattended_environment
from telex.agent.permissions.ripgrep_globs import configuration
from telex.agent.permissions.sensitive_names import (
    BACKUP_NAMES,
    SECRET_NAMES,
    is_secret,
    is_secret_directory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADDED = [one.replace("[0-9]", "12") for one in BACKUP_NAMES["added"]]
AROUND = [one.replace("*", "{}") for one in BACKUP_NAMES["around"]]
IN_SECRETS = ["a", "db_pass", "z" * 200, "é", "a b", "db.yml"]
CODE = ["main.py", "sub/main.py", "sub/secret/main.py", "snap/x/main.py", "Library/x/y/main.py"]


def test_ripgreprc_is_generated_from_the_names() -> None:
    kept = files("telex.agent.permissions").joinpath("ripgreprc").read_text("utf-8")
    assert kept == configuration(), "python -m telex.agent.permissions.ripgrep_globs > ripgreprc"


def _names_of_patterns() -> Iterator[str]:
    """Yield a name for each pattern, in its own directory, with copies of it and of its parents."""
    for at, rule in enumerate(SECRET_NAMES.single):
        name = rule.replace("*", "zz")
        yield f"s{at}/{name}"
        yield f"s{at}/{name.upper()}"
        yield f"s{at}/in/{name}{ADDED[at % len(ADDED)]}"
        yield f"s{at}/{name}{ADDED[at % 7]}{ADDED[-at % len(ADDED)]}"
        yield f"s{at}/{AROUND[at % len(AROUND)].format(name)}"
    for at, rule in enumerate(SECRET_NAMES.deep):
        for between in ("", "q.d/r/") if "**" in rule else ("",):
            name = rule.lstrip("/").replace("**/", between).replace("*", "zz")
            yield f"d{at}/{name}"
            yield f"d{at}/{name.title()}"
            yield f"d{at}/{name}.3"
            yield f"d{at}/{name}/inner.txt"
            first, _, rest = name.partition("/")
            for added in (*ADDED[at % 20 :: 20], "-2", ".2"):
                yield f"d{at}/{first}{added}/{rest}"
    for name in IN_SECRETS:
        for place in (
            "secrets",
            "passwords",
            "SECRETS",
            "Passwords",
            "secrets-2",
            "secrets.1",
            "secrets~",
        ):
            for between in ("", "prod/", "v1.2/sub/"):
                yield f"p/{place}/{between}{name}"
                yield f"p/{place}/{between}{name}.1"
                yield f"p/{place}/{between}{name}.bak"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("names") / "root"
    for name in sorted({*_names_of_patterns(), *CODE}):
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("needle\n")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # it is the directory of another name
    (root / ".ignore").write_text("!*\n")
    return root


def _found(rg: str, environ: dict[str, str], cwd: str, *words: str) -> set[str]:
    done = subprocess.run(
        [rg, "--null", "-l", "needle", *words],
        cwd=cwd,
        env=environ,
        capture_output=True,
        timeout=60,
    )
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {os.path.normpath(os.path.join(cwd, name)) for name in names if name}


def _secrets(found: set[str], root: Path) -> list[str]:
    return sorted(one for one in found if is_secret("/./" + os.path.relpath(one, root)))


def test_from_the_root_rg_prints_no_secret_of_any_rule(
    tree: Path, program: Callable[[str], str]
) -> None:
    found = _found(program("rg"), unattended_environment(os.environ, str(tree)), str(tree))
    assert _secrets(found, tree) == []
    assert {f"{tree}/{name}" for name in CODE} <= found
    made = [os.path.join(place, one) for place, _, names in os.walk(tree) for one in names]
    assert len(_secrets(set(made), tree)) > 1500


def test_from_any_directory_rg_asks_or_prints_no_secret(
    tree: Path, program: Callable[[str], str]
) -> None:
    rg, environ = program("rg"), unattended_environment(os.environ, str(tree))
    judge = Judge([], Mode.MINIMAL, str(tree), str(tree.parent / "home"), DiskLookup())
    places = sorted(place for place, _, _ in os.walk(tree) if re.search("/[dp][0-9]*/", place))
    asked = ran = 0
    for at, place in enumerate(places[::5]):
        within = os.path.relpath(place, tree)
        ways = ((place, ()), (place, ("..",)), (str(tree), (within,)))
        cwd, words = ways[at % len(ways)]
        said = judge.judge(shell(" ".join(("rg needle", *(f"'{word}'" for word in words))), cwd))
        if said.decision is Permission.ASK:
            asked += 1
        else:
            ran += 1
            assert _secrets(_found(rg, environ, cwd, *words), tree) == [], (cwd, words)
    assert asked > 20
    assert ran > 5


ASKED = """
cd secrets/v1.2 && rg x
cd secrets/v1.2/sub && rg x ..
cd secrets~ && rg x
cd secrets-2 && rg x
cd snap && rg x
cd Library && rg x
cd Library/any && rg x
cd a/SECRETS/v1.2 && rg x
rg x secrets/v1.2
rg x link
rg x link/v1.2
cd link/v1.2 && rg x
cd named/secrets && rg x
cd secrets/v1.2 && rg x ../..
rg x named/secrets
"""
NOT_ASKED = """
cd snap/x && rg x
cd a && rg x
rg x secrets/README.md
rg x
"""


def test_rg_asks_in_a_directory_whose_name_makes_secrets(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("secrets/v1.2/sub", "secrets~", "secrets-2", "snap/x", "Library/any", "a", "data"):
        (root / name).mkdir(parents=True)
    (root / "a" / "SECRETS" / "v1.2").mkdir(parents=True)
    (root / "secrets" / "README.md").write_text("x\n")
    (root / "link").symlink_to("secrets")
    (root / "named").mkdir()
    (root / "named" / "secrets").symlink_to("../data")
    judge = Judge([], Mode.MINIMAL, str(root), str(tmp_path / "home"), DiskLookup())
    for command in ASKED.strip().splitlines():
        assert judge.judge(shell(command, str(root))).decision is Permission.ASK, command
    for command in NOT_ASKED.strip().splitlines():
        said = judge.judge(shell(command, str(root)))
        assert said.decision is Permission.ALLOW, (command, said.why)
    inside = Judge([], Mode.MINIMAL, str(root / "secrets"), str(tmp_path / "home"), DiskLookup())
    assert inside.judge(shell("rg x", str(root / "secrets"))).decision is Permission.ASK


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/w/secrets", True),
        ("/w/secrets/", True),
        ("/w/secrets/a.b/c", True),
        ("/w/secrets.bak/a", True),
        ("/home/me/.config", True),
        ("/home/me/.config/nvim", False),
        ("/home/me/snap", True),
        ("/home/me/snap/code", False),
        ("/home/me/Library/Any Thing", True),
        ("/home/me/Library/Any/Thing", False),
        ("/etc/pki", True),
        ("/w/etc/pki", False),
        ("/w/secret", False),
        ("/w/src", False),
    ],
)
def test_secret_directories_are_recognised(path: str, expected: bool) -> None:
    assert is_secret_directory(path) is expected
