"""The names of golden files, and which of them no test uses any more.

Pure, and with the standard library only: `pytest_plugin` uses it in every run.

    tests/test_menu.py::TestMenu::test_opens[40x10]
    tests/__golden__/test_menu/TestMenu.test_opens[40x10].txt
    tests/__golden__/test_menu/TestMenu.test_opens[40x10].second.txt
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

DIRECTORY = "__golden__"
SUFFIX = ".txt"
_UNSAFE = re.compile(r"[^\w\-+=,@\[\]() ]")
_LONGEST = 119
"""The bytes of a test's name, and of a golden's: file systems take 255 for both and the suffix."""


def safe_name(name: str) -> str:
    """Return a name that every file system takes. Names that had to change get a short hash, so
    that two of them stay two."""
    safe = _UNSAFE.sub("_", name).strip()
    return _hashed(safe, name) if safe != name else _short(safe)


def _short(name: str) -> str:
    return _hashed(name, name) if len(name.encode()) > _LONGEST else name


def _hashed(safe: str, name: str) -> str:
    """Return a safe name, cut, with a hash of the name that it stands for."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe.encode()[: _LONGEST - 9].decode('utf-8', 'ignore')}-{digest}"


def stem_of(node_id: str) -> str:
    """Return the beginning of the file names of a test: its name in its module, with its classes
    and parameters."""
    *_, name = node_id.split(".py::", 1)
    name, bracket, parameters = name.partition("[")
    safe = ".".join([safe_name(part) for part in name.split("::")])
    return _short(safe + (safe_name(bracket + parameters) if bracket else ""))


def golden_name(stem: str, name: str) -> str:
    """Return the file name of a golden of a test."""
    return f"{stem}.{safe_name(name)}{SUFFIX}" if name else f"{stem}{SUFFIX}"


def file_key(name: str) -> str:
    """Return what a file system that ignores case compares of a name."""
    return unicodedata.normalize("NFC", name).casefold()


def recording_name(node_id: str) -> str:
    """Return the beginning of the file names of a test's recordings, which share a directory with
    those of all other tests: `tests-test_menu-TestMenu.test_opens`."""
    module, _, name = node_id.partition("::")
    module = module.removesuffix(".py")
    shown = f"{module.replace('/', '-')}-{stem_of(node_id)}"
    ambiguous = re.search(r"[^\w/]", module) or "-" in name.partition("[")[0]
    return _hashed(_UNSAFE.sub("_", shown), node_id) if ambiguous else _short(shown)


def unused_goldens(
    existing: dict[str, list[str]],
    collected: dict[str, str],
    *,
    passed: set[str],
    used: set[str],
    whole: bool,
) -> list[str]:
    """Return golden files that no test uses.

    A file of a test that passed is unused if the test did not compare it. A file without a test is
    unused if the run had all tests of the module.

    Args:
        existing: The file names in each directory. A directory may be that of a module that is
            gone.
        collected: Directory and stem of each test, by its node id.
        passed: The node ids of tests that passed.
        used: Directory and name of each file that was compared or written.
        whole: Whether no test was deselected.
    """
    stems: dict[str, dict[str, str]] = {}
    for node_id, place in collected.items():
        directory, _, stem = place.rpartition("/")
        stems.setdefault(directory, {})[stem] = node_id
    found = []
    for directory, names in existing.items():
        for name in names:
            owner = _owner(name.removesuffix(SUFFIX), stems.get(directory, {}))
            idle = whole if owner is None else owner in passed
            if idle and f"{directory}/{name}" not in used:
                found.append(f"{directory}/{name}")
    return sorted(found)


def _owner(name: str, stems: dict[str, str]) -> str | None:
    """Return the test that a file belongs to: the longest stem that its name begins with."""
    while name:
        if name in stems:
            return stems[name]
        name, _, _ = name.rpartition(".")
    return None
