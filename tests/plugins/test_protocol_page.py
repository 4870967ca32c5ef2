"""Compares the conversation on the protocol's page with that of a real plugin."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scripts.plugin_protocol_examples import CONVERSATION, Exchange, Message
from scripts.render_plugin_protocol import WORDS, schemas_and_types

from telex.plugins import protocol as spec
from telex.plugins.check.bench import CheckedProcess, frame

ROOT = Path(__file__).parent.parent.parent
COUNTER = ROOT / "examples/plugins/counter.py"
PAGE = ROOT / "docs/reference/plugin-protocol.md"


def shape(value: Any) -> Any:
    """Return the part that is compared: members and types, and codes and names by value."""
    match value:
        case dict():
            exact = {"jsonrpc", "id", "method", "code", "protocol", "protocolVersion", "name"}
            return {key: its if key in exact else shape(its) for key, its in value.items()}
        case list():
            return [shape(its) for its in value]
        case bool() | None:
            return type(value)
        case int() | float():
            return "number"
        case _:
            return type(value)


async def test_a_real_plugin_has_the_conversation_of_the_page(tmp_path: Path) -> None:
    subject = await CheckedProcess.start([sys.executable, str(COUNTER)], dict(os.environ), 10.0)
    try:
        for exchange in CONVERSATION:
            await _repeat(subject, exchange, tmp_path)
        assert (await subject.exit()).code == 0
    finally:
        await subject.close()
    assert (tmp_path / "motd").read_text() == "Good morning\n"
    assert not subject.strays


async def _repeat(subject: CheckedProcess, exchange: Exchange, directory: Path) -> None:
    before = len(subject.received)
    for sent in exchange.sent:
        here = json.dumps(sent).replace("/home/ann/project", str(directory))
        subject.send(frame(json.loads(here)))
    for awaited in exchange.received:
        await _arrives(subject, awaited, before)


async def _arrives(subject: CheckedProcess, awaited: Message, since: int) -> None:
    wanted = shape(awaited)
    await subject.until(lambda said: shape(said) == wanted, str(awaited), since)


@pytest.mark.parametrize("exchange", CONVERSATION, ids=lambda exchange: exchange.about)
def test_each_example_fits_the_schema_it_is_shown_with(exchange: Exchange) -> None:
    schemas, types = schemas_and_types()

    def check(value: object, name: str) -> None:
        types_of_all = {
            **types,
            **{name: schemas[name] for name in ("Command",) if name in schemas},
        }
        jsonschema.validate(value, {**schemas[name], "$defs": types_of_all})

    methods = {sent["id"]: sent["method"] for sent in exchange.sent if "id" in sent}
    for message in (*exchange.sent, *exchange.received):
        if "method" in message:
            check(message.get("params", {}), message["method"])
        elif "result" in message:
            check(message["result"], f"{methods[message['id']]} result")
        else:
            assert message["error"]["code"] in spec.ERRORS


def test_every_method_and_notification_has_a_description_and_an_example() -> None:
    assert set(WORDS) == {*spec.METHODS, *spec.NOTIFICATIONS}
    shown = {
        message.get("method") for one in CONVERSATION for message in (*one.sent, *one.received)
    }
    assert {*spec.METHODS, *spec.NOTIFICATIONS} <= shown


def test_every_reference_on_the_page_leads_to_a_type_on_it() -> None:
    text = PAGE.read_text()
    headings = set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE))
    assert set(re.findall(r"#/\$defs/(\w+)", text)) <= headings


def test_every_error_of_the_protocol_is_in_the_table() -> None:
    text = PAGE.read_text()
    assert all(f"| {code} | {words} |" in text for code, words in spec.ERRORS.items())
