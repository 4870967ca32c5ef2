"""Authentication of network requests, and the middleware that applies it."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.transports import auth, limits
from telex.transports.auth import (
    AccessRefused,
    Admitted,
    Authenticator,
    AuthMiddleware,
    AuthRequest,
    NoHostName,
    Redeemed,
    RefusalReason,
    Unproven,
    WeakToken,
    token_from,
)

TOKEN = "Zm9yIHRoZSB0ZXN0cyBvZiB0aGUgZG9vciBvbmx5ISE"
PORT = 8123
HOST = ("host", f"127.0.0.1:{PORT}")
HOME = ("origin", f"http://127.0.0.1:{PORT}")
BEARER = ("authorization", f"Bearer {TOKEN}")

Headers = list[tuple[str, str]]


def an_authenticator(**settings: Any) -> Authenticator:
    auth = Authenticator(TOKEN, **settings)
    auth.set_address("127.0.0.1", PORT)
    return auth


def request_with(
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = "/",
    query: str = "",
    ws: bool = False,
) -> AuthRequest:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return AuthRequest(method, path.encode("latin-1"), query.encode(), pairs, websocket=ws)


def cookie_of(auth: Authenticator) -> tuple[str, str]:
    redeemed = auth.authenticate(request_with(HOST, query=f"code={auth.new_code(0.0)}"), 1.0)
    assert isinstance(redeemed, Redeemed)
    assert redeemed.cookie is not None
    return "cookie", redeemed.cookie.partition(";")[0]


def outcome(verdict: object) -> str:
    match verdict:
        case Admitted(by):
            return by.value
        case AccessRefused(status, reason, _):
            return f"{status} {reason.value}"
        case Unproven():
            return "unproven"
        case _:
            return "redeemed"


# Each row: the request, apart from the method and path of a plain GET, and the expected verdict.
HOSTS: list[tuple[Headers, str]] = [
    ([HOST], "token"),
    ([("host", f"localhost:{PORT}")], "token"),
    ([("host", f"[::1]:{PORT}")], "token"),
    ([("host", f"LOCALHOST:{PORT}")], "token"),
    ([("Host", f"127.0.0.1:{PORT}")], "token"),
    ([], "400 host"),
    ([("host", "")], "403 host"),
    ([HOST, HOST], "400 host"),
    ([HOST, ("host", "evil.example")], "400 host"),
    ([HOST, ("Host", f"localhost:{PORT}")], "400 host"),
    ([("host", "127.0.0.1")], "403 host"),
    ([("host", "localhost")], "403 host"),
    ([("host", f"127.0.0.1:{PORT + 1}")], "403 host"),
    ([("host", f"127.0.0.1:{PORT}0")], "403 host"),
    ([("host", f"127.0.0.1:0{PORT}")], "403 host"),
    ([("host", "127.0.0.1:")], "403 host"),
    ([("host", f"evil.example:{PORT}")], "403 host"),
    ([("host", f"127.0.0.1.evil.example:{PORT}")], "403 host"),
    ([("host", f"127.0.0.1.nip.io:{PORT}")], "403 host"),
    ([("host", f"localhost.evil.example:{PORT}")], "403 host"),
    ([("host", f"evil.localhost:{PORT}")], "403 host"),
    ([("host", f"localhost.:{PORT}")], "403 host"),
    ([("host", f"user@127.0.0.1:{PORT}")], "403 host"),
    ([("host", f"127.0.0.1:{PORT}@evil.example")], "403 host"),
    ([("host", f"evil.example#127.0.0.1:{PORT}")], "403 host"),
    ([("host", f"http://127.0.0.1:{PORT}")], "403 host"),
    ([("host", f"127.0.0.1:{PORT}, evil.example")], "403 host"),
    ([("host", f" 127.0.0.1:{PORT}")], "403 host"),
    ([("host", f"127.0.0.1:{PORT}\t")], "403 host"),
    ([("host", f"127.1:{PORT}")], "403 host"),
    ([("host", f"2130706433:{PORT}")], "403 host"),
    ([("host", f"0x7f.1:{PORT}")], "403 host"),
    ([("host", f"0.0.0.0:{PORT}")], "403 host"),
    ([("host", f"::1:{PORT}")], "403 host"),
    ([("host", f"[::]:{PORT}")], "403 host"),
    ([("host", f"[0:0:0:0:0:0:0:1]:{PORT}")], "403 host"),
    ([("host", f"[::ffff:127.0.0.1]:{PORT}")], "403 host"),
    ([("host", f"l\u00f6calhost:{PORT}")], "403 host"),
    ([("host", "\xff\xfe")], "403 host"),
    ([("x-forwarded-host", f"127.0.0.1:{PORT}")], "400 host"),
    ([("host", "evil.example"), ("x-forwarded-host", f"127.0.0.1:{PORT}")], "403 host"),
    ([("host", "evil.example"), ("forwarded", f"host=127.0.0.1:{PORT}")], "403 host"),
]


@pytest.mark.parametrize(("headers", "expected"), HOSTS, ids=repr)
def test_only_our_own_host_names_are_accepted_even_with_the_token(
    headers: Headers, expected: str
) -> None:
    assert outcome(an_authenticator().authenticate(request_with(*headers, BEARER), 0.0)) == expected


ORIGINS: list[tuple[Headers, str]] = [
    ([], "token"),
    ([HOME], "token"),
    ([("origin", f"http://localhost:{PORT}")], "token"),
    ([("origin", f"http://[::1]:{PORT}")], "token"),
    ([("origin", "null")], "403 origin"),
    ([("origin", "")], "403 origin"),
    ([("origin", "http://127.0.0.1")], "403 origin"),
    ([("origin", f"http://127.0.0.1:{PORT + 1}")], "403 origin"),
    ([("origin", f"https://127.0.0.1:{PORT}")], "403 origin"),
    ([("origin", f"ws://127.0.0.1:{PORT}")], "403 origin"),
    ([("origin", f"HTTP://127.0.0.1:{PORT}")], "403 origin"),
    ([("origin", f"http://127.0.0.1:{PORT}/")], "403 origin"),
    ([("origin", f"http://127.0.0.1:{PORT}.evil.example")], "403 origin"),
    ([("origin", f"http://user@127.0.0.1:{PORT}")], "403 origin"),
    ([("origin", f"http://127.0.0.1:{PORT}@evil.example")], "403 origin"),
    ([("origin", f"http://evil.example:{PORT}")], "403 origin"),
    ([("origin", f"http://localhost.evil.example:{PORT}")], "403 origin"),
    ([("origin", f"http://evil.localhost:{PORT}")], "403 origin"),
    ([("origin", f"http://127.0.0.1:{PORT} http://evil.example")], "403 origin"),
    ([("origin", "file://")], "403 origin"),
    ([("origin", "chrome-extension://abcdefgh")], "403 origin"),
    ([("origin", "\xff")], "403 origin"),
    ([HOME, HOME], "400 origin"),
    ([HOME, ("origin", "http://evil.example")], "400 origin"),
]


@pytest.mark.parametrize(("headers", "expected"), ORIGINS, ids=repr)
def test_only_our_own_origins_are_accepted_even_with_the_token(
    headers: Headers, expected: str
) -> None:
    for ws in (False, True):
        assert (
            outcome(
                an_authenticator().authenticate(request_with(HOST, BEARER, *headers, ws=ws), 0.0)
            )
            == expected
        )


TOKENS: list[tuple[Headers, str]] = [
    ([BEARER], "token"),
    ([("Authorization", f"Bearer {TOKEN}")], "token"),
    ([("authorization", f"bearer {TOKEN}")], "token"),
    ([("authorization", f"BEARER  {TOKEN} ")], "token"),
    ([], "401 token"),
    ([("authorization", "")], "401 token"),
    ([("authorization", "Bearer")], "401 token"),
    ([("authorization", "Bearer ")], "401 token"),
    ([("authorization", TOKEN)], "401 token"),
    ([("authorization", f"Basic {TOKEN}")], "401 token"),
    ([("authorization", f"Bearer {TOKEN}x")], "401 token"),
    ([("authorization", f"Bearer {TOKEN[:-1]}")], "401 token"),
    ([("authorization", f"Bearer {TOKEN.swapcase()}")], "401 token"),
    ([("authorization", f"Bearer {TOKEN}, Bearer {TOKEN}")], "401 token"),
    ([("authorization", f"Bearer {TOKEN}\u00e4")], "401 token"),
    ([("authorization", "Bearer \xff\xfe\x00")], "401 token"),
    ([BEARER, BEARER], "401 token"),
    ([BEARER, ("authorization", "Bearer wrong")], "401 token"),
    ([("proxy-authorization", f"Bearer {TOKEN}")], "401 token"),
    ([("cookie", f"telex-{PORT}={TOKEN}")], "401 token"),
    ([("cookie", f"token={TOKEN}")], "401 token"),
    ([("x-token", TOKEN)], "401 token"),
]


@pytest.mark.parametrize(("headers", "expected"), TOKENS, ids=repr)
def test_only_the_whole_token_is_proof(headers: Headers, expected: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        assert (
            outcome(
                an_authenticator().authenticate(request_with(HOST, *headers, method=method), 0.0)
            )
            == expected
        )


COOKIES: list[tuple[str, bool, Headers, str]] = [
    ("GET", False, [], "cookie"),
    ("HEAD", False, [], "cookie"),
    ("GET", False, [HOME], "cookie"),
    ("POST", False, [HOME], "cookie"),
    ("DELETE", False, [HOME], "cookie"),
    ("GET", True, [HOME], "cookie"),
    ("POST", False, [], "403 origin"),
    ("PUT", False, [], "403 origin"),
    ("OPTIONS", False, [], "403 origin"),
    ("get", False, [], "403 origin"),
    ("GET", True, [], "403 origin"),
    ("GET", False, [("origin", "null")], "403 origin"),
    ("POST", False, [("origin", "http://evil.example")], "403 origin"),
    ("POST", False, [("referer", f"http://127.0.0.1:{PORT}/")], "403 origin"),
    ("GET", True, [("origin", f"http://localhost:{PORT + 1}")], "403 origin"),
    ("GET", False, [("authorization", "Bearer wrong")], "401 token"),
]


@pytest.mark.parametrize(("method", "ws", "headers", "expected"), COOKIES)
def test_a_cookie_alone_may_only_read(
    method: str, ws: bool, headers: Headers, expected: str
) -> None:
    auth = an_authenticator()
    request = request_with(HOST, cookie_of(auth), *headers, method=method, ws=ws)
    assert outcome(auth.authenticate(request, 2.0)) == expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("{}", "cookie"),
        ("other=1; {}; more=2", "cookie"),
        (f"telex-{PORT}=planted; {{}}", "cookie"),
        ("{}x", "401 token"),
        ("x{}", "401 token"),
        (f"telex-{PORT}=", "401 token"),
        (f"telex-{PORT}", "401 token"),
        ("", "401 token"),
        (";;;=;", "401 token"),
        ("\xff={}", "401 token"),
    ],
)
def test_a_cookie_counts_by_name_and_value(spelling: str, expected: str) -> None:
    auth = an_authenticator()
    _, cookie = cookie_of(auth)
    assert (
        outcome(auth.authenticate(request_with(HOST, ("cookie", spelling.format(cookie))), 2.0))
        == expected
    )


def test_a_cookie_is_for_the_authenticator_and_the_port_that_gave_it() -> None:
    auth, elsewhere = an_authenticator(), Authenticator(TOKEN)
    elsewhere.set_address("127.0.0.1", PORT + 1)
    cookie = cookie_of(auth)
    _, value = cookie[1].split("=", 1)
    assert cookie[1].startswith(f"telex-{PORT}=")
    assert outcome(an_authenticator().authenticate(request_with(HOST, cookie), 2.0)) == "401 token"
    renamed = ("cookie", f"telex-{PORT + 1}={value}")
    there = ("host", f"127.0.0.1:{PORT + 1}")
    assert outcome(elsewhere.authenticate(request_with(there, renamed), 2.0)) == "401 token"
    assert outcome(auth.authenticate(request_with(HOST, renamed), 2.0)) == "401 token"


def test_the_cookie_is_strict_and_has_nothing_of_the_token_or_the_code() -> None:
    auth = an_authenticator()
    code = auth.new_code(0.0)
    redeemed = auth.authenticate(request_with(HOST, query=f"code={code}"), 1.0)
    assert isinstance(redeemed, Redeemed)
    assert redeemed.cookie is not None
    pair, *attributes = redeemed.cookie.split("; ")
    assert attributes == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert len(pair.partition("=")[2]) == 43
    assert TOKEN not in pair
    assert code not in pair


def test_a_code_works_once_and_only_for_a_while() -> None:
    auth = an_authenticator()
    code = auth.new_code(0.0)
    request = request_with(HOST, query=f"code={code}")
    assert outcome(auth.authenticate(request, limits.CODE_SECONDS - 1)) == "redeemed"
    assert outcome(auth.authenticate(request, limits.CODE_SECONDS - 1)) == "401 code"
    late = request_with(HOST, query=f"code={auth.new_code(0.0)}")
    assert outcome(auth.authenticate(late, limits.CODE_SECONDS)) == "401 code"
    assert outcome(auth.authenticate(late, 1.0)) == "401 code"


def test_a_reload_of_a_spent_link_redirects_a_browser_with_the_cookie() -> None:
    auth = an_authenticator()
    cookie = cookie_of(auth)
    again = auth.authenticate(request_with(HOST, cookie, path="/x", query="code=spent"), 2.0)
    assert again == Redeemed(None, "/x")


@pytest.mark.parametrize(
    ("request_of", "expected"),
    [
        (lambda code: request_with(HOST, query=f"code={code}", method="HEAD"), "401 token"),
        (lambda code: request_with(HOST, query=f"code={code}", method="POST"), "401 token"),
        (lambda code: request_with(HOST, HOME, query=f"code={code}", ws=True), "unproven"),
        (lambda code: request_with(("host", "evil.example"), query=f"code={code}"), "403 host"),
        (
            lambda code: request_with(
                HOST, ("origin", "http://evil.example"), query=f"code={code}"
            ),
            "403 origin",
        ),
        (lambda code: request_with(HOST, query=f"CODE={code}"), "401 token"),
        (lambda code: request_with(HOST, query=f"xcode={code}"), "401 token"),
        (lambda code: request_with(HOST, query=f"code={code}&code={code}"), "401 code"),
        (lambda code: request_with(HOST, query=f"code={code}x"), "401 code"),
        (lambda code: request_with(HOST, query="code="), "401 code"),
        (lambda code: request_with(HOST, query="code"), "401 code"),
        (lambda code: request_with(HOST, BEARER, query="code=bad"), "token"),
    ],
)
def test_no_other_request_spends_a_code(
    request_of: Callable[[str], AuthRequest], expected: str
) -> None:
    auth = an_authenticator()
    code = auth.new_code(0.0)
    assert outcome(auth.authenticate(request_of(code), 1.0)) == expected
    assert (
        outcome(auth.authenticate(request_with(HOST, query=f"a=1&code={code}"), 1.0)) == "redeemed"
    )


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/", "/"),
        ("/sessions/1", "/sessions/1"),
        ("/a%20b", "/a%20b"),
        ("//evil.example", "/"),
        ("//evil.example/x", "/"),
        ("/\\evil.example", "/"),
        ("/%2f/evil.example", "/%2f/evil.example"),
        ("/\r\nSet-Cookie: a=b", "/"),
        ("/a\nb", "/"),
        ("/\xe4", "/"),
        ("/a?b", "/"),
        ("/a#b", "/"),
    ],
)
def test_a_redeemed_code_redirects_to_the_same_path_and_never_to_another_host(
    path: str, location: str
) -> None:
    auth = an_authenticator()
    verdict = auth.authenticate(
        request_with(HOST, path=path, query=f"code={auth.new_code(0.0)}"), 1.0
    )
    assert isinstance(verdict, Redeemed)
    assert verdict.location == location


@pytest.mark.parametrize("path", ["http://127.0.0.1:8123/", "*", "", "evil.example:443"])
def test_a_target_that_is_not_a_path_is_refused(path: str) -> None:
    assert (
        outcome(an_authenticator().authenticate(request_with(HOST, BEARER, path=path), 0.0))
        == "400 target"
    )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], "unproven"),
        ([HOME], "unproven"),
        ([HOME, ("cookie", f"telex-{PORT}=stale")], "unproven"),
        ([BEARER], "token"),
        ([("authorization", "Bearer wrong")], "401 token"),
        ([("origin", "http://evil.example")], "403 origin"),
        ([("sec-websocket-protocol", f"bearer, {TOKEN}")], "unproven"),
    ],
)
def test_a_websocket_without_proof_may_still_show_it(headers: Headers, expected: str) -> None:
    assert (
        outcome(an_authenticator().authenticate(request_with(HOST, *headers, ws=True), 0.0))
        == expected
    )


def test_codes_and_cookies_are_bounded_and_dropped_oldest_first() -> None:
    auth = an_authenticator()
    first = auth.new_code(0.0)
    for _ in range(limits.LOGIN_SECRETS):
        last = auth.new_code(0.0)
    assert outcome(auth.authenticate(request_with(HOST, query=f"code={first}"), 1.0)) == "401 code"
    assert outcome(auth.authenticate(request_with(HOST, query=f"code={last}"), 1.0)) == "redeemed"
    oldest = cookie_of(auth)
    for _ in range(limits.LOGIN_SECRETS):
        newest = cookie_of(auth)
    assert outcome(auth.authenticate(request_with(HOST, oldest), 2.0)) == "401 token"
    assert outcome(auth.authenticate(request_with(HOST, newest), 2.0)) == "cookie"


def test_an_authenticator_without_an_address_refuses_every_request() -> None:
    assert outcome(Authenticator(TOKEN).authenticate(request_with(HOST, BEARER), 0.0)) == "403 host"


@pytest.mark.parametrize(
    ("host", "origin", "expected"),
    [
        (f"box.lan:{PORT}", f"http://box.lan:{PORT}", "token"),
        (f"BOX.lan:{PORT}", f"http://box.lan:{PORT}", "token"),
        ("proxy.lan:8080", "http://proxy.lan:8080", "token"),
        ("proxy.lan:8080", "https://proxy.lan", "token"),
        (f"proxy.lan:{PORT}", "http://proxy.lan:8080", "403 host"),
        (f"sub.box.lan:{PORT}", f"http://box.lan:{PORT}", "403 host"),
        (f"box.lan:{PORT}", "https://other.lan", "403 origin"),
    ],
)
def test_configured_names_are_accepted_too(host: str, origin: str, expected: str) -> None:
    auth = an_authenticator(names=["Box.lan", "proxy.lan:8080"], origins=["https://proxy.lan"])
    assert (
        outcome(auth.authenticate(request_with(("host", host), ("origin", origin), BEARER), 0.0))
        == expected
    )


def test_a_name_without_its_port_is_accepted_only_on_port_80() -> None:
    auth = Authenticator(TOKEN)
    auth.set_address("0.0.0.0", 80)
    assert outcome(auth.authenticate(request_with(("host", "localhost"), BEARER), 0.0)) == "token"
    assert outcome(auth.authenticate(request_with(("host", "[::1]:80"), BEARER), 0.0)) == "token"
    assert outcome(auth.authenticate(request_with(("host", "0.0.0.0"), BEARER), 0.0)) == "403 host"


@pytest.mark.parametrize("name", ["*", "*.lan", "http://box", "a b", "box.lan:", "", "a@b", "box/"])
def test_a_name_that_no_host_header_can_have_is_refused_at_once(name: str) -> None:
    with pytest.raises(NoHostName, match="is not a host name"):
        Authenticator(TOKEN, names=[name])


def test_the_token_is_the_environments_or_256_random_bits() -> None:
    assert token_from({"TELEX_TOKEN": TOKEN}) == TOKEN
    assert len(token_from({})) == 43
    assert token_from({}) != token_from({"TELEX_TOKEN": ""})


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ümlaut" * 5, "a" * 15])
def test_a_weak_token_is_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(WeakToken) as caught:
        token_from({"TELEX_TOKEN": token})
    assert token not in str(caught.value)
    assert "unset it" in str(caught.value)
    with pytest.raises(WeakToken):
        Authenticator("")


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[object, object]] = []
    digest = hmac.compare_digest
    monkeypatch.setattr(
        hmac, "compare_digest", lambda a, b: compared.append((a, b)) or digest(a, b)
    )
    an_authenticator().authenticate(request_with(HOST, ("authorization", "Bearer \xffguess")), 0.0)
    assert compared == [(b"\xffguess", TOKEN.encode())]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"host", b"origin", b"cookie", b"authorization", b"x"]),
            st.binary(max_size=60),
        )
    ),
    st.binary(max_size=40),
    st.booleans(),
)
def test_no_request_without_proof_is_admitted_or_raises(
    headers: list[tuple[bytes, bytes]], query: bytes, ws: bool
) -> None:
    auth = an_authenticator()
    good = [(b"host", f"127.0.0.1:{PORT}".encode())]
    for request in (
        AuthRequest("GET", b"/", query, headers, ws),
        AuthRequest("POST", b"/", query, good + [h for h in headers if h[0] != b"host"], ws),
    ):
        assert isinstance(auth.authenticate(request, 0.0), AccessRefused | Unproven)


def test_nothing_secret_is_in_a_repr() -> None:
    auth = an_authenticator()
    code = auth.new_code(0.0)
    request = request_with(HOST, BEARER, ("cookie", "telex-8123=crumbs"), query=f"code={code}")
    redeemed = auth.authenticate(request_with(HOST, query=f"code={code}"), 1.0)
    assert isinstance(redeemed, Redeemed)
    shown = f"{auth!r} {request!r} {redeemed!r} {vars(auth)!r}"
    assert code not in shown
    assert "crumbs" not in shown
    assert str(redeemed.cookie) not in shown
    assert TOKEN not in f"{auth!r} {request!r}"


def test_a_refusal_repeats_nothing_of_the_request() -> None:
    for headers, _ in (*HOSTS, *ORIGINS, *TOKENS):
        verdict = an_authenticator().authenticate(request_with(*headers), 0.0)
        assert isinstance(verdict, AccessRefused)
        assert verdict.reason in RefusalReason
        assert "evil" not in verdict.sentence
        assert 400 <= verdict.status < 500


# The middleware: the same rules, in ASGI.


class Exchange:
    """One request to the middleware, driven by hand: messages received and messages sent."""

    def __init__(self, *incoming: dict[str, Any]) -> None:
        self._incoming = list(incoming)
        self.sent: list[dict[str, Any]] = []
        self.received = 0

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        if not self._incoming:
            return {"type": "websocket.disconnect", "code": 1001}
        return self._incoming.pop(0)

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))

    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """The app behind the middleware: a page without protection of its own."""
    if scope["type"] == "websocket":
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": str(await receive())})
        return
    headers = [(b"Access-Control-Allow-Origin", b"*"), (b"cache-control", b"max-age=60")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


def scope_of(request: AuthRequest, **more: Any) -> dict[str, Any]:
    return {
        "type": "websocket" if request.websocket else "http",
        "method": request.method,
        "path": request.path.decode(),
        "raw_path": request.path,
        "query_string": request.query,
        "headers": list(request.headers),
        **more,
    }


async def through(
    exchange: Exchange, request: AuthRequest, auth: Authenticator | None = None, **more: Any
) -> None:
    await AuthMiddleware(hello, auth or an_authenticator(), clock=lambda: 1.0)(
        scope_of(request, **more), exchange.receive, exchange.send
    )


async def test_a_request_without_proof_gets_an_error_and_is_not_read() -> None:
    exchange = Exchange()
    await through(exchange, request_with(HOST, method="POST"))
    assert exchange.received == 0
    assert exchange.sent[0]["status"] == 401
    assert exchange.headers()["www-authenticate"] == "Bearer"
    refusal = msgspec.json.decode(exchange.sent[1]["body"])
    assert refusal["reason"] == "token"
    assert refusal["message"].startswith("This needs the token")


REFUSED_REQUESTS: list[tuple[Headers, dict[str, str], str]] = [
    ([HOST], {}, "token"),
    ([HOST, ("authorization", "Bearer wrong")], {}, "token"),
    ([HOST], {"query": "code=spent"}, "code"),
    ([("host", "evil.example")], {}, "host"),
    ([HOST, HOST], {}, "host"),
    ([HOST, ("origin", "http://evil.example")], {"method": "POST"}, "origin"),
    ([HOST], {"path": "http://proxy/"}, "target"),
]
A_BROWSER = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")


@pytest.mark.parametrize(("headers", "more", "reason"), REFUSED_REQUESTS)
async def test_every_refusal_is_a_page_with_advice_for_a_person_and_json_for_a_program(
    headers: Headers, more: dict[str, str], reason: str
) -> None:
    person, program = Exchange(), Exchange()
    guarded = AuthMiddleware(
        hello, an_authenticator(), advice=lambda why: f"try `this {why}`", title="<mine>"
    )
    for exchange, accepts in ((person, A_BROWSER), (program, ("accept", "*/*"))):
        request = request_with(*headers, accepts, **more)
        await guarded(scope_of(request), exchange.receive, exchange.send)
    refusal = msgspec.json.decode(program.sent[1]["body"])
    page = person.sent[1]["body"].decode()
    assert program.headers()["content-type"] == "application/json"
    assert refusal["reason"] == reason
    assert person.sent[0]["status"] == program.sent[0]["status"]
    assert person.headers()["content-type"] == "text/html; charset=utf-8"
    assert f"<p>{refusal['message']}</p>" in page
    assert f"<code>this {reason}</code>" in page
    assert "&lt;mine&gt;" in page
    for word in ("evil", "spent", "wrong", "proxy"):
        assert word not in page


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_browser_from_another_site_gets_a_page_that_makes_it_send_the_cookie(
    site: str,
) -> None:
    auth = an_authenticator(names=["demo-1.localhost"], shared=True)
    at = ("host", f"demo-1.localhost:{PORT}")
    exchange = Exchange()
    query = f"telex-code={auth.new_code(0.0)}"
    request = request_with(at, A_BROWSER, ("sec-fetch-site", site), path="/x", query=query)
    await through(exchange, request, auth)
    assert exchange.sent[0]["status"] == 200
    assert exchange.headers()["set-cookie"].startswith(f"telex-{PORT}=")
    assert 'content="0; url=/x"' in exchange.sent[1]["body"].decode()
    again = Exchange()
    await through(again, request, auth)
    page = again.sent[1]["body"].decode()
    assert (again.sent[0]["status"], "set-cookie" in again.headers()) == (401, False)
    assert '<a href="/">' in page, "the front, and not where a stranger's link leads"
    assert "refresh" not in page, "a person decides"


@pytest.mark.parametrize("headers", [[HOST, BEARER], [HOST], [("host", "evil.example")]])
async def test_every_response_has_the_security_headers_and_allows_no_other_origin(
    headers: Headers,
) -> None:
    exchange = Exchange()
    await through(exchange, request_with(*headers))
    found = exchange.headers()
    assert found["content-security-policy"] == "default-src 'self'; frame-ancestors 'none'"
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert not [name for name in found if name.lower().startswith("access-control")]


async def test_a_page_may_set_its_own_policy() -> None:
    exchange = Exchange()
    await through(exchange, request_with(HOST, BEARER))
    assert exchange.headers()["cache-control"] == "max-age=60"
    assert exchange.sent[1]["body"] == b"hello"


async def test_a_code_becomes_a_cookie_and_a_plain_address() -> None:
    exchange, auth = Exchange(), an_authenticator()
    await through(exchange, request_with(HOST, path="/x", query=f"code={auth.new_code(0.0)}"), auth)
    assert exchange.sent[0]["status"] == 303
    assert exchange.headers()["location"] == "/x"
    assert exchange.headers()["set-cookie"].startswith(f"telex-{PORT}=")
    assert exchange.headers()["cache-control"] == "no-store"


async def test_a_refused_websocket_gets_the_same_page_where_the_server_can_send_it() -> None:
    request = request_with(HOST, ("origin", "http://evil.example"), ws=True)
    exchange = Exchange()
    await through(exchange, request, extensions={"websocket.http.response": {}})
    assert exchange.sent[0]["type"] == "websocket.http.response.start"
    assert exchange.sent[0]["status"] == 403
    exchange = Exchange()
    await through(exchange, request)
    assert exchange.sent == [{"type": "websocket.close", "code": 4403}]


CONNECT = {"type": "websocket.connect"}


@pytest.mark.parametrize("key", ["text", "bytes"])
async def test_the_first_message_may_be_the_token_and_the_app_never_sees_it(key: str) -> None:
    body = msgspec.json.encode({"token": TOKEN})
    shown = {"type": "websocket.receive", key: body.decode() if key == "text" else body}
    greeting = {"type": "websocket.receive", "text": "hi"}
    exchange = Exchange(CONNECT, shown, greeting)
    await through(exchange, request_with(HOST, HOME, ws=True))
    assert [message["type"] for message in exchange.sent] == ["websocket.accept", "websocket.send"]
    assert exchange.sent[1]["text"] == str(greeting)


@pytest.mark.parametrize(
    "text",
    ["", "hi", "{}", '{"token": 1}', '{"token": "wrong"}', '{"token": "ü"}', "[" * 3000, TOKEN],
)
async def test_any_other_first_message_is_the_last(text: str) -> None:
    exchange = Exchange(CONNECT, {"type": "websocket.receive", "text": text})
    await through(exchange, request_with(HOST, ws=True))
    assert [message["type"] for message in exchange.sent] == ["websocket.accept", "websocket.close"]
    assert exchange.sent[1]["code"] == 4401
    assert len(exchange.sent[1]["reason"].encode()) <= 123


async def test_a_websocket_without_a_first_message_is_closed_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auth, "TOKEN_SECONDS", 0.01)
    exchange = Exchange(CONNECT)

    async def receive() -> dict[str, Any]:
        if exchange.received:
            await asyncio.Event().wait()
        return await exchange.receive()

    await AuthMiddleware(hello, an_authenticator())(
        scope_of(request_with(HOST, ws=True)), receive, exchange.send
    )
    assert exchange.sent[1]["code"] == 4401
    assert "none arrived" in exchange.sent[1]["reason"]


async def test_lifespan_messages_are_passed_on() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    await AuthMiddleware(app, an_authenticator())(
        {"type": "lifespan"}, Exchange().receive, Exchange().send
    )
    assert seen == ["lifespan"]
