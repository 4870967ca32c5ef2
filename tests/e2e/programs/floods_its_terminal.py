"""Begins a page as it should, and then floods whoever shows it: `floods_its_terminal.py KIND COUNT`.

Then it gives the terminal back, and repeats one line that is typed. `broken` is one chunk that is
none, after a good one. By hand, without `telex`: a program that does harm keeps no rules of ours.
"""

import binascii
import os
import sys
import termios


def frame(kind: int, flags: int, stream: int, data: bytes = b"") -> bytes:
    return len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data


FRAMES = {
    "ping": frame(6, 0, 0, bytes(8)),
    "settings": frame(4, 0, 0),
    "unknown": frame(0xFA, 0, 0, b"x"),
    "empty": frame(0, 0, 1),
}


def send(data: bytes) -> None:
    chunk = b"\x1bPHTTY;1;" + binascii.b2a_base64(data, newline=False) + b"\x1b\\"
    while chunk:
        chunk = chunk[os.write(1, chunk) :]


def main(kind: str, count: int) -> None:
    before, raw = termios.tcgetattr(0), termios.tcgetattr(0)
    raw[0] &= ~(termios.ICRNL | termios.IXON)
    raw[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    termios.tcsetattr(0, termios.TCSADRAIN, raw)
    send(FRAMES["settings"])
    os.read(0, 65536)  # it was accepted
    if kind == "broken":
        os.write(1, b"\x1bPHTTY;1;no base64, but shown?\x1b\\")
    for _ in range(count // 200):
        send(FRAMES.get(kind, b"") * 200)
    print("flooded", flush=True)
    termios.tcsetattr(0, termios.TCSAFLUSH, before)
    print("typed", input("? "))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
