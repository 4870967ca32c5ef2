"""An MCP server of the first era without any library, which misbehaves as its argument says.

    python -I -S mcp_raw_server.py KIND [FILE]

FILE gets lines about what happened: process ids, and the methods that arrived.
"""

import json
import os
import signal
import sys
import time

kind = sys.argv[1]
told = sys.argv[2] if len(sys.argv) > 2 else os.devnull
SECRET = os.environ.get("SECRET", "")
OBJECT = {"type": "object"}
TOOLS = {
    "liar": [
        {"name": "none", "description": "No type.", "inputSchema": {}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "wrong", "inputSchema": {"type": "object", "properties": 5}},
        {"name": "large", "inputSchema": {"type": "object", "description": "x" * 100_000}},
        {"name": "remote", "inputSchema": {"type": "object", "$ref": "https://example.com/s"}},
        {"name": "choice", "inputSchema": {"type": "object", "anyOf": [{}]}},
        {"name": "choice", "inputSchema": OBJECT},
        {"name": "", "inputSchema": OBJECT},
        {"name": 5, "inputSchema": OBJECT},
        "no tool",
        {"name": "odd", "description": 5, "inputSchema": OBJECT, "title": [], "annotations": 1},
        {
            "name": "lies",
            "inputSchema": OBJECT,
            "outputSchema": {"type": "object", "required": ["a"]},
        },
        {
            "name": "reads",
            "description": "\ud800",
            "inputSchema": OBJECT,
            "annotations": {"readOnlyHint": True},
        },
        {"name": "\x1b[31mred\n" + "e" * 100, "inputSchema": OBJECT},
    ],
    "bad_list": 5,
}
USUAL = [
    {"name": "work", "description": "Works.", "inputSchema": OBJECT},
    {"name": "say", "description": "Says.", "inputSchema": OBJECT},
]


def note(text):
    with open(told, "a") as file:
        file.write(text + "\n")


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def result(asked, value):
    send({"jsonrpc": "2.0", "id": asked["id"], "result": value})


def text(asked, value, **more):
    result(asked, {"content": [{"type": "text", "text": value}], **more})


def listed(asked):
    tools = TOOLS.get(kind, USUAL)
    if kind == "endless_list":
        result(asked, {"tools": [{"name": "one", "inputSchema": OBJECT}], "nextCursor": "again"})
    elif kind != "no_second_list" or len(USUAL) == 2:
        result(asked, {"tools": tools})
    if kind == "deaf":
        time.sleep(600)


def called(asked):
    if kind == "hang":
        return
    if kind == "flood":
        while True:
            send(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/message",
                    "params": {"level": "info", "data": "x"},
                }
            )
    if kind == "ping":
        while True:
            send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
    if kind == "die":
        sys.stderr.write("my last words, with " + SECRET + "\n")
        os._exit(3)
    if kind == "nested":
        deep = "[" * 1000 + "]" * 1000
        answer = '"result": {"content": [], "structuredContent": ' + deep + "}"
        id = '"id": ' + json.dumps(asked["id"])
        last = asked["params"]["name"] == "say"
        parts = [answer, '"jsonrpc": "2.0"', id] if last else ['"jsonrpc": "2.0"', id, answer]
        sys.stdout.write("{" + ", ".join(parts) + "}\n")
        sys.stdout.flush()
    elif kind == "surrogates":
        text(asked, "a\ud800b\\ud800 \U0001f600")
    elif kind == "not_a_result":
        result(asked, {"content": 5})
    elif kind == "error":
        send(
            {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no: " + SECRET}}
        )
    elif kind in ("grow", "no_second_list"):
        USUAL.append({"name": "late", "inputSchema": OBJECT})
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(asked, "grown")
    elif kind == "blocks":
        note = {"type": "text", "text": "kept", "annotations": {"audience": [1]}, "_meta": 5}
        result(asked, {"content": [note] + [1] * 5000, "_meta": 5})
    elif kind == "long":
        text(asked, "x" * 5_000_000)
    elif kind == "liar":
        text(asked, "done", structuredContent={"b": 1})
    else:
        text(asked, SECRET + " " + json.dumps(asked["params"]["arguments"], sort_keys=True))


def answered(asked):
    note(asked["method"])
    method = asked["method"]
    if "id" not in asked or kind == "silent":
        return
    if method == "initialize":
        about = {"name": "raw", "version": "1"}
        can = {"tools": {"listChanged": True}}
        version = asked["params"]["protocolVersion"]
        result(asked, {"protocolVersion": version, "capabilities": can, "serverInfo": about})
    elif method == "tools/list":
        listed(asked)
    elif method == "tools/call":
        called(asked)
    else:
        send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}})


def fork_away():
    """Leave a process with another session, another parent and no environment, which ignores
    signals too."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(str(os.getpid()))
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.wait()


if kind == "die_at_start":
    sys.stderr.write("cannot find my files, " + SECRET + "\n")
    sys.exit(3)
if kind == "flood_at_start":
    while True:
        sys.stdout.write("hello\n" * 1000)
if kind == "garbage":
    sys.stdout.write("Welcome \x1b[31mto\x1b[0m " + SECRET + "\n{}\n[1]\n\n\xff\n")
    sys.stderr.write("ready, with \x1b[2J" + SECRET + "\n")
    sys.stderr.flush()
if kind == "stubborn":
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    fork_away()
    note(str(os.getpid()))
for line in sys.stdin:
    answered(json.loads(line))
while kind == "stubborn":
    time.sleep(60)
