"""A stand-in for the API that Claude Code talks to, on loopback: it answers without a model.

What a prompt says decides: `limit-me` is refused with 429, `key-me` with 401; all else is answered with
how long it was.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = {
    "limit-me": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "key-me": (401, "authentication_error", "invalid x-api-key"),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._answer(404, {"type": "error", "error": {"type": "not_found_error", "message": "no"}})

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            self._answer(200, {"input_tokens": 1})
            return
        said = _last_said(asked)
        for word, (status, kind, message) in REFUSED.items():
            if word in said:
                self._answer(status, {"type": "error", "error": {"type": kind, "message": message}})
                return
        self.server.prompts.append(said)
        self._message(asked, f"You said {len(said)} characters.")

    def _message(self, asked: dict[str, Any], text: str) -> None:
        message: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", "none"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not asked.get("stream"):
            content = [{"type": "text", "text": text}]
            self._answer(200, {**message, "content": content, "stop_reason": "end_turn"})
            return
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        body = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        self._send(200, "text/event-stream", body.encode())

    def _answer(self, status: int, value: object) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-should-retry", "false")
        self.end_headers()
        self.wfile.write(body)


def _last_said(asked: dict[str, Any]) -> str:
    """All since the last answer: the prompt, and what the program adds to it."""
    said: list[str] = []
    for message in asked.get("messages", []):
        if message["role"] == "assistant":
            said.clear()
            continue
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said += [str(part["text"]) for part in parts if part.get("type") == "text"]
    return "\n".join(said)


class StandIn(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prompts: list[str] = []
        """What was answered."""

    def heard(self, prompt: str) -> bool:
        return any(prompt in said for said in self.prompts)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def stand_in() -> Iterator[StandIn]:
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
