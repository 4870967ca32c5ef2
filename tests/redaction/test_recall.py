"""How much of another list of credentials is hidden, by itself and beside a label.

The list is a digest of facts in `tests/corpus/redaction`; credentials are made of it with a seed.
"""

from __future__ import annotations

import random
import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redaction.samples import made_of
from telex.redaction import Redactor

LIST = Path(__file__).parents[1] / "corpus" / "redaction" / "gitleaks.toml"
REDACTOR = Redactor()
HIDDEN = 0.5
"""So much of a credential must be hidden: its fixed part may be public and stay."""

LABELLED = (
    "export {name}_TOKEN={value}",
    "{name}_SECRET={value}; ls",
    "{name}_KEY={value}",
    "{name}_PASS={value}",
    "{name}_PAT={value}",
    "{lower}_api_key: {value}",
    'const {lower}ApiKey = "{value}";',
    '{{"{lower}_token": "{value}", "id": 7}}',
    "{lower}.client.secret = {value}",
    "tool --{lower}-token {value} --verbose",
    "tool --api-key={value}",
    "tool --password '{value}'",
    "curl -u {lower}:{value} https://example.org",
    'curl -H "X-{lower}-Api-Key: {value}" https://example.org',
    "machine example.org login {lower} password {value}",
    "<{lower}Password>{value}</{lower}Password>",
    "https://{lower}:{value}@example.org/",
    "Server=db;User Id={lower};Pwd={value};Database=x",
    "Authorization: token {value}",
    "$env:{name}_TOKEN = '{value}'",
    "docker run -e {name}_PASSWORD={value} x",
    "GET /?access_token={value} HTTP/1.1",
    "mysql -u {lower} -p{value} db",
    "sshpass -p {value} ssh -p 22 host",
)


def credentials() -> list[dict[str, Any]]:
    return tomllib.loads(LIST.read_text())["credential"]


def made(form: list[str], rng: random.Random) -> str:
    parts = []
    for part in form:
        count, _, alphabet = part.partition("*")
        parts.append(part[1:] if part[0] == "=" else made_of(alphabet, int(count), rng))
    return "".join(parts)


def is_hidden(text: str, value: str) -> bool:
    begin = text.rindex(value)
    end = begin + len(value)
    spans = REDACTOR.spans(text)
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in spans) >= HIDDEN * len(value)


def test_the_list_is_large() -> None:
    kinds = [each["kind"] for each in credentials()]
    assert kinds.count("bare") > 100
    assert kinds.count("label") > 90


@pytest.mark.counted
def test_nine_of_ten_credentials_are_known_by_themselves(
    counted: Callable[[int, int], int],
) -> None:
    rng, count = random.Random(14), counted(2, 40)
    found: dict[str, list[bool]] = defaultdict(list)
    for each in credentials():
        for form in each["forms"] * count if each["kind"] == "bare" else ():
            value = made(form, rng)
            found[each["id"]].append(is_hidden(f"used {value} for this", value))
    recall = sum(sum(hits) / len(hits) for hits in found.values()) / len(found)
    missed = sorted(id for id, hits in found.items() if sum(hits) < len(hits) / 2)
    print(f"\nbare: {recall:.1%} of {len(found)} kinds; missed: {', '.join(missed)}")
    assert recall >= 0.90


@pytest.mark.counted
def test_nineteen_of_twenty_are_known_by_their_label(counted: Callable[[int, int], int]) -> None:
    rng, count = random.Random(14), counted(1, 10)
    found: dict[str, list[bool]] = defaultdict(list)
    for each in credentials():
        name = each["id"].partition("-")[0]
        for form in each["forms"][:1] * count:
            value = made(form, rng)
            for text in LABELLED:
                line = text.format(name=name.upper(), lower=name, value=value)
                found[text].append(is_hidden(line, value))
    hits = [hit for each in found.values() for hit in each]
    recall = sum(hits) / len(hits)
    worst = min(found, key=lambda text: sum(found[text]) / len(found[text]))
    worst_recall = sum(found[worst]) / len(found[worst])
    print(f"\nby label: {recall:.1%} of {len(hits)}; worst: {worst_recall:.1%} of {worst!r}")
    assert recall >= 0.95
    assert worst_recall >= 0.90
