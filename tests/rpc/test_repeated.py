"""Repeated names are found, however they are spelled, and there are no false positives."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.rpc.dialects.json_escapes import JsonEscapes, repeated
from telex.rpc.errors import Condition
from telex.rpc.messages import Malformed

Objects = list[tuple[str, Any]]

names = st.sampled_from(["a", "b", "command", ":", ",", '"', "\\", 'a"', "\\\\:", "é", ""])
values = st.recursive(
    st.none() | st.integers() | names,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda found: ["list", found])
        | st.lists(st.tuples(names, inner), max_size=3).map(lambda found: ["object", found])
    ),
    max_leaves=8,
)
spellings = st.randoms(use_true_random=False)


def written(value: Any, random: Any, found: set[str]) -> str:
    """Return the JSON with random spaces and spellings; `found` collects its repeated names."""
    space = lambda: random.choice(["", "", " ", "\n"])  # noqa: E731
    match value:
        case ["list", items]:
            inner = [written(item, random, found) for item in items]
            return f"[{space()}{','.join(inner)}{space()}]"
        case ["object", pairs]:
            keys = [key for key, _ in pairs]
            found.update([key for key in keys if keys.count(key) > 1])
            inner = [
                f"{space()}{spelt(key, random)}{space()}:{space()}{written(item, random, found)}"
                for key, item in pairs
            ]
            return "{" + ",".join(inner) + space() + "}"
        case str():
            return spelt(value, random)
    return json.dumps(value)


def spelt(text: str, random: Any) -> str:
    if text and random.random() < 0.2:
        return '"' + "".join(f"\\u{ord(char):04x}" for char in text) + '"'
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


@given(values, spellings)
def test_names_that_occur_twice_are_found(value: Any, random: Any) -> None:
    twice: set[str] = set()
    assert repeated(written(value, random, twice).encode()) == twice


@pytest.mark.parametrize("size", [10, 2_000, 100_000])
def test_long_strings_hide_no_repeated_name(size: int) -> None:
    text = "x" * size
    assert repeated(f'{{"a":"{text}","a":1}}'.encode()) == {"a"}
    assert repeated(f'{{"{text}":1,"b":"{text}"}}'.encode()) == frozenset()
    assert repeated(f'{{"{text}":1,"{text}":2}}'.encode()) == {text}


def test_a_number_may_have_any_length() -> None:
    assert repeated(b'{"a":"a","b":%b}' % (b"9" * 10_000)) == frozenset()


def test_an_ambiguous_response_fails_the_call() -> None:
    found = JsonEscapes().decode(b'{"resid":"t1","data":1,"data":2}')
    assert isinstance(found, Malformed)
    assert (found.spoils, found.problem.code) == ("t1", Condition.PARSE)


def test_data_in_base64_is_checked_too() -> None:
    packet = {"command": "x", "rpcid": "1", "data64": msgspec.json.encode(b'{"a":1,"a":2}')}
    body = json.dumps({**packet, "data64": json.loads(packet["data64"])}).encode()
    found = JsonEscapes().decode(body)
    assert isinstance(found, Malformed)
    assert found.answer is not None
