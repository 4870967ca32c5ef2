"""Bytes <-> frames. Standard library only: no clock, no I/O, no asyncio.

Every codec here has one shape: an object with `feed(data) -> list[Event]`, `eof()` that tells
truncation, `flush()` where bytes may be held (the caller owns the clock), and an encode function.
A peer's mistake is a `Fault` among the events, never an exception, so that the good frames around
it survive. `demux` is the file to read first.
"""
