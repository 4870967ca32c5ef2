"""The conversation that `docs/reference/plugin-protocol.md` shows, message by message.

A test repeats it with a real plugin, `examples/plugins/counter.py`: it sends the host's messages,
and compares the shape of the plugin's messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages of the host, and the plugin's messages that follow, in any order."""

    about: str
    """The method in whose section the exchange is shown."""
    sent: tuple[Message, ...]
    received: tuple[Message, ...] = ()


def _request(id: int | str, method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, **_given(params)}


def _notification(method: str, params: object = None) -> Message:
    return {"jsonrpc": "2.0", "method": method, **_given(params)}


def _given(params: object) -> Message:
    return {} if params is None else {"params": params}


def _result(id: int | str, result: object) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def _error(id: int | str | None, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


CONVERSATION: Final = (
    Exchange(
        "handshake",
        (
            _request(
                1,
                "handshake",
                {
                    "protocol": "rpp",
                    "protocolVersion": 0,
                    "capabilities": {"cancel": True, "progress": True, "tools": True},
                },
            ),
        ),
        (
            _result(
                1,
                {
                    "protocol": "rpp",
                    "protocolVersion": 0,
                    "name": "counter",
                    "version": "1",
                    "description": "Counts.",
                    "configs": [
                        {
                            "key": "pause",
                            "value": 20,
                            "type": "int",
                            "description": "milliseconds between two numbers",
                        }
                    ],
                    "commands": [
                        {
                            "name": "count",
                            "usage": "count",
                            "description": "Count, slowly enough to watch or to cancel.",
                            "help": "Count, slowly enough to watch or to cancel.",
                            "configs": [
                                {
                                    "key": "up-to",
                                    "value": 10,
                                    "type": "int",
                                    "description": "the last number",
                                }
                            ],
                        }
                    ],
                    "tasks": [
                        {
                            "type": "write",
                            "description": "Write a file.",
                            "configs": [
                                {"key": "path", "type": "path"},
                                {"key": "text", "value": "", "type": "string"},
                            ],
                        }
                    ],
                    "capabilities": {"cancel": True, "progress": True, "tools": True},
                },
            ),
        ),
    ),
    Exchange(
        "initialize",
        (
            _request(
                2,
                "initialize",
                {
                    "logging": {"enabled": True, "level": "info"},
                    "config": [{"key": "pause", "value": 5, "type": "int"}],
                },
            ),
        ),
        (_result(2, {}),),
    ),
    Exchange(
        "setupCommand",
        (
            _request(
                3,
                "setupCommand",
                {
                    "name": "count",
                    "args": [],
                    "config": [{"key": "up-to", "value": 1, "type": "int"}],
                },
            ),
        ),
        (_result(3, {}),),
    ),
    Exchange(
        "runCommand",
        (_request(4, "runCommand", {"name": "count", "progressToken": "t1"}),),
        (
            _notification("$/progress", {"token": "t1", "done": 1.0, "total": 1.0}),
            _notification("log", {"level": "info", "msg": "1"}),
            _result(4, {}),
        ),
    ),
    Exchange(
        "validateTask",
        (_request(5, "validateTask", {"type": "write", "config": []}),),
        (_error(5, -32050, "write: Object missing required field `path`"),),
    ),
    Exchange(
        "runTask",
        (
            _request(
                6,
                "runTask",
                {
                    "type": "write",
                    "dir": "/home/ann/project",
                    "config": [
                        {"key": "path", "value": "motd", "type": "path"},
                        {"key": "text", "value": "Good morning\n", "type": "string"},
                    ],
                },
            ),
        ),
        (_result(6, {}),),
    ),
    Exchange(
        "tools/list",
        (_request(7, "tools/list"),),
        (
            _result(
                7,
                {
                    "tools": [
                        {
                            "name": "add",
                            "description": "The sum of two numbers.",
                            "inputSchema": {
                                "type": "object",
                                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                                "required": ["a", "b"],
                            },
                        }
                    ]
                },
            ),
        ),
    ),
    Exchange(
        "tools/call",
        (_request("eight", "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),),
        (_result("eight", {"content": 3}),),
    ),
    Exchange(
        "$/cancelRequest",
        (
            _request(9, "runCommand", {"name": "count"}),
            _notification("$/cancelRequest", {"id": 9}),
        ),
        (_error(9, -32800, "The request was cancelled."),),
    ),
    Exchange("shutdown", (_request(10, "shutdown"),), (_result(10, {}),)),
    Exchange("exit", (_notification("exit"),)),
)
