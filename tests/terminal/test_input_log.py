"""The log of inputs by itself: what the redactor is shown together with a prompt."""

from __future__ import annotations

import pytest

from telex.redaction import Redactor
from telex.rpc.identity import Identity
from telex.terminal.input_log import AuthoredInput, InputLog
from telex.terminal.transcript import Transcript

TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WHO = Identity("process", "test", 1, 1)


@pytest.mark.parametrize("prompt", ["", "passwor", "$ ", "x", "passwordX\x7f"])
@pytest.mark.parametrize("cut", [0, 1, 20, 39])
def test_a_token_is_masked_whatever_stands_before_the_cursor(prompt: str, cut: int) -> None:
    transcript = Transcript()
    log = InputLog(transcript)
    for number, typed in enumerate((TOKEN[:cut], f"{TOKEN[cut:]}\n")):
        entry = AuthoredInput(WHO, "text", "", typed)
        entry.prompt = "" if number else prompt
        log.add(entry)
    transcript.feed(f"{TOKEN}\r\n".encode())
    found, _ = log.read(Redactor(), None, 10)
    assert set("".join(text for _, text in found).replace("[REDACTED]", "")) <= {"\n"}


def test_a_prompt_still_says_that_a_password_follows() -> None:
    transcript = Transcript()
    log = InputLog(transcript)
    entry = AuthoredInput(WHO, "text", "", "correcthorse7\n")
    entry.prompt = "password: "
    log.add(entry)
    transcript.feed(b"correcthorse7\r\n")
    ((_, text),), _ = log.read(Redactor(), None, 10)
    assert text == "[REDACTED]\n"
