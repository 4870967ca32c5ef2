"""`telex run`, where a file that a program sends is kept, and one that it asks for is at hand.

    KEPT=DIRECTORY run_with_files.py run [OPTION]... -- COMMAND...

`telex run` has no place for a person's files yet. Everything else is its own: the terminals, what
is taken out of the output, the stream of parts both ways, the policy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from telex.cli import main
from telex.host import answering, person_surface
from telex.protocols import json_escapes as spec
from telex.rpc.serving import Call

PIECE = 30_000
DIRECTORY = Path(os.environ["KEPT"])


class WithFiles(person_surface.PersonSurface):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.others = {**self.others, "file:download": keep, "file:upload": give}


async def keep(asked: spec.FileDownload, call: Call) -> spec.FileSaved:
    data = b"".join([part.data async for part in call.parts if isinstance(part.data, bytes)])
    (DIRECTORY / asked.name).write_bytes(data)
    return spec.FileSaved(len(data))


async def give(asked: spec.FileUpload, call: Call) -> AsyncIterator[object]:
    data = (DIRECTORY / "given.bin").read_bytes()[: int(asked.name or 0)]
    yield spec.FileSent("given.bin", len(data))
    for at in range(0, len(data), PIECE):
        yield data[at : at + PIECE]


answering.PersonSurface = WithFiles  # type: ignore[misc]
sys.exit(main())
