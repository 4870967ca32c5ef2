"""Whether a page may be sent: the environment decides first, otherwise the terminal is queried."""

from __future__ import annotations

from typing import Any

import pytest

from escapes.terminals import SILENT, Manners, ran, running, terminal
from telex.htty.support import NoPages, advertised_version, find_support

SHOWS: dict[str, Any] = {"capabilities": {"htty": {"level": 1}}, "maxframe": 65536}


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ("1", 1),
        ("2", 1),
        ("01", 1),
        ("9" * 5000, 1),
        ("0", 0),
        ("000", 0),
        ("", 0),
        ("-1", 0),
        ("+1", 0),
        ("1.0", 0),
        (" 1", 0),
        ("yes", 0),
        ("١", 0),
    ],
)
def test_the_variable_is_read_as_the_spec_requires(given: str, version: int) -> None:
    assert advertised_version({"HTTY": given}) == version


def test_without_the_variable_the_support_is_unknown() -> None:
    assert advertised_version({}) is None


@pytest.mark.parametrize("given", ["0", "no"])
@pytest.mark.parametrize("force", [False, True])
async def test_a_no_is_never_overridden_and_nothing_is_written(given: str, force: bool) -> None:
    async with terminal(Manners(detect=SHOWS)) as fake:
        with pytest.raises(NoPages, match="telex run"):
            await find_support({"HTTY": given}, fake.fd, force=force)
        assert fake.asked == 0


async def test_a_terminal_that_announces_pages_is_trusted() -> None:
    async with terminal(Manners(detect=SHOWS)) as fake:
        found = await find_support({}, fake.fd)
        assert (found.version, found.wrap) == (1, None)
        assert found.round_trip.seconds is not None
        assert fake.restored()


async def test_keys_typed_while_the_terminal_is_queried_are_not_lost() -> None:
    async with terminal(Manners(detect=SHOWS, late=0.1)) as fake:
        fake.type(b"early")
        assert (await find_support({}, fake.fd)).typed == b"early"


@pytest.mark.parametrize(
    ("manners", "why"),
    [
        (Manners(answers=[SILENT]), "does not speak JSON escapes"),
        (Manners(), "without `htty`"),
        (Manners(detect={"capabilities": {"htty": {"level": 0}}}), "without `htty`"),
        (Manners(detect={"capabilities": {"htty": ["1"]}}), "without `htty`"),
        (Manners(detect={"capabilities": {"htty": {"level": True}}}), "without `htty`"),
    ],
)
async def test_any_other_terminal_gets_no_page(manners: Manners, why: str) -> None:
    async with terminal(manners) as fake:
        with pytest.raises(NoPages, match=why) as refused:
            await find_support({}, fake.fd)
        assert "telex run -- " in str(refused.value)
        assert refused.value.exit_code == 3
        assert fake.restored()
        assert bytes(fake.shown) == b""


async def test_force_assumes_a_yes_if_nothing_is_known() -> None:
    async with terminal(Manners(answers=[SILENT])) as fake:
        assert (await find_support({}, fake.fd, force=True)).version == 1
        assert fake.asked == 0


async def test_behind_tmux_the_terminal_is_queried_and_chunks_are_wrapped() -> None:
    async with terminal(Manners(multiplexer="tmux", answers=[SILENT], detect=SHOWS)) as fake:
        found = await find_support({"TMUX": "x"}, fake.fd)
        assert found.wrap is not None
        assert found.wrap.name == "tmux"


async def test_in_tmux_the_variable_is_not_enough_and_the_error_names_the_setting() -> None:
    async with terminal(Manners(multiplexer="deaf", answers=[SILENT], detect=SHOWS)) as fake:
        with pytest.raises(NoPages, match="tmux set -g allow-passthrough on"):
            await find_support({"HTTY": "1", "TMUX": "x"}, fake.fd)
        assert b"HTTY" not in fake.shown


async def test_screen_passes_no_page_on() -> None:
    async with terminal() as fake:
        with pytest.raises(NoPages, match="screen"):
            await find_support({"HTTY": "1", "STY": "x"}, fake.fd)


async def test_without_a_terminal_and_without_the_variable_there_are_no_pages() -> None:
    program = "import asyncio; from telex.htty.support import *; asyncio.run(find_support({}, standard_terminal()))"
    async with terminal() as fake:
        code, out, err = await ran(fake, "-c", program)
        assert (code, out) == (1, "")
        assert "NoPages: there is no terminal here" in err
        assert fake.asked == 0


async def test_a_program_on_a_terminal_queries_it() -> None:
    program = (
        "import asyncio; from telex.htty.support import *;"
        "print(asyncio.run(find_support({}, standard_terminal())).version, flush=True)"
    )
    async with (
        terminal(Manners(detect=SHOWS)) as fake,
        running(fake, "-c", program, piped=False) as child,
    ):
        await fake.sees(b"1\r\n")
        assert await child.wait() == 0
