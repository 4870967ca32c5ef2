"""Permission rules in words, where a person looks at them: `config trust`, `config show`,
`agent remembered`."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def rules_of(content: bytes, where: str) -> list[str]:
    """Those of a config.toml. Raises `RuleRefused`; that it is TOML was seen before."""
    from telex.agent.judging import from_tables, to_table

    table = tomllib.loads(content.decode()).get("permission", {})
    return [in_words(to_table(rule)) for rule in from_tables(table.get("rule", []), where)]


def in_words(rule: Mapping[str, Any]) -> str:
    """`allow shell: command="git push"`."""
    members = [
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in rule.items()
        if name not in ("decision", "tool")
    ]
    tool = "every tool" if rule["tool"] == "*" else rule["tool"]
    return f"{rule['decision']} {tool}: {', '.join(members) or 'whatever it is given'}"
