"""The input state of a program: the input that it waits for, and how sure that is.

`InputState` is the answer of `PtySession.input_state`, and goes over the wire as it is. The states
in `WAITING` want input. `unknown` is an honest answer; a waiting state while the program works
would be a wrong one, because callers type into it.

`decide` is a pure function of observed facts, which `input_watch` gathers. The kernel is asked
first whether any foreground process waits for the terminal at all: if it says no, nothing else can
make the answer a waiting one. Then the adapter, the program's own escapes, the settings of the
terminal and the screen say which kind of waiting it is; docs/reference/input-state.md has a table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.processes.foreground import Foreground, InputWait
    from telex.terminal.line_discipline import LineSettings
    from telex.terminal.screen_prompts import MenuShape, ScreenShape
    from telex.terminal.status_escapes import ProgramStatus

State = Literal[
    "busy",
    "line",
    "password",
    "key",
    "menu",
    "pager",
    "editor",
    "shell",
    "stopped",
    "exited",
    "unknown",
]
WaitingState = Literal["line", "password", "key", "menu", "pager", "editor", "shell"]
WAITING: Final[frozenset[State]] = frozenset(get_args(WaitingState))
"""The states of a program that wants input."""

Source = Literal["adapter", "escape", "kernel", "terminal", "screen", "none"]
"""Who said so: the adapter, an escape sequence of the program, the kernel (a blocked system call,
the exit), the settings of the terminal, the screen alone, or nobody."""


@dataclass(frozen=True, slots=True)
class InputState:
    """The input that a program waits for at one moment, with the evidence."""

    state: State
    source: Source
    """The evidence that decided."""
    confidence: float
    """From 0 to 1."""
    why: str = ""
    """The evidence in words."""
    rows: tuple[int, ...] = ()
    """The rows of the screen that show it, counted from 0."""
    prompt: str | None = None
    """The text that asks, as in `Password:`."""
    choices: tuple[str, ...] = ()
    """The choices of a menu, as far as they are visible."""
    selected: int | None = None
    """The selected choice, counted from 0."""

    @property
    def waiting(self) -> bool:
        """Whether the program wants input."""
        return self.state in WAITING


UNKNOWN: Final = InputState("unknown", "none", 0.0, "nothing tells what the program waits for")
EXITED: Final = InputState("exited", "kernel", 1.0, "the program has exited")
STOPPED: Final = InputState("stopped", "kernel", 1.0, "a signal has stopped the program")


# Facts.

REST_SECONDS: Final = 0.15
"""How long a screen must be still before a shape on it counts by itself."""
_LONG_SECONDS: Final = 5.0
"""A time limit from which it belongs to a question, and not to work that looks for input."""
_REFRESH_SECONDS: Final = 1.0
"""Programs that redraw less often than this refresh a display; others show that they work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """The facts about a session at one moment, of which `decide` makes the answer."""

    exited: bool = False
    unread: bool = False
    """Whether typed input was not read yet."""
    line: LineSettings
    foreground: Foreground | None
    """None if the kernel does not tell."""
    behind: str | None = None
    """The program through which another terminal or machine is used, if it is not seen itself."""
    shape: Callable[[], ScreenShape]
    numbered: Callable[[], MenuShape | None]
    """The numbered choices above the cursor."""
    full_screen: bool = False
    """Whether the program draws the whole screen: the alternate one, or without a cursor."""
    bracketed_paste: bool = False
    status: ProgramStatus | None = None
    """What the program says by its escapes."""
    hint: InputState | None = None
    """What the adapter says about this screen."""
    quiet: float = 0.0
    """For how many seconds nothing was printed or typed."""
    answered: bool = True
    """Whether something was printed since the last line was typed."""
    drawing: float | None = None
    """The seconds between changes that no input causes; None if there are none."""
    computes: bool = False
    """Whether the program has used the processor since, although nothing was printed or typed."""


_PROGRAMS: Final[dict[str, State]] = {
    **dict.fromkeys(
        ("vi", "vim", "vim.basic", "vim.tiny", "vim.nox", "view", "nvim", "nano", "pico", "emacs"),
        "editor",
    ),
    **dict.fromkeys(
        ("emacs-nox", "micro", "hx", "helix", "kak", "joe", "jed", "ne", "mcedit", "mg", "zile"),
        "editor",
    ),
    **dict.fromkeys(("ed", "red", "ex"), "editor"),
    **dict.fromkeys(("less", "pager", "more", "most", "bat", "pg", "w3m", "lynx", "info"), "pager"),
    **dict.fromkeys(("fzf", "sk", "peco", "percol", "gum", "selecta", "fzy", "pick"), "menu"),
    **dict.fromkeys(
        ("top", "htop", "btop", "atop", "mc", "tig", "ranger", "nnn", "lf", "vifm", "ncdu"), "key"
    ),
}
"""Programs whose name says what they wait for. It decides only while they do wait."""
_REMOTES: Final = frozenset({
    "ssh", "slogin", "mosh-client", "telnet", "docker", "podman", "kubectl", "nsenter", "rlogin",
})  # fmt: skip
"""Programs that pass the terminal to another machine or container."""


_READY: Final = ("prompt", "idle", "asking")
"""What programs say that are ready for input."""
_BUILTIN_READS: Final = (1, 4096)
"""How much `read` of a shell reads at once: byte by byte, and in bash a buffer of this size. For
their command lines shells have other buffers."""

_SELECT_PROMPTS: Final = ("#?", "?#")
"""The prompts of `select` in ksh and bash, and in zsh."""


# The decision.


def decide(facts: InputFacts) -> InputState:
    """Return what the program waits for."""
    if facts.exited:
        return EXITED
    seen = facts.foreground
    if seen is not None and seen.stopped:
        return STOPPED
    if facts.unread:
        return _busy("kernel", 0.9, "typed input was not read yet")
    if facts.behind is not None:
        return _by_screen(facts, f"{facts.behind} shows another terminal")
    if seen is None or (not seen.told and not seen.waits):
        return _by_settings(facts)
    if not seen.waits:
        name = seen.names[0] if seen.names else "the program"
        return _busy("kernel", 0.95, f"{name} does not wait for the terminal")
    if facts.status == "working" and not any(wait.shell for wait in seen.waits):
        return _busy("escape", 0.9, "the program says that it works")
    if facts.hint is not None and facts.hint.state != "unknown":
        return _with_shape(facts.hint, facts.shape())
    if seen.running:
        return _busy("kernel", 0.8, "a program waits for input, and another thread or process runs")
    return _waiting(facts, max(seen.waits, key=_certainty))


def _certainty(wait: InputWait) -> tuple[bool, bool]:
    return wait.alone, wait.timeout is None


def _busy(source: Source, confidence: float, why: str) -> InputState:
    return InputState("busy", source, confidence, why)


def _waiting(facts: InputFacts, wait: InputWait) -> InputState:
    """Decide for a process that waits for the terminal, and maybe for something else."""
    known = wait.name in _PROGRAMS
    at_prompt = wait.shell and _edits_lines(facts)
    if not wait.alone and not known and not at_prompt:
        return _beside_others(facts, wait)
    if wait.timeout is not None and _PROGRAMS.get(wait.name) != "key":
        drawing = facts.drawing
        if drawing is not None and wait.timeout <= 2 * drawing + 0.1 and not _refreshes(facts):
            return _busy("kernel", 0.7, f"{wait.name} draws by itself, and looks for input between")
        if facts.computes:
            return _busy("kernel", 0.7, f"{wait.name} computes, and looks for input between")
        if not at_prompt and not _asks_for_a_time(facts, wait, wait.timeout):
            return _unknown(f"{wait.name} looks for input, and wakes after {wait.timeout:.2g} s")
    how = "for ever" if wait.timeout is None else f"for {wait.timeout:.2g} s"
    found = _kind(facts, wait, f"{wait.name} waits {how} for the terminal")
    return found if wait.timeout is None else replace(found, confidence=0.85)


def _asks_for_a_time(facts: InputFacts, wait: InputWait, timeout: float) -> bool:
    """Whether a program that also wakes by itself shows that it waits for input all the same."""
    still = max(facts.quiet, facts.drawing or 0.0)
    if wait.name in _PROGRAMS:
        return max(still, timeout) >= _REFRESH_SECONDS
    has_woken = still >= max(_REFRESH_SECONDS, 1.5 * timeout)  # and had nothing to do
    if timeout < _LONG_SECONDS and not has_woken and not _refreshes(facts):
        return False
    if not facts.line.canonical and facts.full_screen:
        return True
    shape = facts.shape()
    if wait.passive or timeout < _LONG_SECONDS:  # a colon may be behind any text
        return shape.clear is not None or shape.question
    return shape.ready or (shape.prompt or "").endswith((":", "?", "]", ")"))


def _refreshes(facts: InputFacts) -> bool:
    """Whether the program only refreshes a display, as `top` does."""
    return facts.full_screen and (facts.drawing or 0.0) >= _REFRESH_SECONDS


def _edits_lines(facts: InputFacts) -> bool:
    """Whether the terminal is set as a line editor sets it."""
    line = facts.line
    return not line.canonical and not line.echo and (facts.bracketed_paste or not line.maps_return)


def _unknown(why: str) -> InputState:
    return replace(UNKNOWN, why=why)


def _kind(facts: InputFacts, wait: InputWait, why: str) -> InputState:
    """Return the kind of input that is waited for."""
    shape = facts.shape()

    def found(state: State, source: Source, confidence: float, more: str) -> InputState:
        return _shown(state, source, confidence, f"{why}; {more}", shape)

    if facts.status == "prompt":
        return found("shell", "escape", 0.98, "a shell has marked its prompt")
    if facts.line.canonical:
        return _kind_of_line(facts, wait, shape, why)
    if wait.name in _PROGRAMS:
        return found(_PROGRAMS[wait.name], "kernel", 0.97, "its name says what for")
    if wait.shell and (_edits_lines(facts) or shape.ready):
        return found("shell", "kernel", 0.97, "it is a shell that edits its line")
    if facts.status == "asking" and shape.menu is not None:
        return found("menu", "escape", 0.9, "the program says that it asks")
    if shape.prompt in _SELECT_PROMPTS and (menu := facts.numbered()) is not None:
        return _shown("menu", "kernel", 0.9, f"{why}, below numbered choices", shape, menu)
    if (state := _kind_by_shape(facts, shape)) is not None:
        return found(state, "kernel", 0.9, "the screen shows which input")
    return found("key", "kernel", 0.85, "it reads keys")


def _kind_of_line(facts: InputFacts, wait: InputWait, shape: ScreenShape, why: str) -> InputState:
    """Return the kind where the kernel edits lines."""
    if not facts.line.echo:
        return _shown("password", "kernel", 0.97, f"{why}, without echo", shape)
    if wait.shell and wait.size not in _BUILTIN_READS:
        return _shown("shell", "kernel", 0.95, f"{why}; it is a shell", shape)
    if _PROGRAMS.get(wait.name) == "editor":
        return _shown("editor", "kernel", 0.95, f"{why}; its name says what for", shape)
    if (menu := facts.numbered()) is not None:
        return _shown("menu", "kernel", 0.9, f"{why}, below numbered choices", shape, menu)
    return _shown("line", "kernel", 0.97, f"{why}, line by line", shape)


def _kind_by_shape(facts: InputFacts, shape: ScreenShape) -> State | None:
    """Return the kind that the screen shows, of a program that reads keys."""
    if shape.names_password:
        return "password"
    if shape.field:
        return "line"
    if shape.editor:
        return "editor"
    if shape.any_key and not facts.bracketed_paste:
        return "pager" if shape.pager else "key"
    if shape.menu is not None and len(shape.menu.choices) > 1:
        return "menu"
    if shape.pager:
        return "pager"
    if facts.line.echo:
        return "key"  # line editors echo themselves; `read -n 1` and `read -k` leave it on
    asks = shape.ready or shape.asks or (shape.prompt or "").endswith(":")
    if shape.prompt is not None and (asks or facts.bracketed_paste):
        return "line"
    return "line" if facts.bracketed_paste and not facts.full_screen else None


def _beside_others(facts: InputFacts, wait: InputWait) -> InputState:
    """Decide for a process that something else than input may wake, too. The screen proves nothing:
    it is as the program left it when it began to wait for the other thing."""
    if wait.name in _REMOTES:
        return _by_screen(facts, f"{wait.name} shows another machine")
    why = f"{wait.name} waits for input and for something else"
    if facts.status in _READY:
        return replace(_kind(facts, wait, why), source="escape", confidence=0.85)
    shape = facts.shape()
    if facts.line.canonical and not facts.line.echo and shape.names_password:
        return _shown("password", "terminal", 0.8, f"{why}; the echo is off", shape)
    return _unknown(why)


def _by_screen(facts: InputFacts, why: str) -> InputState:
    """Decide by a clear shape on the screen: the program that asks is not seen."""
    shape = facts.shape()
    full_screen = facts.full_screen and facts.behind is None  # a multiplexer always draws it

    def found(state: State, confidence: float, more: str) -> InputState:
        return _shown(state, "screen", confidence, f"{why}; {more}", shape)

    if facts.status == "working" or (facts.status == "command" and not full_screen):
        return _busy("escape", 0.7, f"{why}; a command runs")
    if facts.status in _READY and shape.prompt is not None:
        state: State = "shell" if facts.status == "prompt" else "line"
        return _shown(state, "escape", 0.8, f"{why}; it says that it is ready", shape)
    if facts.hint is not None and facts.hint.state != "unknown":
        return _with_shape(facts.hint, shape)
    if not _rests(facts):
        return _unknown(f"{why}; the screen does not rest yet")
    if shape.editor and facts.full_screen:
        return found("editor", 0.6, "the screen is an editor's")
    if shape.pager and (full_screen or shape.inverse):
        return found("pager", 0.6, "the last row is a pager's")
    if shape.menu is not None and len(shape.menu.choices) > 1 and shape.in_menu:
        return found("menu", 0.5, "the screen shows choices")
    if shape.clear is not None and not full_screen:
        return found(shape.clear, 0.6, "the cursor is behind a prompt")
    if shape.prompt is None and not full_screen:
        return _busy("screen", 0.5, f"{why}; the cursor is behind no prompt")
    return _unknown(f"{why}; the screen does not tell")


def _by_settings(facts: InputFacts) -> InputState:
    """Decide where the kernel does not tell: another user's program, or no /proc."""
    why = "the kernel does not show this program"
    if facts.computes or (facts.foreground is not None and facts.foreground.running):
        return _busy("kernel", 0.8, f"{why}, but that it runs")
    if facts.line.canonical and not facts.line.echo and _rests(facts):
        shape = facts.shape()
        if shape.names_password:
            return _shown("password", "terminal", 0.8, f"{why}; the echo is off", shape)
    found = _by_screen(facts, why)
    if found.source == "screen" and found.waiting and facts.line.canonical:
        return _unknown(f"{why}; the terminal is set as for any program")
    return found


def _rests(facts: InputFacts) -> bool:
    drawing = facts.drawing is not None and facts.drawing < _REFRESH_SECONDS
    return facts.answered and facts.quiet >= REST_SECONDS and not drawing


def _shown(
    state: State,
    source: Source,
    confidence: float,
    why: str,
    shape: ScreenShape,
    menu: MenuShape | None = None,
) -> InputState:
    menu = menu or (shape.menu if state == "menu" else None)
    if menu is not None:
        return InputState(
            state, source, confidence, why, menu.rows, menu.prompt, menu.choices, menu.selected
        )
    rows = (shape.cursor_row,) if shape.prompt is not None else ()
    return InputState(state, source, confidence, why, rows, shape.prompt)


def _with_shape(hint: InputState, shape: ScreenShape) -> InputState:
    """Add what the screen shows to the adapter's answer, where the adapter left it out."""
    seen = _shown(hint.state, hint.source, hint.confidence, hint.why, shape)
    return replace(
        hint,
        rows=hint.rows or seen.rows,
        prompt=hint.prompt or seen.prompt,
        choices=hint.choices or seen.choices,
        selected=seen.selected if hint.selected is None else hint.selected,
    )
