"""`telex codegen`: a person works in a program, and the test that comes out passes."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import telex
import telex.automation.locators  # an inner run forgets what it imports first
import telex.testing.failure_report
from telex.cli.root import root
from telex.terminal.actions import MouseEvent
from telex.terminal.keys import parse_key
from telex.terminal.shown_screen import from_text
from telex.testing.codegen import new_text, write_test
from telex.testing.codegen_log import (
    CodegenLog,
    PastedText,
    PersonInput,
    PressedKey,
    RawInput,
    SeenScreen,
    SizeChange,
    TypedText,
)

pytest_plugins = ("pytester",)

TODO = Path(__file__).parent.parent.parent / "examples/todo.py"
TELEX = [sys.executable, "-m", "telex"]


def inputs(*reads: bytes) -> list[object]:
    """What these reads of a terminal mean, and what is held at their end."""
    person = PersonInput()
    found = [one for at, data in enumerate(reads) for one in person.feed(data, at / 1000)]
    return found + person.feed(b"", 9.0)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"\r\t\x7f\x1b", "enter tab backspace escape"),
        (b"\x1b[A\x1bOB\x1b[1;5C\x1b[H", "up down ctrl_right home"),
        (b"\x1b[3~\x1b[6;3~\x1b[24~\x1bOP", "delete alt_page_down f12 f1"),
        (b"\x01\x1d\x00\x1bx\x1b[Z\x1bX", "ctrl_a ctrl_] ctrl_space alt_x shift_tab shift_alt_x"),
        # kitty's keyboard protocol, with releases and a modifier alone; modifyOtherKeys; F3.
        (b"\x1b[105;5u\x1b[105;5:3u\x1b[13;2u\x1b[57441;2u", "ctrl_i shift_enter"),
        (b"\x1b[27;5;13~\x1b[27;6;97~\x1b[1;5R\x1bOR", "ctrl_enter shift_ctrl_a ctrl_f3 f3"),
    ],
)
def test_keys_are_named_as_press_names_them(data: bytes, names: str) -> None:
    assert inputs(data) == [PressedKey(name) for name in names.split()]
    assert inputs(*[data[at : at + 1] for at in range(len(data))]) == inputs(data)
    for name in names.split():
        parse_key(name)


def test_text_pastes_and_the_mouse_are_told_apart() -> None:
    data = "añ\x1b[97;2:1;65u\x1b[<0;3;4M\x1b[I\x1b[200~two\rlines\x1b[201~\x1b[99~".encode()
    assert inputs(data) == [
        TypedText("a"),
        TypedText("ñ"),
        TypedText("A"),
        MouseEvent(3, 2, "press"),
        PastedText("two\rlines"),
        RawInput("\x1b[99~"),
    ]
    old = b"\x1b[M #$\x1b[M##$\x1b[<65;1;1M\x1b[<66;1;1M\x1b[32;3;4M"
    assert inputs(old) == [
        MouseEvent(3, 2, "press"),
        MouseEvent(3, 2, "release"),
        MouseEvent(0, 0, "scroll_down"),
        RawInput("\x1b[<66;1;1M"),
        MouseEvent(3, 2, "press"),
    ]


REPLIES = [
    *(b"\x1b[?62;22c", b"\x1b[>41;3;0c", b"\x1b[12;40R", b"\x1b[0n", b"\x1b[?2004;1$y"),
    *(b"\x1b]11;rgb:ffff/ffff/ffff\x07", b"\x1b]10;rgb:0/0/0\x1b\\", b"\x1b[?997;1n", b"\x1b[?1u"),
    *(b"\x1bP>|term 1.0\x1b\\", b"\x1bP1+r544e=78\x1b\\", b"\x1b[I", b"\x1b[O", b"\x1b[8;24;80t"),
    *(b"\x1b_Gi=1;OK\x1b\\", b"\x1b[48;24;80;0;0t"),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_replies_of_the_terminal_are_not_typed_text_wherever_a_read_ends(reply: bytes) -> None:
    data = b"x" + reply + b"y"
    for at in range(len(data) + 1):
        assert inputs(data[:at], data[at:]) == [TypedText("x"), TypedText("y")], at


def seen(text: str, rows: int = 6, cols: int = 40) -> SeenScreen:
    lines = text.split("\n")
    return SeenScreen(
        from_text(text, rows, cols), cursor=(len(lines) - 1, len(lines[-1])), whole=False
    )


def test_a_wait_prefers_words_that_are_new_and_do_not_change() -> None:
    before = seen("$ ")
    after = seen("$ make all\nbuilt in 3 s\nAll tests passed\n$ ")
    assert new_text(before, after, "make all") == ("All tests passed", False)
    echoed = seen("$ echo hello\nhello\n$ ")
    assert new_text(before, echoed, "echo hello") == ("hello", True)
    assert new_text(before, seen("$ x"), "x") == ("", False)


@pytest.mark.parametrize(
    ("row", "waited"),
    [
        ("Wed Nov 18 05:23:35 UTC 2026", ""),
        ("Wed Nov 18 05:23:35 AM CET 2026", ""),
        ("2026-11-18T05:23:35+01:00", ""),
        ("18.11.2026, 5:23 PM", ""),
        ("done in 3.21s (12 ms)", "done in"),
        ("real    0m0.013s", "real"),
        ("[1] 48213", ""),
        ("started, pid 71", "started,"),
        ("/tmp/tmp.Ab3dE6gH/out", ""),
        ("wrote /tmp/pytest-of-ann/pytest-3/x", "wrote"),
        ("0x7ffd1234 9fceb02d0ae5", ""),
        ("ann@box:~/src$ ", ""),
        ("[ann@box src]$ ", "src]$"),
        ("built on box", "built on"),
        ("2 of 3 done", "2 of 3 done"),
        ("listening on 127.0.0.1:8123", "listening on"),
    ],
)
def test_a_wait_has_no_text_that_never_comes_again(row: str, waited: str) -> None:
    assert new_text(seen("$"), seen(f"\n{row}", cols=60), "", ["box"])[0] == waited


def test_a_text_that_is_typed_into_another_is_an_echo() -> None:
    before = seen("hello world")
    for typed in ("f", "fi", "first "):
        assert new_text(before, seen(f"{typed}hello world"), typed) == ("", False)
    assert new_text(before, seen("fhello world\n\nModified"), "f") == ("Modified", False)


def test_a_prompt_that_comes_again_is_waited_for_and_not_its_place() -> None:
    log = CodegenLog()
    log.typed(seen("ann@box:~$ "), [*map(TypedText, "date"), PressedKey("enter")], "kernel")
    log.end = seen("ann@box:~$ date\nWed Nov 18 05:23:35 UTC 2026\nann@box:~$ ")
    source = write_test(log, ["bash"], "test_it").source
    assert source.endswith(
        "    term.wait(telex.match.regex(r'\\$ $'))\n"
        "    mark = term.type('date')\n    term.press('enter')\n"
        "    term.wait(telex.match.regex(r'\\$ $'), since=mark)\n"
    )


PROMPT = "    term.wait(telex.match.regex(r'\\$ $'), since=mark)\n"
WORKED = {
    "output and prompt": (
        [("$ ", "echo hello; date\r")],
        "$ echo hello; date\nhello\nWed Nov 18 05:23:35 UTC 2026\n$ ",
        "    term.wait('hello', since=mark)\n" + PROMPT,
    ),
    "banner and prompt": (
        [("Welcome to it\n>>> ", "")],
        "",
        "    term.wait('Welcome to it')\n    term.wait(telex.match.regex(r'>>> $'))\n",
    ),
    "a prompt for more": (
        [(">>> ", "if 1:\r")],
        ">>> if 1:\n... ",
        "    term.wait(telex.match.regex(r'\\.\\.\\. $'), since=mark)\n",
    ),
    "an echo that comes later": (
        [("$ ", "ec"), ("$ e", "ho hello\r")],
        "$ echo hello\nhello\n$ ",
        "    mark = term.type('echo hello')\n    term.press('enter')\n"
        "    term.wait('hello', since=mark)\n" + PROMPT,
    ),
    "a line from the history": (
        [("$ ls\nx\n$ ", "<up")],
        "$ ls\nx\n$ ls",
        "    term.wait(telex.match.regex(r'\\$ ls$'), since=mark)\n",
    ),
    "a line that was removed": (
        [("$ ls", "<ctrl_u")],
        "$ ",
        "    term.press('ctrl_u')\n    term.wait(telex.match.stable(100))\n",
    ),
}


@pytest.mark.parametrize("what", WORKED)
def test_a_wait_ends_with_what_stood_at_the_cursor(what: str) -> None:
    moments, end, written = WORKED[what]
    log = CodegenLog()
    for screen, keys in moments:
        names = [keys[1:]] if keys.startswith("<") else keys
        typed = [
            PressedKey({"\r": "enter"}.get(key, key))
            if len(key) > 1 or key == "\r"
            else TypedText(key)
            for key in names
        ]
        log.typed(seen(screen), typed, "kernel")
    log.end = seen(end or moments[0][0])
    assert write_test(log, ["x"], "test_it").source.endswith(written)


def test_what_comes_back_with_the_main_screen_is_not_waited_for() -> None:
    log = CodegenLog()
    log.typed(seen("$ ls\nx\n$ "), [*map(TypedText, "vim x"), PressedKey("enter")], "kernel")
    vim = replace(seen("~\nopened x"), whole=True)
    log.typed(vim, [*map(TypedText, ":q!"), PressedKey("enter")], "kernel")
    log.typed(seen("$ ls\nx\n$ vim x\n$ "), [*map(TypedText, "cat")], "program")
    log.end = seen("$ ls\nx\n$ vim x\n$ cat")
    source = write_test(log, ["bash"], "test_it").source
    assert (
        "    mark = term.type(':q!')\n    term.press('enter')\n"
        "    term.wait(telex.match.regex(r'\\$ $'), since=mark)\n    term.type('cat')\n" in source
    )
    assert "SECRET" not in source


def test_a_key_that_leaves_the_whole_screen_begins_no_secret() -> None:
    log = CodegenLog()
    log.typed(replace(seen("a page\n(END)"), whole=True), [TypedText("q")], "program")
    log.typed(seen("$ "), [*map(TypedText, "cat"), PressedKey("enter")], "program")
    log.end = seen("$ cat\n")
    assert "SECRET" not in write_test(log, ["less"], "test_it").source


@pytest.mark.parametrize(
    ("screen", "cursor", "label"),
    [
        ("Password: ", (0, 10), "Password:"),
        ("Password: [      ] Enter", (0, 11), "Password:"),
        ("User: ann   Password: [      ]", (0, 23), "Password:"),
        ("Password: ______", (0, 10), "Password:"),
        ("Password: [***   ]", (0, 18), "Password:"),
        ("Your password\n┌──────┐\n│      │\n└──────┘", (2, 1), "Your password"),
        ("> ", (0, 2), ""),
    ],
)
def test_a_secret_is_named_by_the_label_of_its_field(
    screen: str, cursor: tuple[int, int], label: str
) -> None:
    log = CodegenLog()
    before = replace(seen(screen), cursor=cursor)
    log.typed(before, [*map(TypedText, "hunter2"), PressedKey("enter")], "none")
    log.end = seen("welcome")
    source = write_test(log, ["x"], "test_it").source
    said = f"what was typed at {label!r}" if label else "what was typed"
    assert f"SECRET_1 = os.environ.get('SECRET_1')  # {said}\n" in source


def test_dates_and_typed_secrets_are_masked_in_goldens() -> None:
    log = CodegenLog()
    log.typed(seen("Pin:"), [*map(TypedText, "hunter2"), PressedKey("enter")], "none")
    log.mark(seen("Wed Nov 18 05:23:35 UTC 2026: hunter2, 3 of 4", cols=60), "x")
    written = write_test(log, ["x"], "test_it")
    (golden,) = written.goldens.values()
    assert (
        "golden(term, 'x', mask=[(0, 0, 1, 3), (0, 4, 1, 6), (0, 11, 1, 12), (0, 30, 1, 7)])"
        in (written.source)
    )
    assert "mask rows 0-0 columns 11-22" in golden
    assert "  0|▒▒▒ ▒▒▒▒▒▒ ▒▒▒▒▒▒▒▒▒▒▒▒ 2026: ▒▒▒▒▒▒▒, 3 of 4" in golden


def test_a_log_becomes_a_test() -> None:
    log = CodegenLog()
    prompt = seen("$", 4)
    for key in "echo hello":
        log.typed(prompt, [TypedText(key)], "kernel")
    log.typed(prompt, [PressedKey("enter")], "kernel")
    answered = seen("$ echo hello\nhello\n$", 4)
    log.mark(answered, "")
    log.mark(answered, "same")
    log.mark(answered, "Same")
    log.mark(answered, "")
    for key in "hunter3":
        log.typed(answered, [TypedText(key)], "none")
    log.typed(answered, [PressedKey("backspace"), TypedText("2")], "none")
    log.typed(answered, [PressedKey("enter")], "none")
    log.typed(answered, [RawInput("\x1b[99~"), SizeChange(9, 9), SizeChange(5, 50)], "program")
    click = [MouseEvent(1, 2, event, "right") for event in ("move", "press", "release")]
    log.typed(answered, [*click, *[MouseEvent(0, 0, "scroll_up")] * 3], "program")
    log.typed(answered, [PressedKey("ctrl_d")], "program")
    log.end, log.exit_code = answered, 0
    written = write_test(log, ["bash", "-c", "x", "--password=hunter2"], "test_it")
    given = "what was given on the command line"
    assert written.source == (
        "import os\n\nimport pytest\n\n"
        f"SECRET_1 = os.environ.get('SECRET_1')  # {given}\n\n\n"
        "@pytest.mark.skipif(SECRET_1 is None, "
        f"reason='set SECRET_1 in the environment: {given}')\n"
        "def test_it(telex, golden):\n"
        "    term = telex.spawn(['bash', '-c', 'x', '--password=' + SECRET_1], rows=4, cols=40)\n"
        "    term.wait(telex.match.regex(r'\\$$'))\n"
        "    mark = term.type('echo hello')\n"
        "    term.press('enter')\n"
        "    term.wait('hello', since=mark)\n"
        "    term.wait(telex.match.regex(r'\\$$'), since=mark)\n"
        "    golden(term)\n"
        "    golden(term, 'same')\n"
        "    golden(term, 'Same-2')\n"
        "    golden(term)\n"
        "    term.type(SECRET_1)\n"
        "    term.press('enter')\n"
        "    term.paste('\\x1b[99~')\n"
        "    term.resize(rows=5, cols=50)\n"
        "    term.click(1, 2, button='right')\n"
        "    term.click(0, 0, event='scroll_up', count=3)\n"
        "    term.press('ctrl_d')\n"
        "    assert term.wait_exit() == 0\n"
    )
    assert list(written.goldens) == [
        "test_it.txt",
        "test_it.same.txt",
        "test_it.Same-2.txt",
        "test_it.2.txt",
    ]


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["x", "--token", "s3cr3t-v4lue"], "['x', '--token', SECRET_1]"),
        (["mysql", "-phunter2xyz"], "['mysql', '-p' + SECRET_1]"),
        (["sh", "-c", "cd /; PASSWORD=hunter2 make"], "['sh', '-c', 'cd /; PASSWORD=' + SECRET_1"),
        (
            ["curl", "-H", "Authorization: Bearer abcdef0123456789"],
            "['curl', '-H', 'Authorization: Bearer ' + SECRET_1]",
        ),
        (["vim", "secret.txt"], "['vim', 'secret.txt']"),
    ],
)
def test_a_secret_in_the_command_is_read_from_the_environment(
    command: list[str], written: str
) -> None:
    source = write_test(CodegenLog(), command, "test_it").source
    assert f"telex.spawn({written}" in source
    assert ("SECRET_1 is None" in source) == ("SECRET_1" in written)


def test_a_comment_a_reason_and_a_name_have_no_secret() -> None:
    log = CodegenLog()
    line = "DB_PASSWORD=Qwerty99x API_TOKEN=Zx81zzTop42 true"
    log.typed(seen("$ "), [*map(TypedText, line), PressedKey("enter")], "kernel")
    log.typed(seen("Pin of bob"), [*map(TypedText, "hunter2"), PressedKey("enter")], "none")
    log.typed(seen("again, hunter2"), [*map(TypedText, "geheim1"), PressedKey("enter")], "none")
    log.mark(seen("done"), "after hunter2")
    log.mark(seen("done"), "after hunter2")
    written = write_test(log, ["bash"], "test_it")
    for secret in ("Qwerty99x", "Zx81zzTop42", "hunter2", "geheim1"):
        assert secret not in written.source + " ".join(written.goldens)
    assert len(written.goldens) == 2
    for name in written.goldens:
        assert repr(name.removeprefix("test_it.").removesuffix(".txt")) in written.source
    assert written.source.count("# what was typed at 'Pin of bob'") == 1
    assert written.source.count("API_TOKEN=") > 2


def codegen(directory: Path, *command: str, env: dict[str, str] | None = None) -> object:
    argv = [*TELEX, "codegen", "-o", "test_made.py", "--", *command]
    return telex.spawn(argv, cwd=directory, env=env or {}, rows=16, cols=70)


def test_a_test_of_a_shell_that_a_person_made_passes(pytester: pytest.Pytester) -> None:
    bash = ["env", "PS1=$ ", "HISTFILE=", "bash", "--norc", "--noprofile"]
    with codegen(pytester.path, *bash) as term:
        term.wait("ctrl_] marks a golden")
        term.wait("$ ")
        for line, answer in (("echo he''llo", "hello"), ("seq 3", "3")):
            for key in line:
                term.type(key)
            term.press("enter")
            term.wait(f"{answer}\n$ ")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.type("counted\r")
        term.wait("1 golden ")
        mark = term.type("read -s word\r")
        term.wait("$ read -s word", since=mark)
        term.wait(telex.match.stable(100))
        term.type("hunter2\r")
        term.wait("$ read -s word\n$ ")
        term.type("exit 3\r")
        assert term.wait_exit() == 3
        said = term.transcript()
    assert "wrote test_made.py and 1 golden; run it with: SECRET_1=… pytest test_made.py" in said
    source = (pytester.path / "test_made.py").read_text()
    assert "hunter2" not in source
    assert "golden(term, 'counted')" in source
    assert "assert term.wait_exit() == 3" in source
    passes(pytester, SECRET_1="hunter2")


def test_a_test_of_a_shell_goes_on_at_the_prompt_after_an_editor(
    pytester: pytest.Pytester,
) -> None:
    with codegen(pytester.path, "env", "PS1=$ ", "HISTFILE=", "bash", "--norc") as term:
        for line, answer in (
            ("", r"\$ "),
            ("echo hello; date", r"20\d\d\n\$ "),
            ("vim --clean new.txt", "New"),
            (":q!", r"vim --clean new.txt\n\$ "),
        ):
            for key in line:
                term.type(key)
            if line:
                term.press("enter")
            term.wait(re.compile(answer))
            term.wait(telex.match.stable(100))
        term.press("ctrl_d")
        assert term.wait_exit() == 0
    source = (pytester.path / "test_made.py").read_text()
    assert "    term.wait('hello', since=mark)\n" + PROMPT in source
    assert "    mark = term.type(':q!')\n    term.press('enter')\n" + PROMPT in source
    passes(pytester)


def passes(pytester: pytest.Pytester, **secrets: str) -> None:
    """Run the written test with its secrets."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in secrets.items():
            patch.setenv(name, value)
        pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


DOTS = """
import sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
print({prompt!r}, end="", flush=True)
word = ""
while (key := sys.stdin.buffer.raw.read(1).decode()) != "\\r":
    word += key
    print({echo!r}, end="", flush=True)
termios.tcsetattr(0, termios.TCSANOW, old)
print("\\nlong" if len(word) == 7 else "\\nshort")
"""
ASKING = {
    "getpass": [sys.executable, "-c", "import getpass; getpass.getpass(); print('long')"],
    "dots": [sys.executable, "-c", DOTS.format(prompt="Pin: ", echo="\u2022")],
    "stars": [sys.executable, "-c", DOTS.format(prompt="Pin: ", echo="*")],
    "nothing": [sys.executable, "-c", DOTS.format(prompt="Pin: ", echo="")],
    "blanks": [sys.executable, "-c", DOTS.format(prompt="Pin: ", echo=" ")],
    "raw line": ["bash", "-c", "read -rsn 7 -p Pin: word; read x; echo; echo got $word, long"],
    "echo": ["bash", "-c", "read -p 'Password: ' word; echo long"],
}


@pytest.mark.parametrize("how", ["keys", "at once", "pasted"])
@pytest.mark.parametrize("program", ASKING)
def test_a_password_is_not_written_however_it_is_asked_and_typed(
    pytester: pytest.Pytester, program: str, how: str
) -> None:
    with codegen(pytester.path, *ASKING[program]) as term:
        term.wait(re.compile("Pin:|Password:"))
        term.wait(telex.match.stable(100))
        if how == "keys":
            for number, key in enumerate("hunter2", 1):
                term.type(key)
                term.wait(f"{number} input")
            term.wait(telex.match.stable(50))
            term.press("enter")
        elif how == "at once":
            term.type("hunter2\r")
        else:
            term.paste("hunter2")
            term.press("enter")
        term.wait_exit()
    made = pytester.path / "test_made.py"
    assert "hunt" not in made.read_text()
    assert "term.type(SECRET_1)\n    term.press('enter')" in made.read_text()
    passes(pytester, SECRET_1="hunter2")


FORM = """
import os, sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
def line(prompt, echo, end="\\r\\n"):
    os.write(1, prompt.encode())
    word = ""
    while (key := os.read(0, 1).decode()) not in "\\r\\n":
        if key == "\\x1b":
            os.read(0, 2)
            continue
        word += key
        os.write(1, (key if echo == "key" else echo).encode())
    os.write(1, end.encode())
{body}
termios.tcsetattr(0, termios.TCSANOW, old)
"""
MENU = """
import curses
def main(screen):
    curses.use_default_colors()
    while True:
        screen.erase()
        screen.addstr(0, 0, "Menu: p password, q quits")
        key = screen.getch()
        if key == ord("q"):
            return
        if key == ord("p"):
            screen.addstr(4, 0, "secret: ")
            count = 0
            while (key := screen.getch()) != 10:
                if key < 256:
                    count += 1
                    screen.addstr(4, 8, "*" * count)
curses.wrapper(main)
"""


def form(body: str) -> list[str]:
    return [sys.executable, "-c", FORM.format(body=body)]


ONE_KEY = "os.write(1, b'press u to unlock'); os.read(0, 1); line('\\r\\nPassphrase: ', {!r})"
HIDING = {
    "dots after a key": (form(ONE_KEY.format("*")), "unlock", ["u", "Passphrase:", "hunter2xyz"]),
    "nothing after a key": (form(ONE_KEY.format("")), "unlock", ["u", "Passphrase:", "hunter2xyz"]),
    "dots in a menu": (
        [sys.executable, "-c", MENU],
        "Menu",
        ["p", "secret:", "hunter2xyz", "", "\r", "", "q"],
    ),
    "an answer that begins alike": (
        form("line('Word: ', ''); os.write(1, b'hunter, welcome')"),
        "Word:",
        ["hunter2xyz"],
    ),
    "an answer that has it": (
        form("line('Word: ', ''); os.write(1, b'hunter2xyzzy')"),
        "Word:",
        ["hunter2xyz"],
    ),
    "an answer that is it": (  # as dialog prints its result
        form("line('Password?\\r\\n\\n| ', '', 'hunter2xyz\\x1b[5H')"),
        "Password?",
        ["hunter2xyz"],
    ),
    "no Enter": (
        [
            *["bash", "-c"],
            "read -rsn 10 -p 'Word: ' w; echo; echo hunter, welcome; read x",
        ],
        "Word:",
        ["hunter2xyz", "welcome"],
    ),
}


@pytest.mark.parametrize("how", ["keys", "pasted"])
@pytest.mark.parametrize("case", HIDING)
def test_a_hidden_text_is_a_secret_of_its_own_whatever_came_before_and_after(
    pytester: pytest.Pytester, case: str, how: str
) -> None:
    command, first, steps = HIDING[case]
    with codegen(pytester.path, *command) as term:
        term.wait(first)
        for step in steps if steps[-1] == "q" else [*steps, "\r"]:  # q ends the menu
            if step == "hunter2xyz" and how == "pasted":
                term.paste(step)
            elif step in ("", "welcome") or step.endswith(":"):
                term.wait(step) if step else term.wait(telex.match.stable(100))
            else:
                for key in step:
                    term.type(key)
                    term.wait(telex.match.stable(20))
            term.wait(telex.match.stable(50))
        term.wait_exit()
    source = (pytester.path / "test_made.py").read_text()
    assert "hunter2" not in source.replace(repr(command[-1]), "")
    assert "term.type(SECRET_1)" in source
    if "after a key" in case:
        after = source[source.index("term.type('u')") :]
        assert after.index("'Passphrase: $'") < after.index("term.type(SECRET_1)")
    passes(pytester, SECRET_1="hunter2xyz")


@pytest.mark.parametrize(
    ("echo", "pieces", "secrets"),
    [
        ("", ["1111"], 1),
        ("*", ["12"], 1),
        ("*", ["7"], 1),
        ("*", ["hu", "\x1b[D", "nt", "\x1b[D", "er", "\x1b[D", "22"], 4),
        ("key", ["12"], 0),
        ("key", ["1111"], 0),
    ],
)
@pytest.mark.parametrize("how", ["keys", "at once"])
def test_a_short_pin_and_a_password_in_pieces_are_secrets(
    pytester: pytest.Pytester, echo: str, pieces: list[str], secrets: int, how: str
) -> None:
    with codegen(pytester.path, *form(f"line('Pin: ', {echo!r})")) as term:
        term.wait("Pin:")
        for piece in [*pieces, "\r"] if how == "keys" else ["".join([*pieces, "\r"])]:
            for key in [piece] if "\x1b" in piece or how == "at once" else piece:
                term.type(key)
                term.wait(telex.match.stable(50))
        term.wait_exit()
    source = (pytester.path / "test_made.py").read_text()
    if how == "keys" or len(pieces) == 1 < len(pieces[0]):
        assert source.count("term.type(SECRET_") == secrets, source


@pytest.mark.parametrize("how", ["keys", "corrected", "pasted"])
def test_a_token_typed_in_a_shell_is_not_written_nor_waited_for(
    pytester: pytest.Pytester, how: str
) -> None:
    token = "ghp_" + "aB3dE6gH9" * 4
    bash = ["env", "PS1=$ ", "HISTFILE=", "bash", "--norc", "--noprofile"]
    with codegen(pytester.path, *bash) as term:
        term.wait("$ ")
        line = f"echo token {token}"
        if how == "pasted":
            term.paste(line, bracketed=True)
        else:
            for key in f"{line[:20]}Z\x7f{line[20:]}" if how == "corrected" else line:
                term.type(key)
        term.wait("echo token")
        term.wait(telex.match.stable(100))
        term.press("enter")
        term.wait(telex.match.regex(r"\ntoken ghp_\S+\n\$"))
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.press("enter")
        term.wait("1 golden ")
        term.type("exit\r")
        term.wait_exit()
    for file in pytester.path.rglob("*"):
        if file.is_file():
            assert "aB3dE6gH9" not in file.read_text(), file
    source = (pytester.path / "test_made.py").read_text()
    assert "'echo token ' + SECRET_1" in source
    assert "wait('echo token" not in source
    assert "wait('$ echo" not in source
    assert "what was typed after 'echo token'" in source
    assert "REDACTED" not in source
    assert "**" not in source
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(skipped=1)
    passes(pytester, SECRET_1=token)


def test_keys_of_a_program_that_shows_no_text_are_no_secret(pytester: pytest.Pytester) -> None:
    (pytester.path / "x").write_text("one\ntwo\nthree\nfour\nfive\n")
    with codegen(pytester.path, "vim", "--clean", "x") as term:
        term.wait("five")
        for key in "jjkGggddjpxu":
            term.type(key)
            term.wait(telex.match.stable(50))
        for key in ("down", "x", "u", "up", "o", *"hello", "escape", ":", *"wq", "enter"):
            term.press(key)
            term.wait(telex.match.stable(50))
        assert term.wait_exit() == 0
    source = (pytester.path / "test_made.py").read_text()
    assert "SECRET" not in source
    assert "hello" in source
    (pytester.path / "x").write_text("one\ntwo\nthree\nfour\nfive\n")
    passes(pytester)
    assert (pytester.path / "x").read_text() == "two\nthree\none\nhello\nfour\nfive\n"


def test_a_new_size_and_clicks_are_written(pytester: pytest.Pytester) -> None:
    (pytester.path / "x").write_text("one\ntwo\nthree\nfour\nfive\n")
    vim = ["vim", "--clean", "-c", "set mouse=a ttymouse=sgr laststatus=0 noruler", "x"]
    with codegen(pytester.path, *vim) as term:
        term.wait("five")
        term.wait(telex.match.stable(200))
        term.click(2, 3)
        term.wait(telex.match.cursor(2, 3))
        term.resize(rows=12, cols=60)
        term.wait(telex.match.stable(200))
        term.resize(rows=11, cols=50)
        term.wait("marks a golden")
        term.wait(telex.match.stable(200))
        for key in (":", "q", "enter"):
            term.press(key)
            term.wait(telex.match.stable(50))
        assert term.wait_exit() == 0
    source = (pytester.path / "test_made.py").read_text()
    assert "term.click(2, 3)\n    term.wait(telex.match.cursor(2, 3))\n" in source
    assert "    term.resize(rows=10, cols=50)\n" in source
    assert "rows=15, cols=70" in source
    passes(pytester)


def test_a_test_of_a_tui_that_a_person_made_passes(pytester: pytest.Pytester) -> None:
    todo = [sys.executable, str(TODO), "buy milk", "call mum"]
    with codegen(pytester.path, *todo) as term:
        term.wait("0 of 2 done")
        term.press("down")
        term.wait(telex.match.stable(100))
        term.press("space")
        term.wait("1 of 2 done")
        term.type("a")
        term.wait("New item")
        for key in "water":
            term.type(key)
        term.wait("water")
        term.press("enter")
        term.wait("[ ] water")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.press("enter")
        term.wait("1 golden ")
        term.press("ctrl_]")
        term.wait("name of this golden:")
        term.press("escape")
        term.type("q")
        assert term.wait_exit() == 0
    source = (pytester.path / "test_made.py").read_text()
    assert "term.press('down')\n    term.find('[ ] call mum', inverse=True).wait()\n" in source
    assert "term.type('a')\n    term.wait('enter adds, escape does not')\n" in source
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    # The same test sees a bug in the program.
    broken = pytester.path / "broken.py"
    broken.write_text(TODO.read_text().replace("COLOR_GREEN", "COLOR_RED"))
    source = source.replace(str(TODO), str(broken)).replace(
        "golden(term)", "golden(term, timeout=1)"
    )
    (pytester.path / "test_made.py").write_text(source)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*dim green → dim red*"])


def test_an_existing_file_and_a_bad_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_made.py").write_text("")
    (tmp_path / "place").mkdir()
    (tmp_path / "place/__golden__").write_text("")
    for arguments, said in (
        ("-o test_made.py", "already exists; --force"),
        ("-o made.py", "use --name test_"),
        ("-o test-a.b.py", "is not a module that pytest imports"),
        ("-o test_a.txt", "is not a module that pytest imports"),
        ("-o test_made.py/test_x.py", "test_made.py is not a directory"),
        ("-o place/test_x.py", "place/__golden__ is not a directory"),
        ("-o /proc/nothing/test_x.py", "/proc/nothing/test_x.py cannot be written"),
        ("-o test_x.py --key ctrl_c", "ctrl_c interrupts the program"),
    ):
        ran = CliRunner().invoke(root, ["codegen", *arguments.split(), "--", "touch", "ran"])
        assert ran.exit_code == 2, ran.output
        assert said in ran.output
    assert not (tmp_path / "ran").exists()
