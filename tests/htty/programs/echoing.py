"""A program that echoes the content of chunks, for tests of the parts in between.

`echoing.py [SCENE]`: it announces itself with a chunk of SETTINGS, prints a line of text now and
then, and ends at the end of its input, when it reads `end!` at the beginning of a chunk, or when it
has sent back a GOAWAY.
"""

from __future__ import annotations

import os
import sys
import termios

from telex.wire.events import Frame
from telex.wire.htty_chunk import HttyChunkDecoder, encode

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


def cbreak() -> None:
    modes = termios.tcgetattr(0)
    modes[0] &= ~(termios.ICRNL | termios.IXON)
    modes[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    termios.tcsetattr(0, termios.TCSADRAIN, modes)


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def main(scene: str) -> None:
    cbreak()
    write(f"HTTY is {os.environ.get('HTTY')}\n".encode() + encode(SETTINGS))
    decoder = HttyChunkDecoder()
    while data := os.read(0, 65536):
        for event in decoder.feed(data):
            if not isinstance(event, Frame):
                continue
            if event.body.startswith(b"end!"):
                write(b"leaving\n")
                return
            if scene == "bad" and event.body.startswith(b"bad!"):
                write(b"\x1bPHTTY;1;=\x1b\\")
                continue
            write(encode(event.body) + (b"some text\n" if scene == "chatty" else b""))
            if event.body[3:9] == b"\x07\0\0\0\0\0":
                return


main(sys.argv[1] if len(sys.argv) > 1 else "")
