"""Which requests get a page in place of JSON, and the content of the page."""

from __future__ import annotations

import pytest

from telex.transports.responses import ErrorPage, wants_html

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
FIREFOX = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "person"),
    [
        (CHROMIUM, True),
        (FIREFOX, True),
        ("text/html", True),
        ("TEXT/HTML; charset=utf-8", True),
        ("application/json;q=0.5, text/html", True),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/plain, */*", False),
        ("application/json, text/html;q=0.5", False),
        ("text/html;q=0", False),
        ("text/html;q=nan", False),
        ("text/html;q=1e9", False),
        ("text/event-stream", False),
        ("", False),
        (None, False),
        (",;,;q=", False),
    ],
)
def test_a_person_is_recognised_by_the_accept_header(accept: str | None, person: bool) -> None:
    headers = [(b"host", b"x")] + ([] if accept is None else [(b"Accept", accept.encode())])
    assert wants_html(headers) is person


def test_everything_on_the_page_is_text_and_commands_are_marked() -> None:
    page = ErrorPage(
        "<b>no</b>", 'try `telex "run"`', "<script>", link=('/"><b>', "<go>"), refresh=(1, '/"x')
    )
    body = page.body().decode()
    assert "<b>" not in body
    assert "<script>" not in body
    assert "<code>telex &quot;run&quot;</code>" in body
    assert 'href="/&quot;&gt;&lt;b&gt;"' in body
    assert 'content="1; url=/&quot;x"' in body


def test_the_policy_allows_only_the_content_of_the_page() -> None:
    plain, scripted = ErrorPage("no"), ErrorPage("no", script="go()", refresh=(1, ""))
    for page in (plain, scripted):
        policy = page.policy().decode()
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'self'" in policy
    assert "script-src" not in plain.policy().decode()
    assert "script-src 'sha256-" in scripted.policy().decode()
    assert "<noscript><meta http-equiv=refresh" in scripted.body().decode()
