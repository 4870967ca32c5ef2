"""For tests: a method table, written down as it is read."""

from __future__ import annotations

from typing import Any

from telex.rpc.methods import Methods


def table(**handlers: Any) -> Methods:
    methods = Methods()
    for name, handler in handlers.items():
        methods.add(name, handler)
    return methods
