"""The client of the verbs: `telex open`, `see`, `type`, `press`, `wait` and the others.

A verb runs in the server. This process sends the command line and prints the answer, so it parses
nothing and imports almost nothing: `json`, `re`, `socket` and `typing` would each take as long as
all of this. A server that does not run is started first (`start`, imported only then).
"""

from __future__ import annotations

import _socket  # `socket` takes 8 ms to import
import os
import sys
import time
from errno import EAGAIN, ECONNREFUSED, ENOENT

from telex.config.runtime_directory import SOCKET_NAME, find_runtime_directory
from telex.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TextIO

ANSWER_SECONDS = 30.0
"""How long a verb waits for the server, unless the server announces that it takes longer."""
MESSAGE_BYTES = 16 << 20
"""See `wire.limits`: the server takes no longer message."""
_ATTEMPTS = 3
"""A server may end, or be replaced, while a call begins. Each attempt finds a new one."""

_TAKES_ENVIRONMENT = ("open", "do")
_OPTIONS_WITH_VALUE = ("-s", "--session")


class NoAnswer(Exception):
    """The server did not answer in time."""

    exit_code = 124


class NotSent(Exception):
    """The call cannot be sent to the server; a sentence."""

    exit_code = 2


class ForeignServer(Exception):
    """Another user listens at the path of the socket."""

    exit_code = 4


class NotAccepted(Exception):
    """The connection ended before the server accepted the call, so it can be repeated."""


def run(argv: list[str]) -> int:
    """Run one verb and return the exit code of this process."""
    try:
        return _print(call(argv, os.environ))
    except NoAnswer as late:
        _explain(str(late))
        return 124
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes stdout at exit
        return 141


def call(argv: list[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Send a verb to the server, which is started if there is none, and return the result.

    Raises:
        NoAnswer: The server did not answer in time.
    """
    request = _request(argv, environ)
    deadline = time.monotonic() + ANSWER_SECONDS
    path = os.path.join(find_runtime_directory(environ), SOCKET_NAME)
    for _ in range(_ATTEMPTS):
        try:
            result = exchange(connect(path, deadline), request, deadline)
        except NotAccepted:
            continue
        if not result.get("again"):
            return result
        _write(sys.stderr, result["stderr"])
    return _failure("the server ends whenever it is called; `telex server logs` may say why", 5)


def _request(argv: list[str], environ: Mapping[str, str]) -> bytes:
    for argument in argv:
        if not is_text(argument):
            raise NotSent(f"the argument {argument!r} is not UTF-8, which is all that telex sends")
    named = [*environ] if argv[0] in _TAKES_ENVIRONMENT else ["TELEX_SESSION"]
    env = {name: environ[name] for name in named if is_text(name + environ.get(name, "\udcff"))}
    params = {"argv": argv, "cwd": _directory(argv[0]), "env": env, "version": __version__}
    if _reads_stdin(argv):
        params["stdin"] = _read_stdin(time.monotonic() + ANSWER_SECONDS)
    message = {"jsonrpc": "2.0", "id": 1, "method": "verb.run", "params": params}
    request = encode_json(message).encode() + b"\n"
    if len(request) > MESSAGE_BYTES:
        raise _too_long()
    return request


def _too_long() -> NotSent:
    return NotSent(f"a verb takes at most {MESSAGE_BYTES >> 20} MiB; send the text in parts")


def is_text(value: str) -> bool:
    """Whether JSON can carry it. Variables of other encodings are not sent."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _directory(verb: str) -> str:
    """Return the caller's directory, which most verbs do not need; empty if there is none."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = ""  # it was removed; a verb that needs it says so
    if not is_text(cwd):
        if verb in _TAKES_ENVIRONMENT:
            raise NotSent(f"the name of the directory {cwd!r} is not UTF-8; change to another one")
        cwd = ""
    return cwd


def _read_stdin(deadline: float) -> str:
    """Return all of standard input. A pipe that nobody closes ends by the deadline."""
    if sys.stdin is None:
        raise NotSent("standard input is closed; give the text as an argument")
    from select import select

    parts: list[bytes] = []
    size = 0
    while size <= MESSAGE_BYTES:
        if not select([0], [], [], _left(deadline))[0]:
            raise NoAnswer(
                f"standard input did not end within {ANSWER_SECONDS:g} s; give the steps or the "
                "text as arguments, or close the pipe"
            )
        if not (part := os.read(0, 1 << 16)):
            return b"".join(parts).decode(errors="replace")
        parts.append(part)
        size += len(part)
    raise _too_long()


def _reads_stdin(argv: list[str]) -> bool:
    """Whether the verb reads standard input: `type -`, `paste -`, and `do` without steps."""
    given = argv[1:]
    if argv[0] in ("type", "paste"):
        return "-" in given
    steps = [
        argument
        for before, argument in zip(["", *given], given, strict=False)
        if not argument.startswith("-") and before not in _OPTIONS_WITH_VALUE
    ]
    return argv[0] == "do" and not steps and (sys.stdin is None or not sys.stdin.isatty())


def connect(path: str, deadline: float) -> _socket.socket:
    connection = connected(path, deadline)
    if connection is None:
        from telex.server.start import start_server

        start_server(path, deadline)
        connection = connected(path, deadline)
        if connection is None:
            raise NotAccepted
    return connection


def connected(path: str, deadline: float) -> _socket.socket | None:
    """Return a connection; None if no server listens. Raises ForeignServer."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # A blocking connect with the kernel's timeout: one of Python's would not wait for room in a
    # full queue of connections.
    seconds = _left(deadline)
    whole = int(seconds)
    parts = (whole, int((seconds - whole) * 1e6))
    timeout = b"".join(part.to_bytes(8, sys.byteorder) for part in parts)
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, timeout)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        if error.errno in (ENOENT, ECONNREFUSED):
            return None
        if error.errno == EAGAIN:
            raise NoAnswer(_late(seconds)) from None
        error.filename = path
        raise
    if (user := _user(connection)) != os.getuid():
        connection.close()
        raise ForeignServer(
            f"the server at {path} is run by user {user}; it got nothing of yours. Set TELEX_HOME "
            "to a directory of your own"
        )
    return connection


def _user(connection: _socket.socket) -> int:
    """Return the user of the server, from the kernel: the second number on Linux and on macOS."""
    if sys.platform == "linux":
        facts = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    else:
        facts = connection.getsockopt(0, 1, 76)  # LOCAL_PEERCRED, struct xucred
    return int.from_bytes(facts[4:8], sys.byteorder)


def exchange(
    connection: _socket.socket, request: bytes, deadline: float, *, keep_open: bool = False
) -> dict[str, Any]:
    """Send the request and return the result, as late as the server announces.

    Args:
        deadline: Until then the server must have announced something.
        keep_open: Leave the connection open after a result.

    Raises:
        NoAnswer: The server did not answer in time.
        NotAccepted: The connection or the server ended before the server began.
    """
    allowed = _left(deadline)
    accepted = answered = False
    received = b""
    try:
        _send(connection, request, deadline)
        while True:
            connection.settimeout(_left(deadline))
            part = connection.recv(1 << 16)
            if not part:
                if accepted:
                    return _failure("the server ended while it worked; `telex server logs`")
                raise NotAccepted
            *lines, received = (received + part).split(b"\n")
            for line in lines:
                message = decode_json(line.decode())
                if message.get("method") == "verb.deadline":
                    accepted = True
                    allowed = message["params"]["seconds"]
                    deadline = time.monotonic() + allowed
                elif "result" in message:
                    answered = True
                    return message["result"]  # type: ignore[no-any-return]  # JSON of our server
                elif "error" in message:
                    if not accepted and _ends(message["error"]):
                        raise NotAccepted
                    return _failure(message["error"]["message"])
    except TimeoutError:
        raise NoAnswer(_late(allowed)) from None
    except (BrokenPipeError, ConnectionResetError):
        raise NotAccepted from None
    finally:
        if not (keep_open and answered):
            connection.close()


def _ends(error: dict[str, Any]) -> bool:
    """Whether the error is that of a server that shuts down (`rpc.errors.ENDING`)."""
    data = error.get("data")
    return isinstance(data, dict) and data.get("kind") == "server_ending"


def _send(connection: _socket.socket, request: bytes, deadline: float) -> None:
    left = memoryview(request)
    while left:
        connection.settimeout(_left(deadline))
        left = left[connection.send(left) :]


def _failure(sentence: str, code: int = 1) -> dict[str, Any]:
    return {"code": code, "stdout": "", "stderr": f"telex: {sentence}\n"}


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _late(seconds: float) -> str:
    return (
        f"the server did not answer within {seconds:.3g} s; look at it with `telex server status`, "
        "or end it with `telex server stop`"
    )


def _print(result: dict[str, Any]) -> int:
    if text := result["stdout"]:
        _write(sys.stdout, text if text.endswith("\n") else f"{text}\n")
    _write(sys.stderr, result["stderr"])
    return int(result["code"])


def _explain(sentence: str) -> None:
    _write(sys.stderr, f"telex: {sentence}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # Python has none where the descriptor was closed
        stream.buffer.write(text.encode(stream.encoding, "backslashreplace"))
        stream.flush()


# JSON by the C functions of Python's own `json`, without the regular expressions beside them.


def encode_json(value: Any) -> str:
    try:
        from _json import encode_basestring_ascii as quote
    except ImportError:  # another implementation of Python
        from json import dumps

        return dumps(value)
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{quote(key)}:{encode_json(item)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(encode_json, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quote(value)


def decode_json(text: str) -> Any:
    """Return the value of a JSON text. Raises `ValueError` and `RecursionError`."""
    try:
        from _json import make_scanner
    except ImportError:
        from json import loads

        return loads(text)
    settings: Any = _Plain()
    try:
        return make_scanner(settings)(text, 0)[0]
    except (StopIteration, SystemError) as error:
        # The scanner raises an exception of `json.decoder`, and fails where that is not imported.
        raise ValueError("the text is not JSON") from error


class _Plain:
    """The settings of the scanner: plain JSON."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012  the scanner reads it
