"""A program that serves pages through its terminal, independent of the code under test.

It implements only the HTTP/2 that it needs, and so starts fast. It prints `ready` after its
SETTINGS were sent. Keys between chunks: `g` sends GOAWAY and begins a second session, `x` sends
GOAWAY and exits, `b` sends a broken chunk, `2` one of another version, `p` sends GOAWAY and a PING,
`z` stops its reading; other keys are printed. The response to each request is `session N`; with the
argument `hold` there is no response.
"""

from __future__ import annotations

import sys

SERVER = r"""
import binascii, os, re, signal, sys, termios

before = termios.tcgetattr(0)
raw = termios.tcgetattr(0)
raw[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
raw[0] &= ~(termios.ICRNL | termios.IXON)
raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
termios.tcsetattr(0, termios.TCSADRAIN, raw)
signal.signal(signal.SIGCONT, lambda *_: termios.tcsetattr(0, termios.TCSADRAIN, raw))

def send(data):
    for at in range(0, len(data), 3072):
        piece = binascii.b2a_base64(data[at:at + 3072], newline=False)
        os.write(1, b"\x1bPHTTY;1;" + piece + b"\x1b\\")

def frame(kind, flags, stream, data=b""):
    head = len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + data

number = 0
def begin():
    global came, number, last
    came, last = b"", 0
    number += 1
    if "wait" not in sys.argv:
        send(frame(4, 0, 0))

def answer(data):
    global came, last
    came += data
    came = came.removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    out = b""
    while len(came) >= 9 and len(came) >= 9 + (size := int.from_bytes(came[:3], "big")):
        kind, flags, stream = came[3], came[4], int.from_bytes(came[5:9], "big")
        payload, came = came[9:9 + size], came[9 + size:]
        if kind == 4 and not flags & 1:
            if "wait" in sys.argv:
                out += frame(4, 0, 0)
            out += frame(4, 1, 0)
        elif kind == 6 and not flags & 1:
            out += frame(6, 1, 0, payload)
        elif kind == 1 and "hold" in sys.argv:
            last = stream
            print("held", flush=True)
        elif kind == 1:
            last = stream
            out += frame(1, 4, stream, b"\x88") + frame(0, 1, stream, b"session %d" % number)
    send(out)

def leave():
    send(frame(7, 0, 0, last.to_bytes(4, "big") + bytes(4)))

begin()
print("ready", os.getpid(), flush=True)
buffer = b""
CHUNK = re.compile(rb"\x1bPHTTY;1;([A-Za-z0-9+/=]*)\x1b\\")
while got := os.read(0, 65536):
    buffer += got
    while buffer:
        if buffer[:1] == b"\x1b":
            found = CHUNK.match(buffer)
            if not found:
                break
            buffer = buffer[found.end():]
            answer(binascii.a2b_base64(found[1]))
            continue
        key, buffer = buffer[:1], buffer[1:]
        if key == b"g":
            leave()
            begin()
            print("again", flush=True)
        elif key == b"x":
            leave()
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            print("bye", flush=True)
            sys.exit()
        elif key == b"p":
            leave()
            send(frame(6, 0, 0, bytes(8)))
        elif key == b"z":
            print("deaf", flush=True)
            signal.pause()
        elif key == b"b":
            os.write(1, b"\x1bPHTTY;1;=!\x1b\\")
        elif key == b"2":
            os.write(1, b"\x1bPHTTY;2;QQ==\x1b\\")
        else:
            print("key", key, flush=True)
"""
PYTHON = (sys.executable, "-I", "-S")
PROGRAM = (*PYTHON, "-c", SERVER)
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
"""The shortest SETTINGS frame."""
