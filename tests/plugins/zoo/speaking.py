"""Shared by the animals: a correct plugin with the standard library only. `serve` answers every
request with null, except for the methods that an animal overrides."""

import json
import sys


def read():
    length = None
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b"\n"):
        if not line:
            sys.exit(0)
        length = int(line.partition(b":")[2])
    return json.loads(sys.stdin.buffer.read(length))


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def frame(body):
    raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def write(**members):
    frame(json.dumps({"jsonrpc": "2.0", **members}).encode())


def introduction(**differently):
    return {
        "protocol": "rpp",
        "protocolVersion": 0,
        "name": "animal",
        "version": "1",
        **differently,
    }


def serve(**methods):
    """Each method gets the message and answers it itself."""
    methods.setdefault("handshake", lambda m: write(id=m["id"], result=introduction()))
    methods.setdefault("exit", lambda m: sys.exit(0))
    while True:
        message = read()
        if message.get("method") in methods:
            methods[message["method"]](message)
        elif "id" in message and "method" in message:
            write(id=message["id"], result=None)
