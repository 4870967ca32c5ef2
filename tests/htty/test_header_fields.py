from __future__ import annotations

import pytest
from h2.exceptions import ProtocolError
from h2.utilities import HeaderValidationFlags, validate_headers
from hypothesis import given, settings
from hypothesis import strategies as st

from htty.frames_by_hand import GET, OK
from telex.htty.h2.header_fields import HeaderBlock, Headers, headers_fault, headers_size

WEBSOCKET: Headers = [(b":method", b"CONNECT"), (b":protocol", b"websocket"), *GET[1:]]


@pytest.mark.parametrize(
    ("headers", "block"),
    [
        (GET, HeaderBlock.REQUEST),
        (WEBSOCKET, HeaderBlock.REQUEST),
        ([(b":method", b"CONNECT"), (b":authority", b"a:1")], HeaderBlock.REQUEST),
        ([*GET[:3], (b"host", b"a")], HeaderBlock.REQUEST),
        (
            [*GET, (b"host", b"page.localhost"), (b"te", b"trailers"), (b"x", b"")],
            HeaderBlock.REQUEST,
        ),
        ([*OK, (b"set-cookie", b"a=\xe4; b")], HeaderBlock.RESPONSE),
        ([(b"x-checksum", b"1")], HeaderBlock.TRAILERS),
        ([], HeaderBlock.TRAILERS),
    ],
)
def test_fields_that_http2_allows_pass(headers: Headers, block: HeaderBlock) -> None:
    assert headers_fault(headers, block) is None


@pytest.mark.parametrize(
    "extra",
    [
        (b"x", b"a\r\nevil: 1"),
        (b"x", b"a\nb"),
        (b"x", b"a\0b"),
        (b"x", b" a"),
        (b"x", b"a\t"),
        (b"x\r\nevil", b"1"),
        (b"x y", b"1"),
        (b"X", b"1"),
        (b"x:y", b"1"),
        (b"x\n", b"1"),
        (b"", b"1"),
        (b"\xe4", b"1"),
        (b"connection", b"close"),
        (b"transfer-encoding", b"chunked"),
        (b"upgrade", b"h2c"),
        (b"keep-alive", b"1"),
        (b"te", b"gzip"),
        (b":path", b"/other"),
        (b":status", b"200"),
        (b":made-up", b"1"),
        (b"host", b"other.localhost"),
    ],
)
def test_fields_that_could_smuggle_a_request_do_not_pass(extra: tuple[bytes, bytes]) -> None:
    assert headers_fault([*GET, extra], HeaderBlock.REQUEST)


@pytest.mark.parametrize("missing", range(4))
def test_a_request_needs_all_its_pseudo_header_fields(missing: int) -> None:
    assert headers_fault(
        [field for at, field in enumerate(GET) if at != missing], HeaderBlock.REQUEST
    )


@pytest.mark.parametrize(
    "headers",
    [
        [*GET[:2], (b":path", b""), GET[3]],
        [*GET, (b"host", b"page.localhost"), (b"host", b"page.localhost")],
        [(b":protocol", b"websocket"), *GET],
        [(b":method", b"CONNECT"), (b":scheme", b"http"), (b":authority", b"a")],
        [(b":method", b""), *GET[1:]],
        [(b"x", b"1"), *GET],
    ],
)
def test_requests_that_do_not_fit_together_are_refused(headers: Headers) -> None:
    assert headers_fault(headers, HeaderBlock.REQUEST)


@pytest.mark.parametrize("status", [b"", b"2", b"2000", b"OK!", b"099"])
def test_a_response_needs_a_status(status: bytes) -> None:
    assert headers_fault([(b":status", status)], HeaderBlock.RESPONSE)


def test_trailers_have_no_pseudo_header_fields() -> None:
    assert headers_fault(OK, HeaderBlock.TRAILERS)


def test_the_size_of_a_header_list_is_counted_as_in_http2() -> None:
    assert headers_size([(b"ab", b"cde"), (b"", b"")]) == 5 + 64


NAMES = st.sampled_from(
    b":method :scheme :path :authority :protocol :status host te x cookie connection x-y X a:b".split(
        b" "
    )
) | st.binary(max_size=4)
VALUES = st.sampled_from([b"GET", b"CONNECT", b"http", b"/", b"", b"a", b"200", b"trailers"]) | (
    st.binary(max_size=4)
)
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=5)


@settings(max_examples=300)
@given(st.sampled_from([[], GET, WEBSOCKET, OK]), FIELDS, st.sampled_from(HeaderBlock))
def test_no_fields_pass_that_h2_would_refuse(
    base: Headers, more: Headers, block: HeaderBlock
) -> None:
    headers = [*base, *more]
    flags = HeaderValidationFlags(
        is_client=block is HeaderBlock.RESPONSE,
        is_trailer=block is HeaderBlock.TRAILERS,
        is_response_header=block is HeaderBlock.RESPONSE,
        is_push_promise=False,
    )
    try:
        list(validate_headers(headers, flags))
    except (ProtocolError, IndexError):
        assert headers_fault(headers, block)
