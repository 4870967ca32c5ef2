"""`python -m scripts.render_demo`: draw docs/pictures/verbs.gif, the recording in the README.

A bash on a terminal of its own runs the verbs, typed as a person types. The frames of the recording
become an animation; each stands as long as it stood on the screen, and the last one longer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from io import BytesIO
from itertools import pairwise
from pathlib import Path

from PIL import Image

import telex

COMMANDS = (
    "telex open -- vim --clean notes.txt",
    "telex do 'type \"ihello from a shell\"' 'press <esc>' 'wait hello'",
    "telex see | head -4",
    "telex do 'type \":wq\"' 'press enter' 'wait --exit'",
    "cat notes.txt; telex close",
)
STEP_SECONDS = 0.08
LAST_SECONDS = 4.0
PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "verbs.gif"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        recording = _record(Path(directory))
        _draw(recording, Path(directory), PICTURE)
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


def _record(directory: Path) -> Path:
    home = directory / "home"
    home.mkdir()
    environ = {
        "TELEX_HOME": str(home),
        "HOME": str(directory),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PS1": "$ ",
        "BASH_SILENCE_DEPRECATION_WARNING": "1",
    }
    command = ["bash", "--norc", "--noprofile"]
    with telex.spawn(command, rows=18, cols=78, cwd=str(directory), env=environ) as term:
        term.wait("$ ")
        term.record(str(directory / "verbs.cast"))
        for line in COMMANDS:
            for character in line:
                term.type(character)
                time.sleep(0.03)  # as fast as a person who types well
            mark = term.press("enter")
            term.wait(telex.match.regex(r"\$ $"), since=mark)
            time.sleep(0.8)  # time to read
        term.type("telex server stop\n")
        term.wait("stopped")
    return directory / "verbs.cast"


def _draw(recording: Path, directory: Path, picture: Path) -> None:
    screens = telex.recordings.read(recording)
    last = screens.when("telex server stop")[0].appeared - STEP_SECONDS
    times = [step * STEP_SECONDS for step in range(int(last / STEP_SECONDS))]
    frames: list[tuple[bytes, float]] = []
    for now, then in pairwise([*times, last]):
        drawn = screens.screenshot(directory / "frame.png", now).read_bytes()
        if frames and frames[-1][0] == drawn:
            frames[-1] = drawn, frames[-1][1] + then - now
        else:
            frames.append((drawn, then - now))
    images = [
        Image.open(BytesIO(drawn)).convert("P", palette=Image.Palette.ADAPTIVE, colors=32)
        for drawn, _ in frames
    ]
    durations = [round(seconds * 1000) for _, seconds in frames]
    durations[-1] = round(LAST_SECONDS * 1000)
    more = {"append_images": images[1:], "duration": durations, "loop": 0, "optimize": True}
    images[0].save(picture, save_all=True, **more)


if __name__ == "__main__":
    main()
