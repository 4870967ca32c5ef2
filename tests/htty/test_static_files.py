"""A directory as pages: files, ranges, listings, and nothing outside of the directory."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.htty.static_files import DirectoryApp, FilePart, Validators, requested_part


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shown"
    (root / "inner" / "deep").mkdir(parents=True)
    (root / "hello.txt").write_text("hello, world\n")
    (root / "inner" / "a b&<i>.json").write_text("{}")
    (root / "site").mkdir()
    (root / "site" / "index.html").write_text("<h1>welcome</h1>")
    (root / ".secret").write_text("hidden")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("hidden")
    (tmp_path / "outside.txt").write_text("out of bounds")
    (tmp_path / "shown-too").mkdir()
    (tmp_path / "shown-too" / "x").write_text("out of bounds")
    return root


async def get(root: Path, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx.ASGITransport(DirectoryApp(root))
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
        request = httpx.Request(method, "http://page/", headers=named)
        request.url = request.url.copy_with(raw_path=path.encode())
        return await client.send(request)


async def test_a_file_is_served_with_its_type_and_length(root: Path) -> None:
    answer = await get(root, "/hello.txt")
    assert answer.status_code == 200
    assert answer.text == "hello, world\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-length"] == "13"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("waits", [False, True])
async def test_a_file_of_many_pieces_is_whole_whether_or_not_a_thread_reads_it(
    root: Path, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if waits:  # as on systems without RWF_NOWAIT
        monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    threads: list[object] = []
    reading = asyncio.to_thread
    monkeypatch.setattr(asyncio, "to_thread", lambda *a: threads.append(a) or reading(*a))
    data = os.urandom(600_001)
    (root / "large").write_bytes(data)
    assert (await get(root, "/large")).content == data
    assert bool(threads) or not waits


async def test_an_archive_is_served_unchanged(root: Path) -> None:
    (root / "a.tar.gz").write_bytes(b"\x1f\x8b")
    answer = await get(root, "/a.tar.gz")
    assert answer.headers["content-type"] == "application/gzip"
    assert "content-encoding" not in answer.headers


async def test_head_has_the_same_headers_without_the_body(root: Path) -> None:
    got, head = await get(root, "/hello.txt"), await get(root, "/hello.txt", "HEAD")
    assert head.content == b""
    assert head.headers == got.headers


@pytest.mark.parametrize(
    ("asked", "status", "content", "content_range"),
    [
        ("bytes=0-4", 206, b"hello", "bytes 0-4/13"),
        ("bytes=7-", 206, b"world\n", "bytes 7-12/13"),
        ("bytes=-6", 206, b"world\n", "bytes 7-12/13"),
        ("bytes=-99", 206, b"hello, world\n", "bytes 0-12/13"),
        ("bytes=7-99", 206, b"world\n", "bytes 7-12/13"),
        ("bytes=13-", 416, b"", "bytes */13"),
        ("bytes=-0", 416, b"", "bytes */13"),
        ("bytes=5-4", 200, b"hello, world\n", None),
        ("bytes=-", 200, b"hello, world\n", None),
        ("bytes=0-1,3-4", 200, b"hello, world\n", None),
        ("lines=0-1", 200, b"hello, world\n", None),
    ],
)
async def test_a_requested_range_is_served(
    root: Path, asked: str, status: int, content: bytes, content_range: str | None
) -> None:
    answer = await get(root, "/hello.txt", range=asked)
    assert (answer.status_code, answer.content) == (status, content)
    assert answer.headers.get("content-range") == content_range


async def test_an_unchanged_file_is_not_sent_again(root: Path) -> None:
    first = await get(root, "/hello.txt")
    tag, date = first.headers["etag"], first.headers["last-modified"]
    for condition in ({"if_none_match": f'"x", W/{tag}'}, {"if_modified_since": date}):
        again = await get(root, "/hello.txt", **condition)
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == tag
    (root / "hello.txt").write_text("another text")
    changed = await get(root, "/hello.txt", if_none_match=tag, if_modified_since=date)
    assert changed.text == "another text"


async def test_a_range_of_another_version_is_not_served(root: Path) -> None:
    tag = (await get(root, "/hello.txt")).headers["etag"]
    assert (await get(root, "/hello.txt", range="bytes=0-1", if_range=tag)).status_code == 206
    assert (await get(root, "/hello.txt", range="bytes=0-1", if_range='"x"')).status_code == 200


async def test_a_folder_is_listed_with_names_escaped(root: Path) -> None:
    answer = await get(root, "/inner/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "a b&amp;&lt;i&gt;.json" in answer.text
    assert "<i>" not in answer.text
    assert 'href="./deep/"' in answer.text
    assert 'href="../"' in answer.text
    link = re.search(r'href="([^"]*json)"', answer.text)
    assert link is not None
    assert (await get(root, f"/inner/{link[1]}".replace("./", ""))).text == "{}"


async def test_names_that_are_not_utf8_can_be_listed_and_opened(root: Path) -> None:
    (Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt"))).write_text("latin")
    assert 'href="./caf%E9.txt"' in (await get(root, "/")).text
    assert (await get(root, "/caf%E9.txt")).text == "latin"


async def test_a_folder_with_an_index_serves_it(root: Path) -> None:
    assert (await get(root, "/site/")).text == "<h1>welcome</h1>"


async def test_a_folder_without_its_slash_redirects_to_the_one_with_it(root: Path) -> None:
    answer = await get(root, "/inner")
    assert (answer.status_code, answer.headers["location"]) == (308, "./inner/")
    elsewhere = await get(root, "//inner")
    assert not elsewhere.headers["location"].startswith("//")


async def test_dotfiles_are_neither_listed_nor_served_unless_enabled(root: Path) -> None:
    assert "secret" not in (await get(root, "/")).text
    for path in ("/.secret", "/%2esecret", "/.git/config", "/inner/../.secret"):
        assert (await get(root, path)).status_code == 404
    transport = httpx.ASGITransport(DirectoryApp(root, hidden=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
        assert (await client.get("/.secret")).text == "hidden"
        assert ".secret" in (await client.get("/")).text


async def test_a_hidden_file_is_not_reached_by_a_visible_link(root: Path) -> None:
    (root / "shows").symlink_to(".secret")
    (root / "history").symlink_to(".git")
    (root / "inner" / "index.html").symlink_to("../.secret")
    for path in ("/shows", "/history/", "/history/config", "/inner/index.html"):
        assert (await get(root, path)).status_code == 404, path
    assert "hidden" not in (await get(root, "/inner/")).text
    assert (await get(root / ".git", "/config")).text == "hidden"  # served explicitly


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/..%2foutside.txt",
        "/%2e%2e/outside.txt",
        "/inner/../../outside.txt",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/../shown-too/x",
        "/hello.txt%00.png",
        "/hello.txt/",
        "/nothing",
        "/" + "x" * 300,
        "/" + "x/" * 3000,
    ],
)
async def test_no_path_leads_out_of_the_directory(root: Path, path: str) -> None:
    answer = await get(root, path)
    assert answer.status_code == 404
    assert "bounds" not in answer.text
    assert "root:" not in answer.text


async def test_links_may_lead_to_another_place_inside_and_never_out(root: Path) -> None:
    (root / "near").symlink_to("inner/../hello.txt")
    (root / "far").symlink_to("../outside.txt")
    (root / "absolute").symlink_to(root / "hello.txt")
    (root / "dir").symlink_to("..")
    (root / "inner" / "index.html").symlink_to("../../outside.txt")
    assert (await get(root, "/near")).text == "hello, world\n"
    for path in ("/far", "/absolute", "/dir/outside.txt", "/dir/", "/inner/index.html"):
        assert (await get(root, path)).status_code == 404
    assert "deep" in (await get(root, "/inner/")).text


async def test_a_file_that_becomes_a_link_between_two_checks_is_not_followed(root: Path) -> None:
    """A thread swaps it continuously; the file outside is never served."""
    stop = asyncio.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "link").symlink_to("../outside.txt")
            os.replace(root / "link", root / "swapped")
            (root / "file").touch()
            os.replace(root / "file", root / "swapped")

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    try:
        answers = [await get(root, "/swapped") for _ in range(200)]
    finally:
        stop.set()
        await swapping
    assert all("bounds" not in answer.text for answer in answers)
    assert {answer.status_code for answer in answers} <= {200, 404}


async def test_a_special_file_is_a_404_without_blocking(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert (await get(root, "/pipe")).status_code == 404


async def test_a_directory_is_read_only(root: Path) -> None:
    answer = await get(root, "/hello.txt", "POST")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_a_long_listing_is_cut(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telex.htty.limits.HTTY_NAMES_LISTED", 2)
    text = (await get(root, "/")).text
    assert text.count("<tr>") == 2
    assert "Only the first 2 names" in text


@given(
    size=st.integers(0, 50),
    asked=st.one_of(
        st.binary(max_size=12),
        st.from_regex(rb"bytes=[0-9]{0,2}-[0-9]{0,2}", fullmatch=True),
    ),
)
def test_a_range_lies_within_the_file(size: int, asked: bytes) -> None:
    found = requested_part({b"range": asked}, size, Validators(b'"x"', 0))
    assert 0 <= found.start <= found.start + found.length <= size
    assert found.status in (200, 206, 416)
    assert found.status != 206 or found.length
    assert found.status != 200 or found == FilePart(200, 0, size)
