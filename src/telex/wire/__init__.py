"""Codecs between bytes and frames. Standard library only: no clock, no I/O, no asyncio.

Every codec here has the same interface: `feed(data) -> list[Event]`, `eof()` that reports
truncation, `flush()` that releases held bytes (the caller owns the clock), and an encode function.
A peer's mistake is a `Fault` among the events, never an exception, so the good frames around it
survive. Read `demux` first.
"""
