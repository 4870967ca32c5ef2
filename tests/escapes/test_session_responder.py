"""Real programs in a session with escapes: their replies, and what stays invisible."""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from telex.automation.notices import Connection
from telex.automation.protocol import Create
from telex.automation.server import AutomationService
from telex.escapes.escape_sessions import EscapeSessions
from telex.escapes.session_responder import SessionResponder
from telex.redaction import Redactor
from telex.rpc.handler_tasks import CallContext
from telex.terminal.actions import Key, Mouse, MouseEvent, Resize, TerminalSize, Text
from telex.terminal.session import PtySession
from telex.terminal.waits.matchers import ContainsText

PROGRAM = r"""
import json, os, re, sys, termios, tty
tty.setraw(0)
def tell(**packet):
    body = json.dumps(packet).encode()
    write(b"\x1b]23198;%d;%b\x07" % (len(body), body))
def write(data):
    while data:
        data = data[os.write(1, data):]
buffer = bytearray()
def hear():
    while (end := buffer.find(b"\x07")) < 0:
        buffer.extend(os.read(0, 65536))
    frame = bytes(buffer[:end])
    del buffer[:end + 1]
    found = re.fullmatch(rb"\x1b\]23199;(\d+);([ -~]*)", frame)
    assert found and int(found[1]) == len(found[2]), frame
    return json.loads(found[2])
def ask(command, data=None, rpcid="1", **more):
    tell(command=command, rpcid=rpcid, **({} if data is None else {"data": data}), **more)
    return hear()
def say(text):
    write(str(text).encode() + b"\r\n")
"""


class Served:
    """A service with sessions that have escapes, without a connection."""

    def __init__(self) -> None:
        self.automation = AutomationService()
        self.escapes = EscapeSessions(self.automation)
        self._here = Connection(None, Redactor())

    def start(self, *argv: str, **more: object) -> tuple[PtySession, SessionResponder]:
        program, *args = argv
        asked = Create(program=program, args=tuple(args), escapes=True, **more)  # type: ignore[arg-type]
        id = self.automation.create(asked, self._here).session
        return self.automation.find(id)[0], self.escapes._answering[id]

    def run(self, script: str) -> tuple[PtySession, SessionResponder]:
        return self.start(sys.executable, "-c", PROGRAM + script)


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    served = Served()
    try:
        yield served
    finally:
        await served.automation.close()
        await served.escapes.close()


async def shows(session: PtySession, text: str, timeout: float = 20) -> None:
    await session.wait(ContainsText(text), timeout=timeout)


def shown(session: PtySession) -> str:
    rows = [row.text.rstrip() for row in session.snapshot().rows]
    return "\n".join(rows).rstrip()


WAVE = r"""
def wave(**packet):
    write(b"\x1b]23198;%b\x07" % json.dumps(packet).encode())
def hear_wave():
    while (end := buffer.find(b"\x07")) < 0:
        buffer.extend(os.read(0, 65536))
    frame = bytes(buffer[:end])
    del buffer[:end + 1]
    return json.loads(frame.removeprefix(b"\x1b]23199;"))
"""


async def test_a_program_with_waves_form_gets_replies_and_events_in_it() -> None:
    script = (
        WAVE
        + """
wave(command="ping", reqid="1"); say(hear_wave())
wave(command="no:such", reqid="2"); say(hear_wave()["error"][:7])
wave(command="term:write", reqid="3", cont=True, data={"text": "one"})
say(hear_wave()["error"][:7])
wave(reqid="3", cont=True, data={"text": "two"}); wave(reqid="3", data={"text": "three"})
wave(command="term:subscribe", reqid="4", data={"events": ["event:resize"]})
say(hear_wave()["data"]); say("ready")
say("told " + hear_wave()["command"]); hear_wave()
"""
    )
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "ready")
        session.resize(TerminalSize(rows=30, cols=70))
        await shows(session, "told event:resize")
        assert shown(session).splitlines() == [
            "{'resid': '1', 'data': {}}",
            "ECNOCMD",
            "ECPROTO",
            "{'events': ['event:resize']}",
            "ready",
            "told event:resize",
        ]


async def test_commands_and_output_take_effect_in_the_order_they_were_printed() -> None:
    script = """
write(b"".join(
    b"%d\\x1b]23198;0;{\\"command\\":\\"term:cursormove\\",\\"data\\":{\\"x\\":1}}\\x07" % (n % 10)
    for n in range(30)))
tell(command="term:nextline")
say("end"); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "end")
        assert shown(session) == " ".join(str(n % 10) for n in range(30)) + "\nend"


async def test_a_report_shows_the_state_at_its_place_in_the_output() -> None:
    script = """
body = b""
for row in range(1, 6):
    body += b"\\x1b[%d;1H" % row
    body += b'\\x1b]23198;0;{"command":"term:report","rpcid":"%d","data":{"what":"cursor"}}\\x07' % row
write(body + b"\\x1b[10;1H")
say([hear()["data"]["row"] for _ in range(5)]); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "[1, 2, 3, 4, 5]")


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ({"what": "cursor"}, {"row": 3, "col": 5}),
        ({"what": "status"}, {"ok": True}),
        ({"what": "attributes"}, {"attributes": [62, 22, 23198]}),
        ({"what": "size-cells"}, {"rows": 24, "cols": 80}),
        ({"what": "size-pixels"}, {"height": 384, "width": 640}),
        ({"what": "cell-pixels"}, {"height": 16, "width": 8}),
        ({"what": "colors"}, {"fg": "#e5e5e5", "bg": "#1e1e1e", "cursor": "#e5e5e5"}),
        ({"what": "palette", "index": 9}, {"color": "#123456"}),
        ({"what": "sgr"}, {"style": {"bold": True, "color": 31, "underline": "curly"}}),
        ({"what": "cursorstyle"}, {"cursorstyle": {"shape": "bar", "blink": True}}),
        ({"what": "terminfo", "name": "RGB"}, {"value": None}),
    ],
    ids=lambda one: one.get("what") if isinstance(one, dict) else None,
)
async def test_the_screen_reports_its_properties(what: dict[str, object], answer: object) -> None:
    script = f"""
write(b"\\x1b]4;9;rgb:12/34/56\\x1b\\\\\\x1b[5 q\\x1b[1;31;4:3m\\x1b[3;5H")
reply = ask("term:report", {what!r})
write(b"\\x1b[m\\x1b[H")
say(json.dumps(reply)); say("end"); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "end")
        assert json.loads("".join(shown(session).split("\n")[:-1])) == {
            "resid": "1",
            "data": answer,
        }


async def test_a_style_a_title_and_a_batch_take_effect_as_if_printed() -> None:
    script = """
tell(command="term:title", data={"title": "of mine"})
tell(command="term:batch", data={"commands": [
    {"command": "term:cursorset", "data": {"row": 2, "col": 2}},
    {"command": "term:setstyle", "data": {"inverse": True}},
    {"command": "term:write", "data": {"text": "batch"}}]})
say(json.dumps(ask("term:batch", {"commands": [
    {"command": "term:write", "data": {"text": "not this"}},
    {"command": "clip:read"}]})))
hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "ECARGS")
        snapshot = session.snapshot()
        assert snapshot.title == "of mine"
        assert snapshot.rows[1].text.startswith(" batch")
        assert "not this" not in shown(session)


async def test_a_command_for_the_person_is_denied_in_a_session() -> None:
    async with serving() as served:
        session, _ = served.run('say(ask("clip:read")["error"]); hear()')
        await shows(session, "EC")
        assert shown(session).startswith(("ECDENIED: ", "ECUNSUP: "))


async def test_five_megabytes_pass_in_both_directions_in_parts() -> None:
    """The program announced large frames."""
    script = """
import base64, hashlib
data = bytes(range(256)) * 20480
say(json.dumps(ask("detect", {"maxframe": 1 << 20}))[:9])
tell(command="x:put", rpcid="up", cont=True, timeout=20000)
step = 98304
for at in range(0, len(data), step):
    more = at + step < len(data)
    tell(rpcid="up", cont=more, datatype="binary",
         data64=base64.b64encode(data[at:at + step]).decode())
say(hear()["data"] == hashlib.sha256(data).hexdigest())
tell(command="x:get", rpcid="down", timeout=20000)
got = b""
while (part := hear()).get("cont"):
    got += base64.b64decode(part["data64"])
say((got == data, len(got))); hear()
"""

    whole = bytes(range(256)) * 20480

    async def put(data: Any, call: CallContext) -> str:
        digest = hashlib.sha256()
        async for part in call.parts:
            assert isinstance(part.data, bytes)
            digest.update(part.data)
        return digest.hexdigest()

    async def get(data: Any) -> AsyncIterator[bytes]:
        for at in range(0, len(whole), 65536):
            yield whole[at : at + 65536]

    async with serving() as served:
        session, answering = served.run(script)
        answering.peer._serving._methods.add("x:put", put)
        answering.peer._serving._methods.add("x:get", get)
        await shows(session, "(True, 5242880)", 25)
        assert "True" in shown(session).split("\n")[1]


async def test_the_terminal_can_call_a_program_after_its_first_request() -> None:
    script = """
ask("ping")
call = hear()
tell(resid=call["rpcid"], data={"you said": call["data"]})
hear()
"""
    async with serving() as served:
        session, answering = served.run('write(b"ready"); ' + script.replace("\n", "\n", 1))
        await shows(session, "ready")
        while answering.channel.dialect._last_asker is None:
            await asyncio.sleep(0.01)
        assert await answering.peer.call("prog:ask", 7) == {"you said": 7}


async def test_a_program_that_sent_no_request_receives_nothing() -> None:
    async with serving() as served:
        session, answering = served.run('write(b"ready"); say(os.read(0, 100))')
        await shows(session, "ready")
        await answering.peer.notify("event:key", {"key": "a"})
        await session.act(Text("x"))
        await shows(session, "b'x'")


async def test_subscribed_input_arrives_as_events_and_not_as_bytes() -> None:
    script = """
say(ask("term:subscribe", {"events": ["event:key", "event:mouseclick", "event:resize"]})["data"])
told = [hear() for _ in range(6)]
for one in told:
    say(json.dumps(one)[:75])
say(ask("term:unsubscribe", {})["data"]); say("bytes")
buffer.extend(os.read(0, 1)); say(bytes(buffer)); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "'event:resize']")
        assert session.screen.mouse_tracking
        await session.act(Text("aü"))
        await session.act(Key("up"))
        await session.act(Key("escape"))
        await session.act(Mouse(MouseEvent(2, 4)))
        await session.act(Resize(TerminalSize(30, 100)))
        await shows(session, "bytes")
        assert not session.screen.mouse_tracking
        await session.act(Text("x"))
        await shows(session, "b'x'")
        told = [json.loads(row) for row in shown(session).split("\n")[1:7]]
        assert [one["command"] for one in told] == ["event:key"] * 4 + [
            "event:mouseclick",
            "event:resize",
        ]
        assert [one["data"]["key"] for one in told[:4]] == ["a", "ü", "up", "escape"]
        assert told[4]["data"] == {"row": 3, "col": 5}
        assert told[5]["data"] == {"rows": 30, "cols": 100}


async def test_a_subscription_ends_when_its_program_leaves_the_foreground() -> None:
    script = """
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    import signal
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgrp())
    ask("term:subscribe", {"events": ["event:key", "event:mouse"]})
    say(hear()["data"]["key"])
    os.tcsetpgrp(0, os.getppid())
    os._exit(0)
os.waitpid(pid, 0)
say("alone"); say(os.read(0, 10)); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        while not session.screen.mouse_tracking:
            await asyncio.sleep(0.01)
        await session.act(Text("k"))
        await shows(session, "alone")
        await session.act(Text("z"))
        await shows(session, "b'z'")
        assert not session.screen.mouse_tracking


async def test_a_subscription_ends_with_its_process_although_the_group_still_runs() -> None:
    script = """
pid = os.fork()
if pid == 0:
    ask("term:subscribe", {"events": ["event:key", "event:mouse"]})
    say("subscribed")
    hear()
    os._exit(0)
os.waitpid(pid, 0)
say("alone"); say(os.read(0, 10)); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "subscribed")
        assert session.screen.mouse_tracking
        await session.act(Text("k"))
        await shows(session, "alone")
        await session.act(Text("z"))
        await shows(session, "b'z'")
        assert not session.screen.mouse_tracking


async def test_a_subscription_without_an_id_has_no_effect() -> None:
    script = """
tell(command="term:subscribe", data={"events": ["event:key", "event:mouse"]})
ask("ping"); say("ready"); say(os.read(0, 10)); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "ready")
        assert not session.screen.mouse_tracking
        await session.act(Text("z"))
        await shows(session, "b'z'")


HOSTILE = [
    b'\x1b]23198;9;{"command":"ping","rpcid":"length"}\x07',
    b'\x1b]23198;0;{"command":"ping","rpcid":"cut',
    b'\x1b]23198;0;{"command":"ping","rpcid":"aborted\x18',
    b"\x1b]23198;0;not json\x07",
    b"\x1b]23198;;\x07",
    b"\x1b]23198;\x07",
    b"\x1b]23198;99999999999999999999;{}\x07",
    b"\x1b]23198;0;[1,2]\x07",
    b'\x1b]23198;0;{"command":"ping","rpcid":"a\\nb; echo pwned\\n"}\x07',
    b'\x1b]23198;0;{"command":"ping","rpcid":"' + b"x" * 65 + b'"}\x07',
    b'\x1b]23198;0;{"command":"ping","rpcid":5}\x07',
    b'\x1b]23198;0;{"resid":"1","data":1}\x07',
    b'\x1b]23198;0;{"resid":"1","error":"x","cont":true}\x07',
    b'\x1b]23198;0;{"rpcid":"9","data":1}\x07',
    b'\x1b]23198;0;{"rpcid":"9","cancel":true}\x07',
    b'\x1b]23199;0;{"resid":"1","data":1}\x07',
    b'\x1b]23199;0;{"command":"ping","rpcid":"echo"}\x1b\\',
    b'\x1b]23198;0;{"command":"term:write","data":{"text":"\\u001b[31mred\\u0007"}}\x07',
    b'\x1b]23198;0;{"command":"term:title","data":{"title":"a\\nb"}}\x07',
    b'\x1b]23198;0;{"command":"term:write","data":{"text":"raw\x01control"}}\x07',
    '\x1b]23198;0;{"command":"x:y","data":"Ü\x9c\x9d"}\x07'.encode(),
    b'\x1b]23198;0;{"command":"x:y","data":"\x9c"}\x07',
    b'\x1b]23198;0;{"command":"x:y","data":' + b"[" * 5000 + b"]" * 5000 + b"}\x07",
    b'\x1b]23198;0;{"command":"ping","data64":"e30=","data":{}}\x07',
    b'\x1b]23198;0;{"command":"term:setstyle","data64":"/w==","datatype":"binary"}\x07',
    b'\x1b]23198;0;{"command":"ping","data":NaN}\x07',
    b'\x1b]23198;0;{"command":"ping","command":"x","timeout":-1e308}\x07',
]


async def test_hostile_frames_show_nothing_and_the_next_good_one_works() -> None:
    script = f"""
for frame in {HOSTILE!r}:
    write(frame)
say(json.dumps(ask("ping", rpcid="good"))); hear()
"""
    async with serving() as served:
        session, answering = served.run(script)
        await shows(session, "good")
        assert shown(session) == '{"resid": "good", "data": {}}'
        assert answering.channel.echoed == 2
        counts = answering.peer.counts
        assert counts.malformed >= 10
        assert counts.faults >= 4
        assert counts.notification_errors >= 3
        assert counts.unknown >= 3


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        ({"command": "ping", "data": 1, "data64": "e30="}, "ECPROTO"),
        ({"command": "ping", "error": "x"}, "ECPROTO"),
        ({"command": "ping", "data64": "?"}, "ECPROTO"),
        ({"command": "no:such\x1b[31m"}, "ECNOCMD"),
        ({"command": "term:erase", "data": {"target": "; rm -rf"}}, "ECARGS"),
        ({"command": "term:write", "data": {"text": "\x07"}}, "ECARGS"),
        ({"command": "term:window", "data": {"op": "raise"}}, "ECUNSUP"),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
async def test_an_error_is_a_fixed_sentence_that_quotes_nothing(
    packet: dict[str, object], code: str
) -> None:
    script = f"""
tell(rpcid="m", **{packet!r})
first = hear()
say(first["error"])
assert ask("ping") == {{"resid": "1", "data": {{}}}}
say(sorted(first)); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, "['error', 'resid']")
        sentence = shown(session).split("\n")[0]
        assert sentence.startswith(f"{code}: ")
        assert "rm -rf" not in sentence
        assert "such\x1b" not in sentence


async def test_a_frame_that_is_too_long_is_skipped_and_gets_eclimit() -> None:
    script = """
body = b'{"command":"x:y","rpcid":"long","data":"' + b"x" * (3 << 20) + b'"}'
write(b"\\x1b]23198;%d;%b\\x07" % (len(body), body))
say(json.dumps(hear()))
say(json.dumps(ask("ping"))); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        await shows(session, '{"resid": "1", "data": {}}')
        assert "ECLIMIT" in shown(session).split("\n")[0]
        assert '"long"' in shown(session).split("\n")[0]


async def test_a_reply_that_does_not_fit_a_small_frame_becomes_eclimit() -> None:
    """Until the program announces more, a frame has 2,048 bytes."""
    script = """
say(ask("x:large")["error"])
ask("detect", {"maxframe": 100000})
say(len(ask("x:large")["data"])); hear()
"""
    async with serving() as served:
        session, answering = served.run(script)

        def large(data: object) -> str:
            return "x" * 5000

        answering.peer._serving._methods.add("x:large", large)
        await shows(session, "5000")
        assert shown(session).startswith("ECLIMIT")


@pytest.mark.counted
async def test_many_requests_with_unread_replies_take_no_memory(
    counted: Callable[[int, int], int],
) -> None:
    count = counted(30_000, 1_000_000)
    script = f"""
frame = b'\\x1b]23198;0;{{"command":"ping","rpcid":"q"}}\\x07'
for n in range({count} // 1000):
    write(frame * 1000)
say("asked")
import select
while select.select([0], [], [], 0.5)[0]:
    os.read(0, 65536)
say("read")
say(json.dumps(ask("ping", rpcid="good"))); hear()
"""
    async with serving() as served:
        session, answering = served.run(script)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await shows(session, "asked", 250)
        assert session.pty.unsent < 256 * 1024
        await shows(session, "good")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
        assert answering.channel.dialect.unanswered.busy > 0
        assert shown(session).split("\n")[0] == "asked"


@pytest.mark.counted
async def test_an_endless_string_shows_nothing_and_takes_no_memory(
    counted: Callable[[int, int], int],
) -> None:
    size = counted(16, 1024)
    script = f"""
write(b'\\x1b]23198;0;{{"command":"x:y","rpcid":"endless","data":"')
for _ in range({size}):
    write(b"x" * (1 << 20))
write(b"\\x07")
say(json.dumps(hear())[:20])
say("end"); hear()
"""
    async with serving() as served:
        session, _ = served.run(script)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await shows(session, "end", 200)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
        assert shown(session).split("\n")[1] == "end"


async def test_hostile_files_in_a_real_shell_run_nothing_and_type_nothing_at_the_prompt(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    bash = program("bash")
    asks = b"".join(
        b'\x1b]23198;0;{"command":"%b","rpcid":"a%d","data":{"what":"cursor"}}\x07' % (command, n)
        for n in range(50)
        for command in (b"ping", b"detect", b"term:report", b"no:such")
    )
    for name, data in (("all", b"".join(HOSTILE) + asks), ("one", asks[:80]), ("asks", asks)):
        (tmp_path / name).write_bytes(data)
    async with serving() as served:
        args = ("--norc", "--noprofile", "-i")
        session, answering = served.start(bash, *args, cwd=str(tmp_path), env={"PS1": "$ "})
        await shows(session, "$")
        for n in range(20):
            for name in ("all", "one", "asks"):
                await session.act(Text(f"clear; cat {name}; touch ran{n}\n"))
                while not (tmp_path / f"ran{n}").exists():
                    await asyncio.sleep(0.01)
                (tmp_path / f"ran{n}").unlink()
        await session.act(Text("clear; echo e'n'd\n"))
        await session.wait(ContainsText("end\n$"))
        assert shown(session) == "end\n$"
        await session.act(Key("enter"))
        await session.wait(ContainsText("$\n$"))
        assert shown(session) == "end\n$\n$"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "asks", "one"]
        assert answering.channel.dialect.unanswered.gone + answering.channel.undelivered > 0


async def test_a_command_inside_a_shells_own_group_gets_its_reply(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    """`$(…)` at a prompt runs in the shell's process group, so the shell is not idle."""
    asker = tmp_path / "ask.py"
    lines = PROGRAM.replace("import json,", "import json, atexit,").replace(
        "tty.setraw(0)",
        "kept = termios.tcgetattr(0)\n"
        "atexit.register(lambda: termios.tcsetattr(0, termios.TCSADRAIN, kept))\n"
        "tty.setraw(0)\nout = os.dup(1)\nos.dup2(0, 1)",
    )
    asker.write_text(lines + 'reply = ask("ping")\nos.write(out, json.dumps(reply).encode())\n')
    async with serving() as served:
        args = ("--norc", "--noprofile", "-i")
        session, _ = served.start(program("bash"), *args, env={"PS1": "$ "})
        await shows(session, "$")
        await session.act(Text(f'echo "got $({sys.executable} {asker})"\n'))
        await shows(session, 'got {"resid": "1", "data": {}}')


async def test_a_reply_to_a_program_that_has_exited_is_dropped() -> None:
    """Another program is in the foreground when the reply is ready."""
    script = """
import subprocess
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    import signal
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgrp())
    tell(command="x:slow", rpcid="gone")
    tell(command="x:slow", rpcid="late", timeout=100)
    os.read(0, 1)
    os.tcsetpgrp(0, os.getppid())
    os._exit(0)
os.waitpid(pid, 0)
say("alone")
say(json.dumps(hear())); hear()
"""
    async with serving() as served:
        session, answering = served.run(script)
        slow = asyncio.Event()

        async def wait(data: object) -> int:
            await slow.wait()
            return 1

        answering.peer._serving._methods.add("x:slow", wait)
        while (
            answering.peer._conversation.serving < 2
        ):  # both were read while it is in the foreground
            await asyncio.sleep(0.01)
        await session.act(Text("x"))
        await shows(session, "alone")
        slow.set()
        while answering.channel.dialect.unanswered.gone == 0:
            await asyncio.sleep(0.01)
        assert shown(session) == "alone"


async def test_closing_a_session_during_a_request_leaves_nothing() -> None:
    async with serving() as served:
        session, _ = served.run('tell(command="x:y", rpcid="1"); say("asked"); hear()')
        await shows(session, "asked")
        await session.close()
