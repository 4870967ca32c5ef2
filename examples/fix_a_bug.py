"""An agent fixes a bug in a repository by itself: it runs the tests, reads, edits, and tests again.

    python examples/fix_a_bug.py

The language model is `scripted_model`, which decides by the results of the tools and does the same
each time, so that this runs without a provider. With a model of your own, write its table
`[models.NAME]` instead, and leave the rest as it is. Each command and each change is asked about on
the terminal; `--yes` allows all of them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import telex.agent
from telex.agent.ui_callbacks import Confirm

sys.path.insert(0, str(Path(__file__).parent))
from scripted_model import Answer, Conversation, serve

SOURCE = """\
def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle] + ordered[middle + 1]) / 2
"""
TESTS = """\
import unittest

from statistic import median


class Median(unittest.TestCase):
    def test_of_an_odd_number_of_values(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_of_an_even_number_of_values(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)


if __name__ == "__main__":
    unittest.main()
"""
TASK = "A test fails. Find out why, and fix it."
# -B: an edit in the same second that keeps the size would leave the compiled file in use.
RUN_TESTS = ("shell", {"command": "python3 -B test_statistic.py"})
FIX = {
    "file_path": "statistic.py",
    "old_string": "(ordered[middle] + ordered[middle + 1])",
    "new_string": "(ordered[middle - 1] + ordered[middle])",
}


def decide(conversation: Conversation) -> Answer:
    """What a model would say, by what the tools returned until now."""
    results = conversation.results
    if not results:
        return Answer("I run the tests first.", [RUN_TESTS], "The tests show what is wrong.")
    if len(results) == 1 and "FAILED" in results[0]:
        files = ("statistic.py", "test_statistic.py")
        return Answer("One fails. I read both files.", [("read", {"file_path": f}) for f in files])
    if len(results) == 3 and "middle + 1" in results[1]:
        return Answer("For an even number it takes the wrong pair of values.", [("edit", FIX)])
    if len(results) == 4:
        return Answer("Now the tests should pass.", [RUN_TESTS])
    if len(results) == 5 and "OK" in results[-1]:
        return Answer("Fixed: `median` took the pair after the middle. Both tests pass.")
    return Answer("I could not fix it.")


def make_repository(directory: Path) -> None:
    (directory / "statistic.py").write_text(SOURCE)
    (directory / "test_statistic.py").write_text(TESTS)
    subprocess.run(["git", "init", "--quiet", directory], check=True)


def configuration(url: str, dialect: str = "chat") -> str:
    """The table of the model in config.toml."""
    return f'[models.scripted]\ndialect = "{dialect}"\nbase_url = "{url}"\nmodel = "scripted"\n'


def telex_home(directory: Path, config: str) -> dict[str, str]:
    """Write a configuration of its own for the agent, and return the variable that names it."""
    place = directory.parent / f"{directory.name}.telex"
    place.mkdir(mode=0o700)
    (place / "config.toml").write_text(config)
    return {"TELEX_HOME": str(place)}


def ask(question: telex.agent.UiConfirmRequestParams) -> bool:
    print(question.message)
    try:
        return input("Allow? [y/N] ").strip().lower() == "y"
    except EOFError:  # nobody is there to answer
        return False


def allow(question: telex.agent.UiConfirmRequestParams) -> bool:
    print("  allowed:", question.message.splitlines()[0])
    return True


async def main(directory: Path, confirm: Confirm) -> str | None:
    """Return the answer of the agent."""
    make_repository(directory)
    async with serve(decide) as model:
        home = telex_home(directory, configuration(model.url))
        async with telex.agent.spawn(env=home, cwd=directory, confirm=confirm) as agent:
            run = await agent.run_start(TASK)
            async for event in run:
                match event:
                    case telex.agent.TextEvent(content=text):
                        print("*", text)
                    case telex.agent.ToolCallEvent(tool=tool, args=args):
                        print("  -", tool, args)
            for file in (await agent.run_diff(run.run_id)).files:
                print(file.diff)
    assert run.result is not None
    print(run.result.answer)
    return run.result.answer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / "work"
        work.mkdir()
        asyncio.run(main(work, allow if "--yes" in sys.argv else ask))
