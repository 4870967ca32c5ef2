"""Subscriptions end when they should, and the terminal has the modes that they need and no others."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from telex.escapes.commands import EVENTS
from telex.escapes.subscriptions import REVOKED, Subscriptions, mode_switches
from telex.terminal.cells import Size
from telex.terminal.screen import Screen

MOUSE, CLICK, FOCUS = "event:mouse", "event:mouseclick", "event:focus"


def test_only_known_events_can_be_subscribed_to() -> None:
    subscriptions = Subscriptions()
    assert subscriptions.subscribe(7, [FOCUS, "event:nonsense"]) == {FOCUS}
    assert subscriptions.subscribe(7, [CLICK]) == {FOCUS, CLICK}
    assert subscriptions.names == {FOCUS, CLICK}
    assert subscriptions.askers(FOCUS) == [7]


def test_a_subscription_ends_with_unsubscribe() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(7, [FOCUS, CLICK, MOUSE])
    assert subscriptions.unsubscribe(7, [FOCUS]) == {CLICK, MOUSE}
    assert subscriptions.unsubscribe(7) == frozenset()
    assert subscriptions.names == frozenset()


def test_a_subscription_ends_when_its_process_group_leaves_the_foreground() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(7, [FOCUS])
    subscriptions.subscribe("socket", [MOUSE])
    subscriptions.set_foreground(7)
    assert subscriptions.names == {FOCUS, MOUSE}
    subscriptions.set_foreground(8)
    assert subscriptions.names == {MOUSE}
    subscriptions.set_foreground(7)
    assert subscriptions.names_of(7) == frozenset()


def test_a_subscriber_to_revoked_is_notified_once() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(7, [FOCUS, MOUSE, REVOKED])
    subscriptions.set_foreground(8)
    subscriptions.set_foreground(8)
    assert subscriptions.names == {REVOKED}
    assert subscriptions.needed_modes() == frozenset()
    subscriptions.set_foreground(7)
    assert subscriptions.take_revoked(7) == {FOCUS, MOUSE}
    assert subscriptions.take_revoked(7) == frozenset()
    assert subscriptions.names_of(7) == {REVOKED}


def test_a_subscription_ends_with_its_asker() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe("socket", [MOUSE])
    subscriptions.remove("socket")
    subscriptions.remove("socket")
    assert subscriptions.needed_modes() == frozenset()


def test_a_subscription_ends_with_the_newest_process_of_a_group_that_still_runs() -> None:
    """As in `sh -c "editor; cat"`: the shell leads the group, and the editor subscribed."""
    script = "cat; echo next; read line"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(b"editor\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == b"editor\n"
        subscriptions = Subscriptions()
        subscriptions.subscribe(shell.pid, [FOCUS])
        subscriptions.set_foreground(shell.pid)
        assert subscriptions.names == {FOCUS}
        shell.stdin.close()
        assert shell.stdout.readline() == b"next\n"
        subscriptions.set_foreground(shell.pid)
        assert subscriptions.names == frozenset()


def test_the_needed_modes_are_those_of_all_subscriptions() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(7, ["event:key"])
    assert subscriptions.needed_modes() == frozenset()
    subscriptions.subscribe(7, [FOCUS, CLICK])
    assert subscriptions.needed_modes() == {1004, 1000, 1006}


def test_a_mode_of_the_program_itself_is_left_alone() -> None:
    needed = frozenset({1004, 2004})
    assert mode_switches(frozenset(), needed, frozenset({1004})) == b"\x1b[?2004h"
    assert mode_switches(needed, frozenset(), frozenset({1004})) == b"\x1b[?2004l"


def test_a_mode_that_is_needed_already_is_not_switched_again() -> None:
    assert mode_switches(frozenset({1004}), frozenset({1004, 2004}), frozenset()) == b"\x1b[?2004h"


def test_pixels_of_the_program_stay_pixels() -> None:
    own = frozenset({1003, 1016})
    assert mode_switches(frozenset(), frozenset({1000, 1006}), own) == b""


MODES = st.frozensets(st.sampled_from(sorted({m for e in EVENTS.values() for m in e.modes})))
OWN = st.frozensets(st.sampled_from([9, 1000, 1002, 1003, 1004, 1006, 1015, 1016, 2004, 2031]))


def speaking(*parts: bytes) -> bytes:
    """Return the modes of a terminal after these switches."""
    screen = Screen(Size(3, 20), scrollback=0)
    for part in parts:
        screen.feed(part)
    restored = screen.restore()
    screen.close()
    return restored


@given(MODES, MODES, OWN)
def test_afterwards_the_terminal_is_as_the_program_has_set_it(
    first: frozenset[int], second: frozenset[int], own: frozenset[int]
) -> None:
    nothing: frozenset[int] = frozenset()
    of_each = [{9, 1000, 1002, 1003}, {1006, 1015, 1016}]
    own -= frozenset().union(*[set(sorted(own & group)[:-1]) for group in of_each])
    set_by_it = b"".join([b"\x1b[?%dh" % mode for mode in sorted(own)])
    there = speaking(
        set_by_it, mode_switches(nothing, first, own), mode_switches(first, second, own)
    )
    assert there == speaking(set_by_it, mode_switches(nothing, second, own))
    assert speaking(set_by_it) == speaking(
        set_by_it,
        mode_switches(nothing, first, own),
        mode_switches(first, second, own),
        mode_switches(second, nothing, own),
    )
