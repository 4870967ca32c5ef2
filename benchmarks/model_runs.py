"""Runs of a language model: the memory of many at once, and the compaction of a long conversation.

The server of the model is that of `models`. Controls: the same process without a run, and the bare
decoding of the stored messages, which any compaction has to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Raw

from benchmarks.agent_runs import Ui
from benchmarks.figures import Row, in_turns, memory
from telex.agent.compaction import cut_index, summary_text, transcript
from telex.agent.conversation import result_message, user_message, with_all_results
from telex.agent.messages import (
    AssistantMessage,
    Message,
    TextPart,
    ToolCallPart,
    decode_message,
    encode,
)
from telex.agent.models.token_estimate import estimate_message

RUNS, MESSAGES, ROUNDS = 32, 100_000, 3


def memory_of_runs(url: str) -> Row:
    """What one run of a model adds to the server, while its answer streams."""
    with tempfile.TemporaryDirectory() as directory:
        home, path = Path(directory, "home"), Path(directory, "s")
        home.mkdir(0o700)
        table = f'[models.m]\ndialect = "chat"\nbase_url = "{url}/endless"\nmodel = "m"\n'
        (home / "config.toml").write_text(table)
        with subprocess.Popen(
            [sys.executable, "-m", "telex", "agent", "--socket", str(path), "--root", directory],
            env={**os.environ, "TELEX_HOME": str(home)},
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stderr
            child.stderr.readline()  # it listens
            ui = Ui(path, supports_deltas=True)
            try:
                ui.start()  # the first loads what the others have
                ui.until(b'"text.delta"')
                before = memory(child.pid)
                for _ in range(RUNS - 1):
                    ui.start()
                for _ in range(RUNS - 1):
                    ui.until(b'"text.delta"')
                after = memory(child.pid)
            finally:
                ui.close()
                child.terminate()
    return Row(f"models: memory of one of {RUNS} runs", (after - before) / (RUNS - 1) * 1000, "KB")


def compaction() -> Row:
    """The time without the call of the model, from stored messages to the summary's message."""
    stored = [encode(message) for message in _conversation()]

    def ours() -> float:
        began = time.perf_counter()
        messages = [one for _, one in with_all_results([decode_message(one) for one in stored])]
        at = cut_index(messages, [estimate_message(one) for one in messages], 50_000)
        transcript(messages[:at], 100_000)
        summary_text("in short", messages[:at], messages[at:], "")
        return time.perf_counter() - began

    def bare() -> float:
        began = time.perf_counter()
        for one in stored:
            decode_message(one)
        return time.perf_counter() - began

    measured = in_turns({"ours": ours, "bare": bare}, ROUNDS)
    mine, theirs = measured["ours"], measured["bare"]
    figure, spread = f"models: compaction of {MESSAGES:,} messages", (mine[0], mine[-1])
    return Row(figure, mine[0], "s", theirs[0], "decoding them", "", spread)


def _conversation() -> list[Message]:
    said: list[Message] = []
    for number in range(MESSAGES // 4):
        call = ToolCallPart(
            f"c{number}", "read", Raw(b'{"file_path":"src/f%d.py"}' % (number % 50))
        )
        said += [
            user_message("Please look at the next file."),
            AssistantMessage((call,), "m"),
            result_message(call.id, "a line of the file\n" * 20),
            AssistantMessage((TextPart("It is fine."),), "m"),
        ]
    return said
