"""JSON escape frames: clauses that no codec test shows by itself."""

from __future__ import annotations

import pytest

from telex.wire.escape import Claim
from telex.wire.events import Frame, Visible
from telex.wire.json_escape import TO_PROGRAM, TO_TERMINAL, JsonEscapeDecoder, encode

BODY = b'{"command":"x"}'


@pytest.mark.parametrize(
    ("claim", "other", "number"),
    [(TO_TERMINAL, TO_PROGRAM, b"23198"), (TO_PROGRAM, TO_TERMINAL, b"23199")],
)
def test_each_direction_has_its_own_number_and_is_not_taken_for_the_other(
    claim: Claim, other: Claim, number: bytes
) -> None:
    wire = encode(BODY, claim)
    assert wire == b"\x1b]%b;15;%b\x07" % (number, BODY)
    assert JsonEscapeDecoder(claim).feed(wire) == [Frame(BODY)]
    assert JsonEscapeDecoder(other).feed(wire) == [Visible(wire)]
