"""`telex mcp`: carries MCP messages between standard input and output and the one server.

The server answers; this process carries lines, so that it starts in a few milliseconds and imports
almost nothing. It connects at the first message, and a server that does not run is started then. If
the server ends, the requests that wait for an answer get an error, and the next message connects
again. The calls name their sessions. Subscriptions of the older versions end with the sessions they
follow: the client is notified that these resources and their list have changed.
"""

from __future__ import annotations

import os
import select
import time

from telex.config.runtime_directory import SOCKET_NAME, find_runtime_directory
from telex.server.verb_client import (
    ANSWER_SECONDS,
    MESSAGE_BYTES,
    NoAnswer,
    NotAccepted,
    connect,
    decode_json,
    encode_json,
    exchange,
    is_text,
)
from telex.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping
    from typing import Any

_ATTEMPTS = 3
_BUFFER_BYTES = 1 << 20
"""How much is read ahead of a side that does not read."""
_READ_BYTES = 1 << 16
_FOLLOWED = 64
"""How many subscriptions are remembered; the server allows as many."""
_INTERNAL = -32603
_PARSE = -32700


class NotServed(Exception):
    """There is no server for the message; a sentence."""


def run(environ: Mapping[str, str] = os.environ) -> int:
    """Carry messages until standard input ends and everything is answered, or nobody reads."""
    relay = Relay(environ)
    try:
        relay.run()
    except BrokenPipeError:
        return 0  # the client is gone
    except KeyboardInterrupt:
        return 130
    finally:
        relay.close()
    return 0


class Relay:
    """Standard input and output on one side, a connection to the server on the other."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._server: _socket.socket | None = None
        self._unread = bytearray()
        """The beginning of a message from the client."""
        self._skips = False
        """Whether the rest of a message that was too long is dropped."""
        self._unanswered: dict[tuple[type, int | str], tuple[str, str]] = {}
        """The method and the address of each request without an answer, by the type of the id and
        the id."""
        self._initialized = False
        """Whether the client had a handshake: it then hears of new sessions."""
        self._followed: dict[str, None] = {}
        """The addresses that the client subscribed to, the latest last."""
        self._to_server = bytearray()
        self._from_server = bytearray()
        self._to_client = bytearray()
        self._ended = False
        """Whether standard input has ended."""

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def run(self) -> None:
        while not self._ended or self._server is not None or self._to_client:
            self._step()

    def _step(self) -> None:
        poll = select.poll()
        if self._to_client:
            poll.register(1, select.POLLOUT)
        else:
            poll.register(1, 0)  # only whether the client is gone
        if not self._ended and len(self._to_server) < _BUFFER_BYTES:
            poll.register(0, select.POLLIN)
        server = -1
        if self._server is not None:
            server = self._server.fileno()
            wanted = select.POLLIN if len(self._to_client) < _BUFFER_BYTES else 0
            poll.register(server, wanted | (select.POLLOUT if self._to_server else 0))
        ready = dict(poll.poll())
        if ready.get(1, 0) & (select.POLLERR | select.POLLHUP):
            raise BrokenPipeError
        if ready.get(1, 0) & select.POLLOUT:
            # A pipe that is ready takes this much at once, so the write does not block.
            del self._to_client[: os.write(1, self._to_client[: select.PIPE_BUF])]
        if 0 in ready:
            self._read_client()
        if server in ready:
            self._use_server(ready[server])

    # The client's side.

    def _read_client(self) -> None:
        part = os.read(0, _READ_BYTES)
        if not part:
            self._end_input()
            return
        *lines, rest = (self._unread + part).split(b"\n")
        self._unread = bytearray(rest)
        if lines and self._skips:
            del lines[0]
            self._skips = False
        for line in lines:
            self._forward(bytes(line).strip())
        if len(self._unread) > MESSAGE_BYTES:
            if not self._skips:
                self._fail(None, _PARSE, f"A message has at most {MESSAGE_BYTES} bytes.")
            self._unread.clear()
            self._skips = True

    def _end_input(self) -> None:
        """End the subscriptions, which would never end, and let the rest be answered."""
        if self._unread.strip() and not self._skips:
            self._forward(bytes(self._unread).strip())
        self._unread.clear()
        self._ended = True
        for (_, id), (method, _) in [*self._unanswered.items()]:
            if method == "subscriptions/listen":
                params = {"requestId": id}
                self._queue({"method": "notifications/cancelled", "params": params})
        if self._server is not None and not self._to_server:
            self._server.shutdown(1)

    def _forward(self, line: bytes) -> None:
        if not line:
            return
        message = _decoded(line)
        method, id, params = message.get("method"), message.get("id"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "notifications/cancelled":
            cancelled = params.get("requestId")
            if isinstance(cancelled, (int, str)):
                self._unanswered.pop((type(cancelled), cancelled), None)  # nobody waits for it
            if self._server is None:
                return
        if self._server is None:
            try:
                self._server = self._connected()
            except NotServed as problem:
                if method is None or id is not None:
                    self._fail(id, _INTERNAL, str(problem))
                return
        if isinstance(method, str) and isinstance(id, (int, str)):
            uri = params.get("uri")
            self._unanswered[type(id), id] = method, uri if isinstance(uri, str) else ""
        self._to_server += line + b"\n"

    def _queue(self, message: dict[str, Any]) -> None:
        self._to_server += encode_json({"jsonrpc": "2.0", **message}).encode() + b"\n"

    def _fail(self, id: Any, code: int, sentence: str) -> None:
        error = encode_json({"code": code, "message": sentence})
        shown = encode_json(id) if isinstance(id, (int, str)) else "null"
        answer = f'{{"jsonrpc":"2.0","id":{shown},"error":{error}}}\n'
        self._to_client += answer.encode()

    # The server's side.

    def _connected(self) -> _socket.socket:
        """Return a connection to the server, which is started if there is none."""
        environ = self._environ
        env = {name: value for name, value in environ.items() if is_text(name + value)}
        params = {
            "cwd": _directory(),
            "env": env,
            "version": __version__,
            "initialized": self._initialized,
        }
        asked = {"jsonrpc": "2.0", "id": 0, "method": "mcp.connect", "params": params}
        request = encode_json(asked).encode() + b"\n"
        path = os.path.join(find_runtime_directory(environ), SOCKET_NAME)
        deadline = time.monotonic() + ANSWER_SECONDS
        for _ in range(_ATTEMPTS):
            try:
                server = connect(path, deadline)
                answer = exchange(server, request, deadline, keep_open=True)
            except NotAccepted:
                continue
            except NoAnswer as late:
                raise NotServed(f"telex: {late}") from None
            except Exception as error:  # noqa: BLE001  the client reads answers, no traceback
                raise NotServed(f"telex: {error}") from None
            if answer.get("again"):
                server.close()
                continue
            if problem := answer.get("problem") or answer.get("stderr"):
                server.close()
                raise NotServed(problem.strip())
            server.setblocking(False)
            return server
        raise NotServed("telex: the server ends whenever it is called; see `telex server logs`")

    def _use_server(self, ready: int) -> None:
        server = self._server
        if server is None:
            return
        try:
            if ready & select.POLLOUT:
                del self._to_server[: server.send(self._to_server[:_READ_BYTES])]
                if self._ended and not self._to_server:
                    server.shutdown(1)
            if ready & ~select.POLLOUT:
                part = server.recv(_READ_BYTES)
                if not part:
                    raise ConnectionResetError
                self._from_server += part
                self._deliver()
        except BlockingIOError:
            return
        except OSError:
            self._lose()

    def _deliver(self) -> None:
        *lines, rest = self._from_server.split(b"\n")
        self._from_server = rest
        for line in lines:
            message = _decoded(bytes(line))
            if "method" not in message and isinstance(id := message.get("id"), (int, str)):
                method, uri = self._unanswered.pop((type(id), id), ("", ""))
                if "error" not in message:
                    self._note_done(method, uri)
            self._to_client += line + b"\n"

    def _note_done(self, method: str, uri: str) -> None:
        """Note a request that has succeeded, if the client expects notifications from it."""
        if method == "initialize":
            self._initialized = True
        elif method == "resources/subscribe":
            self._followed.pop(uri, None)
            self._followed[uri] = None
            if len(self._followed) > _FOLLOWED:
                del self._followed[next(iter(self._followed))]
        elif method == "resources/unsubscribe":
            self._followed.pop(uri, None)

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": f"notifications/resources/{method}"}
        self._to_client += encode_json(message | {"params": params}).encode() + b"\n"

    def _lose(self) -> None:
        """Answer the requests that the server has left without an answer, and notify of the
        sessions that ended with it."""
        self.close()
        self._to_server.clear()
        self._from_server.clear()
        for _, id in self._unanswered:
            self._fail(
                id,
                _INTERNAL,
                "The telex server ended before its answer, and its sessions with it. The next call "
                "starts a new server; `telex server logs` may say why it ended.",
            )
        self._unanswered.clear()
        for uri in self._followed:
            self._notify("updated", {"uri": uri})
        self._followed.clear()
        if self._initialized:
            self._notify("list_changed", {})


def _decoded(line: bytes) -> dict[str, Any]:
    """Return a message; an empty one if it is none, which the server will say."""
    try:
        message = decode_json(line.decode())
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _directory() -> str:
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        return "/"  # it was removed
    return cwd if is_text(cwd) else "/"
