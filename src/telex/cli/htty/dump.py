"""`telex htty dump`: the HTTP requests and responses in a transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli.console import explain, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.htty.tools.transcript_dump import (
        DecodedFrame,
        Dump,
        DumpedFrame,
        DumpedMessage,
        DumpedStream,
    )

HELP = """Decode a transcript of a terminal into requests and responses.

FILE is a raw transcript, the typescript of `script`, or a recording of `telex record --raw`. Most
files have only the program's output, and so only responses. Files with both directions show
requests too: one of `telex record --raw --input`, two of `script --log-in` and `--log-out`, or one
of `script --log-io` with its --timing. Use `script` inside `telex run`, not around it: the output
of `telex run` has no chunks.

Of bodies, the size and the hash are shown. Broken chunks are listed with their offset in the file.
The exit code is 1 if a chunk is broken, or if there is none.

\b
  telex record --raw --input page.cast -- telex htty serve --dir .
  telex htty dump page.cast
  telex htty dump --frames out.log in.log
  telex run -- script --log-io log --log-timing times -c 'telex htty serve --dir .'
  telex htty dump --timing times log
"""


@click.command(help=HELP)
@click.option("--frames", is_flag=True, help="Show each HTTP/2 frame.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option(
    "--timing",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The timing file of `script --log-timing`.",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
def command(files: tuple[Path, ...], timing: Path | None, frames: bool, as_json: bool) -> int:
    from telex.htty.tools.transcript_dump import dump, transcript_parts

    if timing is not None and len(files) > 1:
        raise click.UsageError("--timing needs exactly one FILE")
    times = timing.read_bytes() if timing else None
    found = dump([transcript_parts(file.read_bytes(), times) for file in files], frames=frames)
    if as_json:
        say(json.dumps(_object(found)))
    else:
        for line in _lines(found):
            say(line)
    if not found.chunks and not found.problems:
        explain(
            "`telex run` takes chunks out of what it shows: use `telex record --raw`, or `script` "
            "inside it"
        )
    return 1 if found.problems or not found.chunks else 0


def _lines(found: Dump) -> Iterator[str]:
    for number, session in enumerate(found.sessions):
        yield f"session {number + 1}"
        for frame in found.frames:
            if frame.session == number:
                yield f"  {_frame_line(frame)}"
                yield from (f"      {line}" for line in _header_lines(frame.frame))
        for id, stream in sorted(session.streams.items()):
            yield f"  stream {id}: {_exchange(stream)}"
        yield from (f"  GOAWAY by the {said}" for said in session.goaway)
    for problem in found.problems:
        yield f"offset {problem.offset}: {problem.sentence}"
    yield f"{found.chunks} chunks, {found.text} bytes of text, {len(found.problems)} problems"


def _exchange(stream: DumpedStream) -> str:
    request, response = stream.request, stream.response
    asked = " ".join(filter(None, [request[b":method"], request[b":path"]])) or "(request not seen)"
    status = response[b":status"] or "(no response seen)"
    kind = response[b"content-type"]
    return f"{asked}{_body(request)} -> {status}{f' {kind}' if kind else ''}{_body(response)}"


def _body(side: DumpedMessage) -> str:
    body = f", {side.size} bytes sha256:{side.sha256[:16]}" if side.size else ""
    if side.reset is not None:
        return f"{body}, reset with code {side.reset}"
    return body if side.ended or not side.headers else f"{body}, unfinished"


def _frame_line(seen: DumpedFrame) -> str:
    frame = seen.frame
    arrow = ">" if seen.sender == "terminal" else "<"
    about = " ".join(filter(None, ["+".join(frame.flags), frame.about]))
    return f"{arrow} {frame.kind} stream {frame.stream}, {frame.length} bytes {about}".rstrip()


def _header_lines(frame: DecodedFrame) -> Iterator[str]:
    for name, value in frame.headers or ():
        yield f"{_text(name)}: {_text(value)}".replace("\n", "\\n")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _object(found: Dump) -> dict[str, object]:
    return {
        "sessions": [
            {
                "streams": [
                    {"id": id, "request": _side(one.request), "response": _side(one.response)}
                    for id, one in sorted(session.streams.items())
                ],
                "goaway": session.goaway,
            }
            for session in found.sessions
        ],
        "frames": [
            {
                "session": seen.session + 1,
                "sender": seen.sender,
                "type": seen.frame.kind,
                "stream": seen.frame.stream,
                "flags": seen.frame.flags,
                "length": seen.frame.length,
                "about": seen.frame.about,
                "headers": _pairs(seen.frame.headers or ()),
            }
            for seen in found.frames
        ],
        "problems": [{"offset": one.offset, "sentence": one.sentence} for one in found.problems],
        "chunks": found.chunks,
        "text_bytes": found.text,
    }


def _side(side: DumpedMessage) -> dict[str, object]:
    return {
        "headers": _pairs(side.headers),
        "trailers": _pairs(side.trailers),
        "bytes": side.size,
        "sha256": side.sha256 if side.size else None,
        "ended": side.ended,
        "reset": side.reset,
    }


def _pairs(headers: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
    return [[_text(name), _text(value)] for name, value in headers]
