#!/usr/bin/env python3
"""A telex plugin in Python, with the standard library alone: one command, one type of task.

    telex plugin check examples/plugins/greet.py

With telex installed, `telex.plugins.sdk` does most of this for you (see counter.py). Messages come
on standard input and go to standard output, as JSON-RPC behind a Content-Length header.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar

NAME = "greet"
Values = dict[str, Any]


class Refused(Exception):
    """The answer is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


# What it gives.

COMMAND = {
    "name": "hello",
    "usage": "hello",
    "description": "Say hello.",
    "configs": [
        {"key": "name", "value": "world", "type": "string", "description": "whom to greet"},
        {"key": "loud", "value": False, "type": "bool", "description": "in capitals"},
    ],
}
TASK = {
    "type": "write",
    "description": "Write a file.",
    "configs": [
        {"key": "path", "type": "path", "description": "which file"},
        {"key": "text", "value": "", "type": "string", "description": "what to write"},
    ],
}


def hello(plugin: Plugin, values: Values) -> None:
    greeting = f"Hello, {values['name']}!"
    plugin.log("info", greeting.upper() if values["loud"] else greeting)


def check_write(values: Values) -> None:
    if not isinstance(values["path"], str):
        raise Refused(-32050, "path: say which file to write.")


def write(plugin: Plugin, values: Values, directory: str) -> None:
    file = os.path.join(directory, values["path"])
    with open(file, "w", encoding="utf-8") as out:
        out.write(values["text"])
    plugin.log("info", f"wrote {file}")


# The methods.


class Plugin:
    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source, self._sink = source, sink
        self._stage = "stranger"  # then introduced, ready, leaving
        self._set_up: Values = {}

    def handshake(self, params: Values) -> Values:
        protocol, version = params.get("protocol"), params.get("protocolVersion")
        if protocol != "rpp" or version != 0:
            raise Refused(-32001, "This plugin speaks rpp version 0.")
        self._stage = "introduced"
        said = {"protocol": protocol, "protocolVersion": version, "name": NAME, "version": "1"}
        return {**said, "commands": [COMMAND], "tasks": [TASK]}

    def initialize(self, params: Values) -> Values:
        self._stage = "ready"
        return {}

    def set_up_command(self, params: Values) -> Values:
        self._command(params)
        self._set_up = given(params)
        return {}

    def run_command(self, params: Values) -> Values:
        self._command(params)
        values = {**defaults(COMMAND), **self._set_up, **given(params)}
        self._set_up = {}
        hello(self, values)
        return {}

    def validate_task(self, params: Values) -> Values:
        check_write(self._task(params))
        return {}

    def run_task(self, params: Values) -> Values:
        values = self._task(params)
        check_write(values)
        try:
            write(self, values, params.get("dir") or ".")
        except OSError as error:
            raise Refused(-32005, str(error)) from error
        return {}

    def shut_down(self, params: Values) -> Values:
        self._stage = "leaving"
        return {}

    METHODS: ClassVar[dict[str, tuple[str, Callable[[Plugin, Values], Values]]]] = {
        "handshake": ("", handshake),
        "initialize": ("introduced", initialize),
        "setupCommand": ("ready", set_up_command),
        "runCommand": ("ready", run_command),
        "validateTask": ("ready", validate_task),
        "runTask": ("ready", run_task),
        "shutdown": ("", shut_down),
    }

    def _command(self, params: Values) -> None:
        if params.get("name") != COMMAND["name"]:
            raise Refused(-32002, "There is no such command.")

    def _task(self, params: Values) -> Values:
        if params.get("type") != TASK["type"]:
            raise Refused(-32602, "There is no such type of task.")
        return {**defaults(TASK), **given(params)}

    # Messages.

    def run(self) -> int:
        while (content := self._read()) is not None:
            try:
                message = json.loads(content)
            except ValueError:
                self._fail(None, -32700, "This is not JSON.")
                continue
            if (code := self._receive(message)) is not None:
                return code
        return 0

    def _receive(self, message: Any) -> int | None:
        """Answers; the exit code, if it is `exit`."""
        members = message if isinstance(message, dict) else {}
        id, method = members.get("id"), members.get("method")
        if method is None and ("result" in members or "error" in members):
            return None  # an answer to nothing we asked
        if members.get("jsonrpc") != "2.0" or not isinstance(method, str) or not is_id(id):
            self._fail(id if is_id(id) else None, -32600, "This is not a message.")
        elif method == "exit":
            return 0 if self._stage == "leaving" else 1
        elif id is not None:
            self._answer(id, method, members.get("params"))
        return None

    def _answer(self, id: int | str, method: str, params: Any) -> None:
        try:
            if self._stage == "leaving":
                raise Refused(-32803, "The plugin is shutting down.")
            if method not in self.METHODS:
                raise Refused(-32601, "There is no such method.")
            needed, handler = self.METHODS[method]
            if needed and self._stage not in (needed, "ready"):
                raise Refused(-32802, "The plugin has not been initialised.")
            result = handler(self, params if isinstance(params, dict) else {})
        except Refused as refused:
            self._fail(id, refused.code, str(refused))
        else:
            self._send({"id": id, "result": result})

    def log(self, level: str, text: str) -> None:
        self._send({"method": "log", "params": {"level": level, "msg": text}})

    def _fail(self, id: int | str | None, code: int, text: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": text}})

    def _send(self, message: Values) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._sink.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self._sink.flush()

    def _read(self) -> bytes | None:
        """The content of the next message; None at the end of the input."""
        length = None
        while line := self._source.readline():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
            if not line.strip():
                content = self._source.read(length or 0)
                return content if len(content) == (length or 0) else None
        return None


def is_id(id: object) -> bool:
    return id is None or (isinstance(id, (int, str)) and not isinstance(id, bool))


def given(params: Values) -> Values:
    """What was said; null is as good as omitted."""
    pairs = params.get("config") or []
    return {pair["key"]: pair["value"] for pair in pairs if pair.get("value") is not None}


def defaults(what: Values) -> Values:
    return {entry["key"]: entry.get("value") for entry in what["configs"]}


if __name__ == "__main__":
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # from now on `print` writes where people read
    sys.exit(Plugin(sys.stdin.buffer, messages).run())
