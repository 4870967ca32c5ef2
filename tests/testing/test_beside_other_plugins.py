"""The plugin beside syrupy 4 and 6, pytest-asyncio, anyio, xdist and rerunfailures, each installed in
a venv of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
OTHERS = ["pytest-asyncio", "anyio", "pytest-xdist", "pytest-rerunfailures"]

SUITE = """
import pathlib
import pytest

PRINTF = ["sh", "-c", "printf 'ready %s' one; cat"]
HOW = {"rows": 4, "cols": 30}


def test_plain(telex, golden):
    golden(telex.spawn(PRINTF, **HOW))


def test_syrupy(telex, snapshot):
    with telex.spawn(PRINTF, **HOW) as term:
        term.wait("ready one")
        assert term.text() == snapshot


@pytest.mark.asyncio
async def test_asyncio(telex, golden):
    async with telex.spawn(PRINTF, **HOW) as term:
        await term.wait("ready one")
        await golden(term)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(telex, golden, anyio_backend):
    async with telex.spawn(PRINTF, **HOW) as term:
        await golden(term)


@pytest.fixture
async def open_terminal(telex):
    async with telex.spawn(PRINTF, **HOW) as term:
        yield term


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_terminal_of_a_coroutine_fixture(open_terminal, golden, anyio_backend):
    await golden(open_terminal)


@pytest.mark.flaky(reruns=2)
def test_flaky(telex, golden, tmp_path_factory):
    seen = tmp_path_factory.getbasetemp() / "seen"
    term = telex.spawn(PRINTF, **HOW)
    golden(term)
    if not seen.exists():
        seen.write_text("once")
        term.wait("never", timeout=0.1)


def test_fails(telex):
    telex.spawn(PRINTF, **HOW).wait("never", timeout=0.1)
"""


@pytest.mark.counted
@pytest.mark.soak  # it installs packages
@pytest.mark.parametrize("syrupy", ["syrupy==4.8.0", "syrupy>=6.1,<7"])
def test_the_plugin_works_beside_others(syrupy: str, tmp_path: Path) -> None:
    venv, work = tmp_path / "venv", tmp_path / "work"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin/python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, "-e", str(ROOT), syrupy, *OTHERS], check=True)
    work.mkdir()
    (work / "test_it.py").write_text(SUITE)
    (work / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")

    def run(*options: str) -> str:
        command = [python, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options]
        command.append(f"--basetemp={tmp_path}/base")
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr  # `test_fails` does
        return done.stdout

    # syrupy's option writes the goldens of both.
    for options in (["--snapshot-update"], [], ["-n", "2"]):
        said = run(*options)
        assert "1 failed, 6 passed, 1 rerun in" in said, said
        assert "unused golden" not in said
        assert "what the terminals showed: .telex-artifacts/report.html" in said
        assert said.count("FAILED") == 1
    goldens = sorted(path.name for path in (work / "__golden__/test_it").iterdir())
    assert len(goldens) == 5
    versions = subprocess.run(
        [python, "-m", "pip", "list"], capture_output=True, text=True, check=True
    )
    listed = [line for line in versions.stdout.split("\n") if "pytest" in line or "syrupy" in line]
    print(f"\nbeside {', '.join(' '.join(line.split()[:2]) for line in listed)}: 3 runs, all green")
