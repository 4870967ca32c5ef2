"""JSON escapes under `telex run` are claimed, applied and answered; other bytes pass unchanged."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import DEADLINE
from passthrough.person import BASH, TELEX
from passthrough.seat import RUN, Seated, frame, printing, seated
from telex.passthrough.event_delivery import EventDelivery
from telex.passthrough.foreground_history import LATELY_SECONDS
from telex.passthrough.question_row import QUIET_SECONDS
from telex.rpc.dialects.json_escapes import JsonEscapes
from telex.rpc.handler_tasks import CallContext
from telex.rpc.memory import memory_channels
from telex.rpc.outgoing_calls import Inbox
from telex.rpc.peer import Peer
from telex.terminal.cells import Size
from telex.terminal.recording import OutputEvent, read_recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASK = """
import os, re, select, sys, termios, tty
tty.setraw(0)
def ask(body, ends=b"\\a"):
    os.write(1, body)
    got = b""
    while not got.endswith(ends):
        assert select.select([0], [], [], 5)[0], got
        got += os.read(0, 65536)
    return got
"""


def program(body: str) -> tuple[str, ...]:
    """Return the command of a Python program on a raw terminal."""
    return (sys.executable, "-c", ASK + body)


async def test_a_command_is_applied_where_it_stood_and_its_frame_is_never_seen(
    tmp_path: Path,
) -> None:
    told = frame('{"command":"term:setstyle","data":{"color":31}}')
    argv = printing(tmp_path / "out", b"before ", told, b"red")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        assert await person.leaves() == 0
        assert person.seen == b"before \x1b[31mred"
        assert person.restored()


async def test_a_frame_in_the_middle_of_a_sequence_or_character_spoils_neither(
    tmp_path: Path,
) -> None:
    up = frame('{"command":"term:bell"}')
    argv = printing(tmp_path / "out", b"\x1b[3", up, b"1mred \xc3", up, b"\xbc \xe9", up, b" x")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        assert await person.leaves() == 0
        assert person.seen == b"\x1b[31m\x07red \xc3\xbc\x07 \xe9\x07 x"


async def test_a_reply_arrives_on_the_programs_input(tmp_path: Path) -> None:
    asked = frame('{"command":"ping","rpcid":"p.1"}')
    argv = program(f"print(ask({asked!r}), flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows('b\'\\x1b]23199;25;{"resid":"p.1","data":{}}\\x07\'')
        assert await person.leaves() == 0


async def test_a_wrong_frame_gets_an_error_and_the_next_one_works(tmp_path: Path) -> None:
    wrong = frame('{"command":"term:titel","rpcid":"a"}')
    junk = b"\x1b]23198;0;{not json\x07\x1b]23199;0;{}\x07"
    right = frame('{"command":"ping","rpcid":"b"}')
    argv = program(f"print(ask({junk + wrong!r}), ask({right!r}), flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows("ECNOCMD")
        await person.shows('"resid":"b"')
        assert b"ECNOCMD: There is no such method. Did you mean term:title?" in person.seen
        assert b"not json" not in person.seen


async def test_the_terminals_own_attributes_are_reported_with_ours_added(tmp_path: Path) -> None:
    argv = program('print(ask(b"\\x1b[c", b"c"), flush=True)')
    async with seated(*RUN, *argv, home=tmp_path) as person:
        bare = person.screen.feed(b"\x1b[c").decode()
        await person.shows(bare[1:-1] + ";23198c")
    async with seated(*RUN, "--no-escapes", *argv, home=tmp_path) as person:
        await person.shows(bare[1:])


async def test_a_lone_escape_during_an_open_query_reaches_the_program(tmp_path: Path) -> None:
    argv = program('print("ready", ask(b"\\x1b[c", b"\\x1b"), flush=True)')
    async with seated(*RUN, *argv, home=tmp_path) as person:
        person.screen.feed = lambda data: b""  # type: ignore[method-assign]  # it does not reply
        await person.sees(b"\x1b[c")
        person.type("\x1b")
        await person.sees("ready b'\\x1b'")


async def test_the_cursor_position_is_that_of_the_persons_terminal(tmp_path: Path) -> None:
    asked = frame('{"command":"term:report","rpcid":"r","data":{"what":"cursor"}}')
    argv = program(f"print(ask(b'abc' + {asked!r} + b'defg'), flush=True)")
    async with seated(
        "sh", "-c", 'printf "one\\ntwo\\n"; exec "$@"', "sh", *RUN, *argv, home=tmp_path
    ) as person:
        await person.shows('"data":{"row":3,"col":4}')
        assert "\x1b[5n" not in person.rows()


async def test_without_escapes_frames_pass_like_any_other_output(tmp_path: Path) -> None:
    told = frame('{"command":"term:bell"}')
    argv = printing(tmp_path / "out", told, b"x")
    async with seated(*RUN, "--no-escapes", *argv, home=tmp_path) as person:
        assert await person.leaves() == 0
        assert person.seen == told + b"x"


# The socket and other listeners.

SOCKET = """
import json, os, socket, sys
path = os.environ["TELEX_SOCKET"]
modes = [oct(os.stat(one).st_mode & 0o777) for one in (path, os.path.dirname(path))]
print(*modes, path, flush=True)
line = socket.socket(socket.AF_UNIX)
line.connect(path)
file = line.makefile("rw")
def ask(**packet):
    print(json.dumps(packet), file=file, flush=True)
    return json.loads(file.readline())
"""


async def test_the_socket_serves_the_same_and_is_removed_afterwards(tmp_path: Path) -> None:
    body = """
print(ask(command="ping", rpcid="1"))
sys.stdout.flush()
print(ask(command="term:setstyle", rpcid="2", data={"color": 31}), "red", flush=True)
"""
    argv = (sys.executable, "-c", SOCKET + body)
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.sees("0o600 0o700 ")
        assert await person.leaves() == 0
        assert b"{'resid': '1', 'data': {}}" in person.seen
        assert b"{'resid': '2'} red" in person.seen
        assert b"\x1b[31m" in person.seen
        path = bytes(person.seen).split()[2].decode()
        assert not os.path.exists(os.path.dirname(path))


async def test_an_http_listener_serves_the_same_with_a_token(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ask = 'curl -s -H "content-type: application/json" -d \'{"command":"ping","rpcid":"1"}\''
    url = f"http://127.0.0.1:{port}/rpc/escapes"
    script = f'{ask} -H "authorization: Bearer secret-of-the-test" {url}; echo =; {ask} {url}'
    argv = (*RUN, "--door", f"http=127.0.0.1:{port}", "sh", "-c", script)
    async with seated(*argv, home=tmp_path, TELEX_TOKEN="secret-of-the-test") as person:
        end = await person.sees('{"resid":"1","data":{}}')
        assert await person.leaves() == 0
        assert b'"resid"' not in person.seen[end:]


# Events.

EVENTS = f"""
print(ask({frame('{"command":"term:subscribe","rpcid":"s","data":{"events":["event:mouseclick","event:key"]}}')!r}),
      end="\\r\\n", flush=True)
"""


def hearing(home: Path) -> tuple[str, ...]:
    """`telex run` with a policy that allows subscriptions without a question."""
    rules = home / "hearing.toml"
    rules.write_text('[[rule]]\ncommand = "term:subscribe"\ndecision = "allow"\n')
    return (*RUN, "--policy", str(rules))


async def test_a_subscribed_event_replaces_its_bytes_and_the_modes_last_as_long(
    tmp_path: Path,
) -> None:
    argv = program(EVENTS + "print(ask(b'go'), ask(b'next'), end='done', flush=True)")
    async with seated(*hearing(tmp_path), *argv, home=tmp_path) as person:
        await person.sees("go")
        assert b"\x1b[?1000h" in person.seen
        assert b"\x1b[?1006h" in person.seen
        person.type(b"\x1b[<0;5;3M")
        await person.sees("next")
        person.type(b"x")
        end = await person.sees("done")
        assert b'"event:mouseclick","data":{"row":3,"col":5}' in person.seen
        assert b'"event:key","data":{"key":"x","text":"x"' in person.seen
        assert b"[<0;5;3M" not in person.seen
        assert await person.leaves() == 0
        assert b"\x1b[?1000l\x1b[?1006l" in person.seen[end:]


async def test_while_the_program_is_stopped_our_modes_are_off(tmp_path: Path) -> None:
    argv = program(EVENTS + "os.kill(0, 20); print(ask(b'go'), end='done', flush=True)")
    run = shlex.join((*hearing(tmp_path), *argv))
    async with seated(*BASH, home=tmp_path) as person:
        person.type(run + "\r")
        await person.sees(b"\x1b[?1006h")
        off = await person.sees(b"\x1b[?1006l")
        await person.sees("Stopped", after=off)
        at = await person.asks("echo in the shell\r", "in the shell\r\n")
        person.type("fg\r")
        await person.sees(b"\x1b[?1006h", after=at)
        await person.sees("go", after=at)
        person.type("x")
        await person.sees("done")


async def test_an_action_on_a_notification_is_sent_as_an_event(tmp_path: Path) -> None:
    subscribe = frame(
        '{"command":"term:subscribe","rpcid":"s","data":{"events":["event:notification"]}}'
    )
    show = frame('{"command":"notify:show","data":{"title":"mail","id":"m","report":true}}')
    argv = program(f"print(ask({subscribe!r}), ask({show!r} + b'go'), flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.sees("go")
        assert b"\x1b]99;i=m:a=report:c=1;mail" in person.seen
        person.type(b"\x1b]99;i=m;\x1b\\")
        await person.sees('"event:notification","data":{"id":"m","action":"activated"')
        assert await person.leaves() == 0


async def test_a_program_back_in_the_foreground_is_notified_of_revoked_subscriptions(
    tmp_path: Path,
) -> None:
    events = ["event:focus", "event:mouseclick", "event:revoked"]
    told = json.dumps({"command": "term:subscribe", "rpcid": "s", "data": {"events": events}})
    body = f"ask({frame(told)!r}); os.write(1, b'here'); os.kill(0, 20); tty.setraw(0)\n"
    body += "heard = ask(b'again')\nwhile heard.count(7) < 2: heard += ask(b'')\nos.write(1, b'<' + heard.hex().encode() + b'>')"
    (tmp_path / "asker").write_text(ASK + body)
    async with seated(*RUN, *BASH, home=tmp_path) as person:
        await person.shows("$")
        person.type(f"{sys.executable} {tmp_path / 'asker'}\r")
        await person.sees("here")
        at = await person.sees("Stopped")
        await person.asks("echo so$((1))me\r", "so1me")
        await person.sees(b"\x1b[?1004l")
        person.type("fg\r")
        start = await person.sees("again<", after=at)
        end = await person.sees(">", after=start)
        heard = bytes.fromhex(person.seen[start : end - 1].decode())
        assert heard.count(b'"command":"event:revoked"') == 2
        for name in (b"event:focus", b"event:mouseclick"):
            assert b'"data":{"capability":"%b","reason":"It ended when' % name in heard


async def test_subscriptions_end_with_the_program_and_later_input_is_bytes(
    tmp_path: Path,
) -> None:
    script = 'set -m; "$@"; stty raw -echo; echo here; dd bs=1 count=1 2>/dev/null | od -c'
    argv = ("bash", "-c", script, "bash", *program(EVENTS))
    async with seated(*hearing(tmp_path), *argv, home=tmp_path) as person:
        await person.sees("here")
        off = await person.sees(b"\x1b[?1000l")
        assert b"\x1b[?1006l" in person.seen[off - 20 :]
        person.type(b"q")
        await person.shows("0000000   q")
        assert await person.leaves() == 0


async def test_ctrl_c_stays_a_signal_during_a_subscription_to_keys(tmp_path: Path) -> None:
    argv = program(
        "attributes = termios.tcgetattr(0); attributes[3] |= termios.ISIG\n"
        "termios.tcsetattr(0, termios.TCSANOW, attributes)\n" + EVENTS + "input()"
    )
    async with seated(*hearing(tmp_path), *argv, home=tmp_path) as person:
        await person.sees("resid")
        await person.sees(b"\r\n")
        person.type(b"\x03")
        assert await person.leaves() == 130


async def test_a_new_size_is_sent_to_its_subscriber(tmp_path: Path) -> None:
    subscribe = frame('{"command":"term:subscribe","rpcid":"s","data":{"events":["event:resize"]}}')
    argv = program(f"ask({subscribe!r}); print(ask(b'go'), flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.sees("go")
        person.pty.resize(Size(20, 50))
        await person.sees('"event:resize","data":{"rows":20,"cols":50')


KEYS = frame(
    '{"command":"term:subscribe","rpcid":"k","timeout":20000,"data":{"events":["event:key"]}}'
)
QUESTION = "term:subscribe"
QUIET = QUIET_SECONDS + 0.1
"""Seconds: an earlier key is not an answer."""


async def test_a_file_shown_behind_a_relay_does_not_get_the_keyboard_without_the_person(
    tmp_path: Path,
) -> None:
    """`script` reads keys and passes them on, as ssh, sudo and docker do, and its name does not
    distinguish it from other programs."""
    (tmp_path / "hostile").write_bytes(KEYS)
    inner = f"stty -echo; cat {tmp_path / 'hostile'}; cat -v"
    async with seated(*RUN, "--", "script", "-qc", inner, "/dev/null", home=tmp_path) as person:
        await person.shows(QUESTION)
        await asyncio.sleep(QUIET)
        person.type("\x1b")
        await person.hides(QUESTION)
        person.type("mine\r")
        await person.sees("mine")
        assert b'"event:key","data"' not in person.seen


async def test_a_yes_to_the_keyboard_is_valid_while_the_program_runs(tmp_path: Path) -> None:
    argv = program(f"ask({KEYS!r}); ask({KEYS!r}); print(ask(b'go'), flush=True); os.read(0, 1)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows("a until it exits")
        await asyncio.sleep(QUIET)
        person.type("a")
        await person.sees("go")
        person.type("x")
        await person.sees('"event:key","data":{"key":"x","text":"x"')


async def test_a_client_on_a_listener_does_not_get_a_password_without_the_person(
    tmp_path: Path,
) -> None:
    body = """
print(ask(command="term:subscribe", rpcid="1", timeout=20000, data={"events": ["event:mouse"]}))
print(ask(command="term:subscribe", rpcid="2", timeout=20000, data={"events": ["event:key"]}))
"""
    script = f'{shlex.join((sys.executable, "-c", SOCKET + body))}; read -rs pw; echo "[$pw]"'
    async with seated(*RUN, "bash", "-c", script, home=tmp_path) as person:
        await person.shows(QUESTION)
        assert b"{'events': ['event:mouse']}" in person.seen
        await asyncio.sleep(QUIET)
        person.type("n")
        await person.shows("ECDENIED")
        person.type("hunter2\r")
        await person.shows("[hunter2]")


async def test_keys_reach_the_next_program_when_the_subscriber_has_exited(
    tmp_path: Path,
) -> None:
    body = f"os.write(1, b'=%d=' % os.getpid() + {KEYS!r}); select.select([], [], [])"
    reads = program("os.write(1, b'ready'); print(os.read(0, 100), flush=True)")
    script = f"set -m; {shlex.join(program(body))}; {shlex.join(reads)}"
    async with seated(*RUN, "bash", "-c", script, home=tmp_path) as person:
        await person.shows(QUESTION)
        asker = int(person.seen.split(b"=")[1])
        os.kill(asker, signal.SIGKILL)
        while os.path.exists(f"/proc/{asker}"):
            await asyncio.sleep(0.01)
        await person.shows("ready")
        person.type("q")
        await person.shows("b'q'")


@pytest.fixture
def group_of_its_own() -> Iterator[int]:
    """A process group in which nothing else starts or exits, unlike that of the tests."""
    with subprocess.Popen(["sleep", "600"], process_group=0) as child:
        yield child.pid
        child.kill()


async def test_an_undeliverable_event_reaches_the_program_as_bytes(
    group_of_its_own: int,
) -> None:
    """The subscriber may exit between the check of the foreground and the frame."""
    typed: list[bytes] = []
    gone: list[bool] = []
    group = group_of_its_own
    listeners = EventDelivery(
        foreground=lambda: group,
        own_modes=frozenset,
        write_control=lambda data: None,
        is_plain=lambda data: False,
        write_to_program=typed.append,
        send=lambda event: not gone,
        asker=lambda call: group if call.id == "s" else group + 1,
    )
    theirs, ours = memory_channels()
    async with Peer(ours, JsonEscapes()) as peer, Peer(theirs, JsonEscapes()):
        call = CallContext(peer, "s", "term:subscribe", Inbox())
        of_another = CallContext(peer, "other", "term:subscribe", Inbox())
        assert listeners.subscribe(("event:key",), of_another) == ()
        assert listeners.subscribe(("event:key",), call) == ("event:key",)
        listeners.person_input(b"ab")
        assert typed == []
        gone.append(True)
        listeners.person_input(b"c\x1b[Ad")
        assert b"".join(typed) == b"c\x1b[Ad"
        listeners.close()


async def test_a_subscription_ends_with_its_program_in_a_group_that_still_runs(
    tmp_path: Path,
) -> None:
    script = f"{shlex.join(program(EVENTS))}; stty -echo; echo next; cat -v"
    async with seated(*hearing(tmp_path), "bash", "-c", script, home=tmp_path) as person:
        await person.sees(b"\x1b[?1006h")
        await person.sees("next")
        await person.sees(b"\x1b[?1006l")
        person.type("ab\r")
        await person.shows("ab")
        assert b'"event:key","data"' not in person.seen


# The person is asked.

CLIP = frame('{"command":"clip:read","rpcid":"c"}')


@pytest.mark.parametrize(
    ("key", "says"), [("y", '"data":{"text":"hello"}'), ("n", "ECDENIED: "), ("\x1b", "ECDENIED: ")]
)
@pytest.mark.parametrize("lines", [3, 30])
async def test_the_person_decides_on_the_last_row_and_it_is_restored(
    tmp_path: Path, key: str, says: str, lines: int
) -> None:
    body = f"print(*range({lines}), sep='\\r\\n', end='', flush=True); said = ask({CLIP!r})\n"
    body += (
        f"open({str(tmp_path / 'said')!r}, 'wb').write(said); os.write(1, b'\\a'); os.read(0, 1)"
    )
    shell = ("sh", "-c", 'printf "from\\nbefore\\n"; exec "$@"', "sh")
    async with seated(*shell, *RUN, *program(body), home=tmp_path) as person:
        person.clipboard = b"aGVsbG8="
        await person.shows("wants to read your clipboard: clip:read")
        assert "Allow? y once" in "".join(person.rows()[-2:])
        await asyncio.sleep(0.4)  # an earlier key is not an answer
        at = len(person.seen)
        person.type(key)
        await person.sees(b"\a", after=at)
        assert person.rows()[: lines + 2][-24:] == ["from", "before", *map(str, range(lines))][-24:]
        cursor = person.screen.cursor
        assert (cursor.row, cursor.col) == (min(lines + 1, 23), len(str(lines - 1)))
        person.type(".")
        assert await person.leaves() == 0
    assert says in (tmp_path / "said").read_text()
    audit = (tmp_path / "state/logs/escapes.jsonl").read_text()
    assert '"command":"clip:read"' in audit


async def test_a_policy_answers_in_the_persons_place(tmp_path: Path) -> None:
    rules = tmp_path / "policy.toml"
    rules.write_text('[[rule]]\ncommand = "clip:*"\ndecision = "deny"\n')
    argv = program(f"print(ask({CLIP!r}), flush=True)")
    async with seated(*RUN, "--policy", str(rules), *argv, home=tmp_path) as person:
        await person.shows("ECDENIED")
        assert b"Allow?" not in person.seen
        assert await person.leaves() == 0


@pytest.mark.counted
async def test_ctrl_c_denies_a_flood_of_questions(
    tmp_path: Path, counted: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal is usable at once, requests get replies, and Ctrl-C reaches the program again."""
    count = counted(3_000, 300_000)
    body = f"""
import os, select, tty
tty.setcbreak(0)
for number in range({count}):
    os.write(1, b'\\x1b]23198;0;{{"command":"clip:read","rpcid":"q%d","data":{{}}}}\\x07' % number)
    while select.select([0], [], [], 0)[0]:
        os.read(0, 65536)
print("asked", flush=True)
select.select([], [], [])
"""
    async with seated(*RUN, sys.executable, "-c", body, home=tmp_path) as person:
        await person.shows("read your clipboard")
        await quiet(person)
        person.type("\x03")
        await person.hides("Allow?")
        async with asyncio.timeout(DEADLINE):
            while b"asked" not in person.seen:  # longer than other waits
                await asyncio.sleep(0.02)
        used = Path(f"/proc/{person.pid}/stat").read_text().rpartition(")")[2].split()
        seconds = (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
        resident = int(used[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        person.type("\x03")
        assert await person.leaves() == 130
    with capsys.disabled():
        print(f"\n{count} questions: {seconds:.1f} s of processor time, {resident:.0f} MiB")
    assert person.seen.count(b"Allow?") == 1
    assert resident < 200
    audit = (tmp_path / "state/logs/escapes.jsonl").read_text().splitlines()
    assert len(audit) < 50


async def quiet(person: Seated) -> None:
    """Wait as long as a person reads the question: there is no event for that."""
    await asyncio.sleep(QUIET_SECONDS * 1.5)


async def test_the_timeout_of_a_request_is_paused_while_the_person_reads(tmp_path: Path) -> None:
    asked = frame('{"command":"clip:read","rpcid":"r","timeout":100,"data":{}}')
    argv = program(f"print(ask({asked!r}), flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        person.clipboard = b"aGVsbG8="
        await person.shows("wants to read your clipboard: clip:read")
        await asyncio.sleep(3 * QUIET_SECONDS)  # nine times the timeout of the request
        person.type("y")
        await person.shows('"text":"hello"')


async def test_a_client_waits_for_the_person_whatever_its_timeout(tmp_path: Path) -> None:
    argv = (*TELEX, "escape", "--wait", "--timeout", "0.2", "clip:read")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        person.clipboard = b"aGVsbG8="
        await person.shows("wants to read your clipboard: clip:read")
        await asyncio.sleep(3 * QUIET_SECONDS)
        person.type("y")
        await person.shows('"hello"')
        assert await person.leaves() == 0


async def test_a_program_that_was_stopped_and_continued_may_ask_again(tmp_path: Path) -> None:
    body = f"""
import signal
for _ in range(2):
    print(ask({CLIP!r})[-9:], flush=True)
print("stops", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
tty.setraw(0)
ask({CLIP!r})
"""
    (tmp_path / "asker").write_text(ASK + body)
    async with seated(*BASH, home=tmp_path) as person:
        await person.shows("$")
        command = shlex.join([*RUN, sys.executable, str(tmp_path / "asker")])
        person.type(f"{command}\r")
        await person.shows("read your clipboard")
        await quiet(person)
        person.type("\x03")
        await person.shows("Stopped")
        assert person.seen.count(b"Allow?") == 1
        person.type("fg\r")
        await person.shows("read your clipboard")


async def test_a_question_is_removed_when_its_program_exits(tmp_path: Path) -> None:
    argv = program(f"os.write(1, b'=%d=' % os.getpid() + {CLIP!r}); select.select([], [], [])")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows("wants to read your clipboard: clip:read")
        os.kill(int(person.seen.split(b"=")[1]), signal.SIGKILL)
        assert await person.leaves() == 137
        assert person.rows()[0].startswith("=")
        assert not any("Allow?" in row for row in person.rows())


async def test_a_question_is_removed_with_its_process_and_the_shell_gets_keys_again(
    tmp_path: Path,
) -> None:
    body = f"os.write(1, b'=%d=' % os.getpid() + {CLIP!r}); select.select([], [], [])"
    (tmp_path / "asker").write_text(ASK + body)
    async with seated(*RUN, *BASH, home=tmp_path) as person:
        await person.shows("$")
        person.type(f"{sys.executable} {tmp_path / 'asker'}; stty sane\r")
        await person.shows("wants to read your clipboard: clip:read")
        asker = int(person.seen.split(b"=")[1])
        os.kill(asker, signal.SIGKILL)
        await person.hides("Allow?")
        await person.shows(f"={asker}=Killed")  # the cursor was restored
        await person.asks("echo so$((1))me\r", "so1me")
    audit = (tmp_path / "state/logs/escapes.jsonl").read_text()
    assert '"decision":"deny","by":"the person: no answer"' in audit


async def test_the_person_is_asked_about_a_remote_request(tmp_path: Path) -> None:
    """A program with the name of one that shows remote output."""
    ssh = tmp_path / "ssh"
    told = frame('{"command":"notify:show","data":{"title":"hello"}}')
    (tmp_path / "told").write_bytes(told)
    ssh.write_text(f"#!/bin/sh\ncat {tmp_path / 'told'}; sleep 100\n")
    ssh.chmod(0o700)
    async with seated(*RUN, "sh", "-c", f"cat | {ssh}", home=tmp_path) as person:
        await person.shows(
            '"ssh" (not on this machine) wants to show you a notification: notify:show'
        )
        assert b"]777;notify" not in person.seen
    async with seated(
        *RUN, "sh", "-c", f"cat {tmp_path / 'told'}; sleep 100", home=tmp_path
    ) as person:
        await person.sees(b"\x1b]777;notify;hello;")


async def test_a_remote_program_that_exited_before_its_output_was_read_is_still_remote(
    tmp_path: Path,
) -> None:
    ssh = tmp_path / "ssh"
    (tmp_path / "told").write_bytes(frame('{"command":"notify:show","data":{"title":"hello"}}'))
    ssh.write_text(f"#!/bin/sh\necho welcome; sleep 0.3; exec cat {tmp_path / 'told'}\n")
    ssh.chmod(0o700)
    async with seated(*RUN, "bash", "-c", f"set -m; {ssh}; sleep 100", home=tmp_path) as person:
        await person.shows(
            '"ssh" (not on this machine) wants to show you a notification: notify:show'
        )


@pytest.mark.counted
async def test_a_local_program_that_exited_before_its_output_was_read_is_still_local(
    tmp_path: Path, counted: Callable[[int, int], int]
) -> None:
    """Repeated, because the exit is a race: one time in three it came before the read."""
    told = frame('{"command":"notify:show","data":{"title":"hello"}}')
    argv = printing(tmp_path / "told", told)
    for _ in range(counted(4, 100)):
        async with seated(*RUN, *argv, home=tmp_path) as person:
            assert await person.leaves() == 0
            assert b"\x1b]777;notify;hello" in person.seen


async def test_a_command_of_an_exited_program_is_executed_once_allowed(tmp_path: Path) -> None:
    resize = frame('{"command":"term:resize","data":{"rows":30,"cols":90}}')
    (tmp_path / "told").write_bytes(resize)
    async with seated(*RUN, *BASH, home=tmp_path) as person:
        await person.shows("$")
        person.type(f"cat {tmp_path / 'told'}\r")
        await person.shows("wants to resize your window: term:resize")
        await asyncio.sleep(KEY_SECONDS)
        person.type("y")
        await person.sees(b"\x1b[8;30;90t")


# Recordings.


async def test_a_recording_has_the_applied_ansi_and_no_frames(tmp_path: Path) -> None:
    told = frame('{"command":"term:setstyle","data":{"color":31}}')
    file = tmp_path / "demo.cast"
    argv = printing(tmp_path / "out", b"before ", told, b"red")
    async with seated(*TELEX, "record", str(file), "--", *argv, home=tmp_path) as person:
        assert await person.leaves() == 0
    with file.open("rb") as lines:
        shown = [
            event.text for event in read_recording(lines).events if isinstance(event, OutputEvent)
        ]
    assert "".join(shown) == "before \x1b[31mred"


# The lifetime of an origin.

KEY_SECONDS = 0.4
"""An earlier key after a question is not an answer."""


async def test_output_held_behind_a_question_keeps_its_origin(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    told = frame('{"command":"notify:show","data":{"title":"hello"}}')
    (tmp_path / "told").write_bytes(told)
    (tmp_path / "clip").write_bytes(frame('{"command":"clip:write","data":{"text":"x"}}'))
    go = f"until [ -e {tmp_path / 'go'} ]; do sleep 0.05; done"
    ssh.write_text(f"#!/bin/sh\ncat {tmp_path / 'clip'}; {go}; cat {tmp_path / 'told'}\n")
    ssh.chmod(0o700)
    script = f"set -m; {ssh}; echo home > {tmp_path / 'home'}; sleep 100"
    async with seated(*RUN, "bash", "-c", script, home=tmp_path) as person:
        await person.shows('"ssh" (not on this machine) wants to put a text on your clipboard')
        (tmp_path / "go").touch()
        await asyncio.sleep(LATELY_SECONDS + 1)
        assert (tmp_path / "home").exists()
        person.type("n")
        await person.shows(
            '"ssh" (not on this machine) wants to show you a notification: notify:show'
        )
        assert b"]777;notify" not in person.seen


async def test_a_lasting_answer_ends_when_the_program_executes_another(tmp_path: Path) -> None:
    other = (*program(f"print(ask({CLIP!r}), flush=True)"),)
    body = f"print(ask({CLIP!r}), ask({CLIP!r}), end='\\r\\n', flush=True)\n"
    body += f"os.execv(sys.executable, {other!r})"
    async with seated(*RUN, *program(body), home=tmp_path) as person:
        person.clipboard = b"aGVsbG8="
        await person.shows("wants to read your clipboard: clip:read")
        await asyncio.sleep(KEY_SECONDS)
        person.type("a")
        end = await person.sees(b"\r\n", after=await person.sees('{"text":"hello"}'))
        await person.sees("wants to read your clipboard: clip:read", after=end)


async def test_a_flood_is_parsed_without_a_long_pause(tmp_path: Path) -> None:
    line = b"\x1b[31mhello \x1b[0mworld some text here\r\n"
    body = f"piece = {line!r} * 1500\nfor _ in range(1400): os.write(1, piece)"
    async with seated(*RUN, *program(body), home=tmp_path) as person:
        person.screen.feed = lambda data: b""  # type: ignore[method-assign]  # not part of the measurement
        await person.grows(0)
        used = [processor_ticks(person.pty.child.pid)]
        while person.pty.child.exit is None and len(person.seen) < 1400 * 1500 * len(line):
            await person.grows(len(person.seen))
            with contextlib.suppress(OSError):  # it has just exited
                used.append(processor_ticks(person.pty.child.pid))
        # Processor time, which other processes do not change. Parsing everything at once takes a
        # third of the whole.
        longest = max(after - before for before, after in itertools.pairwise(used))
        assert longest < (used[-1] - used[0]) / 4


def processor_ticks(pid: int) -> int:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


# Replies of the person's terminal to the program and to us.

CURSOR = frame('{"command":"term:report","rpcid":"r","data":{"what":"cursor"}}')


@pytest.mark.parametrize("asked", [b"\x1b[5n" + CURSOR, CURSOR + b"\x1b[5n"])
async def test_a_program_with_the_same_query_gets_its_own_reply(
    tmp_path: Path, asked: bytes
) -> None:
    body = f"got = b''\nos.write(1, {asked!r})\nwhile b'[0n' not in got or b'\\a' not in got:\n"
    body += "    assert select.select([0], [], [], 5)[0], got\n    got += os.read(0, 65536)\n"
    async with seated(*RUN, *program(body + "print(got, flush=True)"), home=tmp_path) as person:
        await person.shows('"data":{"row":1,"col":1}')
        assert await person.leaves() == 0


async def test_a_terminal_may_ask_its_own_user_for_the_clipboard(tmp_path: Path) -> None:
    argv = program(f"print(ask({CLIP!r}), end='done', flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows("wants to read your clipboard: clip:read")
        await asyncio.sleep(KEY_SECONDS)
        person.type("y")
        await person.sees(b"\x1b]52;c;?")
        await asyncio.sleep(1.5)  # the user thinks
        person.type(b"\x1b]52;c;aGVsbG8=\x1b\\")
        await person.sees("done")
        assert b'"data":{"text":"hello"}' in person.seen


async def test_a_late_reply_of_the_clipboard_reaches_no_program(tmp_path: Path) -> None:
    asked = frame('{"command":"clip:read","rpcid":"c","timeout":1500}')
    argv = program(f"print(ask({asked!r}), ask(b'now', b'!'), end='done', flush=True)")
    async with seated(*RUN, *argv, home=tmp_path) as person:
        await person.shows("wants to read your clipboard: clip:read")
        await asyncio.sleep(KEY_SECONDS)
        person.type("y")
        await person.sees("now")
        person.type(b"\x1b]52;c;aGVsbG8=\x1b\\!")
        await person.sees("b'!'done")
