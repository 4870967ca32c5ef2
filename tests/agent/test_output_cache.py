"""The cache of long tool outputs: private, limited, and read in pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.working import call, context_in, refused, said
from telex.agent.tools.output_cache import NoSuchOutput, OutputCache
from telex.redaction import Redactor


def cache_in(directory: Path, **limits: int) -> OutputCache:
    return OutputCache(directory / "cache", Redactor(), **limits)


async def test_a_page_has_numbered_lines_from_zero_and_the_next_offset(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context.cache.save("one", "".join(f"line {at}\n" for at in range(5)))
    assert await said(context, "tool_output_cache", ref_id="one", offset=1, limit=2) == (
        "    1  line 1\n    2  line 2\n[lines 1 to 2 of 5; continue with offset 3]"
    )
    assert await said(context, "tool_output_cache", ref_id="one", offset=4) == "    4  line 4"
    assert "5 lines" in await refused(context, "tool_output_cache", ref_id="one", offset=5)


async def test_a_page_is_bounded_in_bytes_and_no_line_is_lost(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context.cache.save("big", "€" * 900 + "\n" + ("x" * 900 + "\n") * 100)
    first = await said(context, "tool_output_cache", ref_id="big")
    assert len(first.encode()) < 65_536 + 100
    following = int(first.rsplit(" ", 1)[1].rstrip("]"))
    second = await said(context, "tool_output_cache", ref_id="big", offset=following)
    assert second.startswith(f"{following:5d}  xxx")
    assert second.endswith(" " + "x" * 900)


async def test_a_long_line_is_clipped_and_can_be_read_in_parts(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context.cache.save("wide", "y" * 1001 + "\n" + "ab" * 10_000)
    page = await said(context, "tool_output_cache", ref_id="wide")
    assert "    0  " + "y" * 1000 + "...[line clipped]" in page
    assert "tool_output_cache_line" in page
    part = await said(context, "tool_output_cache_line", ref_id="wide", line_number=1)
    assert part == "ab" * 5000 + "\n[characters 0 to 9999 of 20000; continue at 10000]"
    rest = await said(
        context, "tool_output_cache_line", ref_id="wide", line_number=1, char_offset=19_998
    )
    assert rest == "ab"
    assert "2 lines" in await refused(
        context, "tool_output_cache_line", ref_id="wide", line_number=2
    )


async def test_lines_are_found_with_their_context(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context.cache.save("log", "a\nb\nfail 1\nc\nd\nfail 2\ne\n")
    grep = {"ref_id": "log", "pattern": "fail"}
    assert await said(context, "tool_output_cache_grep", **grep, before=1) == (
        "    1- b\n    2: fail 1\n    4- d\n    5: fail 2"
    )
    assert await said(context, "tool_output_cache_grep", **grep, max_matches=1) == (
        "    2: fail 1\n[only the first 1 matches]"
    )
    assert "no line" in await said(context, "tool_output_cache_grep", ref_id="log", pattern="l.1")
    found = await said(
        context, "tool_output_cache_grep", ref_id="log", pattern="^f.*2$", regex=True
    )
    assert found == "    5: fail 2"
    assert "regular" in await refused(
        context, "tool_output_cache_grep", ref_id="log", pattern="(", regex=True
    )


@pytest.mark.parametrize(
    "ref_id", ["../etc", "a/b", "", ".", "a.txt", "x" * 200, "a\nb", "missing"]
)
async def test_an_invalid_id_reads_no_file(tmp_path: Path, ref_id: str) -> None:
    result = await call(context_in(tmp_path), "tool_output_cache", ref_id=ref_id)
    assert result.is_error


def test_the_oldest_outputs_are_deleted_when_there_are_too_many(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, most_files=3)
    for at in range(5):
        cache.save(f"o{at}", "text")
        os.utime(tmp_path / "cache" / f"o{at}.txt", ns=(at, at))
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [
        "o2.txt",
        "o3.txt",
        "o4.txt",
    ]


def test_the_oldest_outputs_are_deleted_when_they_are_too_large_but_never_the_newest(
    tmp_path: Path,
) -> None:
    cache = cache_in(tmp_path, most_bytes=10)
    cache.save("old", "12345678")
    os.utime(tmp_path / "cache" / "old.txt", ns=(1, 1))
    cache.save("new", "x" * 100)
    assert cache.read("new", 0, 1).startswith("    0  xxx")
    with pytest.raises(NoSuchOutput, match="old outputs are deleted"):
        cache.read("old", 0, 1)


def test_an_output_is_private_and_without_secrets(tmp_path: Path) -> None:
    cache_in(tmp_path).save("one", "token=ghp_" + "a" * 36)
    assert "ghp_a" not in (tmp_path / "cache" / "one.txt").read_text()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache" / "one.txt").stat().st_mode & 0o777 == 0o600
