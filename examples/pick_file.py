"""Let the person pick a file in their browser, and print its path.

    telex run -- python examples/pick_file.py [DIRECTORY]
    telex run -- ssh -t HOST python pick_file.py /var/log

A page lists the directory. A click on a file, or a file dropped on the page, which is uploaded to
the directory, ends the program: the path is its output, and the exit code is 1 if nothing was
chosen.
"""

from __future__ import annotations

import asyncio
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from telex import htty


class Picker:
    """A page to pick one file beneath `root` with."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.chosen: Path | None = None
        self.done = asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/", self.listing),
                Route("/pick", self.pick, methods=["POST"]),
                Route("/upload", self.upload, methods=["POST"]),
            ]
        )

    async def listing(self, request: Request) -> Response:
        folder = self.beneath(request.query_params.get("in", ""))
        if not folder.is_dir():
            raise HTTPException(404, "There is no such folder.")
        entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
        entries.sort(key=lambda path: (not path.is_dir(), path.name.casefold()))
        rows = [self.row(path) for path in entries]
        if folder != self.root:
            rows.insert(0, self.link("..", folder.parent))
        shown = "".join(rows) or "<li><span>Nothing here.</span></li>"
        here = escape(str(folder))
        return HTMLResponse(PAGE.replace(HERE, here).replace(ROWS, shown))

    async def pick(self, request: Request) -> Response:
        path = self.beneath(request.query_params["path"])
        if not path.is_file():
            raise HTTPException(404, "There is no such file any more.")
        return self.choose(path)

    async def upload(self, request: Request) -> Response:
        """Piece by piece to a file of that name. One that is there already is left alone."""
        folder = self.beneath(request.query_params.get("in", ""))
        path = folder / Path(request.query_params["name"]).name
        try:
            with path.open("xb") as file:
                async for piece in request.stream():
                    file.write(piece)
        except FileExistsError:
            return PlainTextResponse("There is a file of that name already.", 409)
        except BaseException:
            path.unlink(missing_ok=True)  # half a file is none
            raise
        return self.choose(path)

    def beneath(self, name: str) -> Path:
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise HTTPException(404, "That is somewhere else.")
        return path

    def choose(self, path: Path) -> Response:
        self.chosen = path
        self.done.set()  # this answer is still sent
        return HTMLResponse(CHOSEN.replace(NAME, escape(path.name)))

    def row(self, path: Path) -> str:
        if path.is_dir():
            return self.link(f"{path.name}/", path)
        action = f"pick?path={quote(str(path.relative_to(self.root)))}"
        return (
            f'<li><form method="post" action="{escape(action)}">'
            f"<button>{escape(path.name)}</button></form></li>"
        )

    def link(self, text: str, folder: Path) -> str:
        where = quote(str(folder.relative_to(self.root)))
        return f'<li><a href="?in={escape(where)}">{escape(text)}</a></li>'


HERE, ROWS, NAME = "<!--here-->", "<!--rows-->", "<!--name-->"  # no escaped name holds one

HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pick a file</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2.5rem auto;
    padding: 0 1rem; background: light-dark(#fff, #16181c); color: light-dark(#1b1d21, #e4e6ea); }
  h1 { font-size: 1.25rem; margin: 0; }
  p { color: #888; margin: .2rem 0 1.2rem; overflow-wrap: anywhere; }
  ul { list-style: none; padding: 0; border: 1px solid #8883; border-radius: .7rem;
    overflow: hidden; }
  li + li { border-top: 1px solid #8883; }
  li a, li button, li span { display: block; width: 100%; box-sizing: border-box; text-align: left;
    padding: .55rem .9rem; font: inherit; color: inherit; background: none; border: 0;
    text-decoration: none; cursor: pointer; overflow-wrap: anywhere; }
  li a { font-weight: 600; }
  li a:hover, li button:hover { background: #4c7dff22; }
  label { display: block; border: 2px dashed #8886; border-radius: .7rem; padding: 1.2rem;
    text-align: center; color: #888; cursor: pointer; }
  label.over { border-color: #4c7dff; color: #4c7dff; }
</style>
"""

PAGE = f"""{HEAD}<h1>Pick a file</h1><p>{HERE}</p>
<ul>{ROWS}</ul>
<label>Or drop one of yours here, or click to choose it<input type="file" hidden></label>
<script>
  const label = document.querySelector('label'), input = document.querySelector('input');
  function upload(file) {{
    const request = new XMLHttpRequest();
    const where = new URLSearchParams(location.search).get('in') ?? '';
    request.open('POST', 'upload?' + new URLSearchParams({{in: where, name: file.name}}));
    request.upload.onprogress = event =>
      label.textContent = file.name + ' ' + Math.round(100 * event.loaded / event.total) + ' %';
    request.onload = () => {{
      if (request.status == 200) document.documentElement.innerHTML = request.response;
      else label.textContent = request.response;
    }};
    request.onerror = () => label.textContent = 'The upload broke off.';
    request.send(file);
  }}
  input.onchange = () => upload(input.files[0]);
  label.ondragover = event => {{ event.preventDefault(); label.classList.add('over'); }};
  label.ondragleave = () => label.classList.remove('over');
  label.ondrop = event => {{ event.preventDefault(); upload(event.dataTransfer.files[0]); }};
</script>
</html>
"""

CHOSEN = f"""{HEAD}<h1>{NAME}</h1><p>The program has it. You can close this tab.</p></html>
"""


async def main(root: Path) -> Path | None:
    picker = Picker(root)
    await htty.serve(picker.app, stop=picker.done)
    return picker.chosen


if __name__ == "__main__":
    try:
        chosen = asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    except htty.NoPages as why:
        print(why, file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        chosen = None
    if chosen is None:
        sys.exit(1)
    print(chosen)
