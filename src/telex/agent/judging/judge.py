"""May this be done without asking? Pure, but for the `Files` it is given. The file to read first.

A request is judged in pieces: each simple command, each redirect and each path of its own, also
those in substitutions. The whole is as the worst of its pieces: one that is denied denies it, one
that asks asks. What was not understood asks. A rule for the exact text may then allow what asks,
and nothing allows what a rule denies.

Used by the runtime before a tool runs, and for `permission.explain`. What is judged is text for
`bash` or `sh`, run with `environment.automatic`; in another shell it may mean something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from telex.agent.judging import remembering
from telex.agent.judging.command_rules import CommandRules, is_whole
from telex.agent.judging.commands import FREE, Commands, Piece
from telex.agent.judging.lasting import runs_nothing
from telex.agent.judging.modes import (
    HARMLESS_TOOLS,
    PATH_ARGUMENTS,
    PATH_TOOLS,
    SHELL_ARGUMENT,
    Mode,
    PathTool,
)
from telex.agent.judging.paths import Files, Once, Paths, Verdict, is_name, is_secret
from telex.agent.judging.protection import conflict
from telex.agent.judging.rules import Decision, Layer, Rule, counting, matches
from telex.agent.judging.script import NotUnderstood, Script
from telex.agent.judging.shell_reading import parse
from telex.agent.judging.showing import in_quotes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from telex.agent.judging.remembering import Scope

STRONGEST: Final = (Decision.DENY, Decision.ALLOW, Decision.ASK)
"""Among rules."""
WORST: Final = (Decision.DENY, Decision.ASK, Decision.ALLOW)
"""Among pieces."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a tool is about to be called with. `cwd` is absolute."""

    tool: str
    arguments: Mapping[str, object]
    cwd: str


@dataclass(frozen=True, slots=True)
class Judgement:
    decision: Decision
    why: str
    """One sentence about the piece that decided."""
    rule: Rule | None = None
    pieces: tuple[Piece, ...] = ()
    remember: tuple[Scope, ...] = ()
    """What the person may be offered not to be asked about again; empty unless it asks."""
    not_understood: NotUnderstood | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules, the mode and the place of one workspace. `root` and `home` are absolute."""

    layers: Sequence[Layer]
    mode: Mode
    root: str
    home: str
    files: Files
    trusted: bool = False
    """Whether the person trusts the workspace; if not, `git` asks. Layers say it themselves."""
    own: Sequence[str] = ()
    """Where telex keeps its own; to write there is to grant oneself something."""
    rules: tuple[Rule, ...] = field(init=False)
    paths: Paths = field(init=False)

    def __post_init__(self) -> None:
        rules = tuple(counting(self.layers))
        object.__setattr__(self, "rules", rules)
        paths = Paths(self.root, self.home, self.mode, rules, self.files, self.own)
        object.__setattr__(self, "paths", paths)

    def judge(self, request: Request) -> Judgement:
        # Each path is looked up once, so that all pieces are judged by the same state of the disk.
        return replace(self, files=Once(self.files))._judge(request)

    def _judge(self, request: Request) -> Judgement:
        match request.tool, request.arguments.get(SHELL_ARGUMENT):
            case "shell", str() as text:
                return self._shell(request, text)
            case "shell", _:
                return Judgement(Decision.ASK, "the command is not text")
        if tool := PATH_TOOLS.get(request.tool):
            return self._path_tool(request, tool)
        return self._other_tool(request)

    def _shell(self, request: Request, text: str) -> Judgement:
        script = parse(text)
        if isinstance(script, NotUnderstood):
            judged = self._unread(request, script)
        else:
            judged = self._read(request, script)
        if _is_unseen(judged):
            judged = self._by_its_text(request, text, judged)
        scopes = remembering.for_shell(request.cwd, text, script, judged.pieces)
        exact = self._exact(request, text, offered=bool(scopes))
        if exact and _overrides(exact, judged) and not _names_a_secret(exact, judged):
            return Judgement(exact.decision, "a rule names this exact text", exact, judged.pieces)
        if judged.decision is not Decision.ASK:
            return judged
        return _with_scopes(judged, scopes)

    @property
    def _commands(self) -> Commands:
        rules = CommandRules(self.paths, self.rules)
        return Commands(self.paths, rules, self.mode, trusted=self.trusted)

    def _read(self, request: Request, script: Script) -> Judgement:
        pieces = self._commands.judge(script, request.cwd)
        if not pieces:
            return Judgement(Decision.ASK, "there is no command in it")
        judged = _worst(pieces)
        both = conflict(pieces) if self.mode is not Mode.FULL else None
        if both and judged.decision is Decision.ALLOW:
            reader, whole = (in_quotes(piece.source) for piece in both)
            why = f"{reader} runs without hooks, and {whole} as your rule says; run them apart"
            return replace(judged, decision=Decision.ASK, why=why, rule=None)
        return judged

    def _by_its_text(self, request: Request, text: str, judged: Judgement) -> Judgement:
        """What nobody looked into, by the names and words that its text has. A secret that is named
        asks in every mode, and so does what may be what a rule is about."""
        named = self._commands.named_in(text, request.cwd)
        if named is None:
            why = "there are too many names in it to look for secrets"
            return replace(judged, decision=Decision.ASK, why=why)
        verdicts = [one.verdict for one in named if one.verdict.decision is not Decision.ALLOW]
        rule = CommandRules(self.paths, self.rules).in_text(text, request.cwd)
        if rule and any(not runs_nothing(piece.argv) for piece in judged.pieces if _is_free(piece)):
            about = in_quotes(" ".join(rule.command or ()))
            verdicts.append(Verdict(Decision.ASK, f"{about} is in its text", rule))
        if not verdicts:
            return judged
        asks = replace(verdicts[0], decision=Decision.ASK)
        piece = Piece("text", text, (text,), asks, named)
        if judged.decision is not Decision.ALLOW:
            return replace(judged, pieces=(*judged.pieces, piece))
        return replace(_worst((*judged.pieces, piece)), not_understood=judged.not_understood)

    def _unread(self, request: Request, unread: NotUnderstood) -> Judgement:
        """Nobody knows what is in it: a rule may be about something that is."""
        why = f"not understood: {unread.why}, at character {unread.at}"
        whole = self._whole_tool(request)
        if whole and whole.decision is Decision.DENY:
            return Judgement(Decision.DENY, "a rule for the tool", whole, not_understood=unread)
        if not self._restricting() and (whole or self.mode is Mode.FULL):
            say = "a rule for the tool" if whole else "mode full"
            return Judgement(Decision.ALLOW, say, whole, not_understood=unread)
        asks = whole if whole and whole.decision is Decision.ASK else None
        return Judgement(Decision.ASK, why, asks, not_understood=unread)

    def _restricting(self) -> bool:
        return any(rule.decision is not Decision.ALLOW for rule in self.rules)

    def _whole_tool(self, request: Request) -> Rule | None:
        return _strongest(
            rule for rule in self.rules if rule.is_for(request.tool, request.cwd) and is_whole(rule)
        )

    def _exact(self, request: Request, text: str, *, offered: bool = True) -> Rule | None:
        """A remembered yes counts only while it would be offered again: by a link, the same text
        may lead elsewhere today."""
        return _strongest(
            rule
            for rule in self.rules
            if rule.text == text
            and rule.path is None
            and rule.is_for(request.tool, request.cwd)
            and (offered or rule.layer != remembering.LAYER or rule.decision is not Decision.ALLOW)
        )

    def _path_tool(self, request: Request, tool: PathTool) -> Judgement:
        given = [request.arguments[key] for key in PATH_ARGUMENTS if key in request.arguments]
        match given:
            case [] if tool.recursive:
                path = request.cwd
            case [str() as path]:
                pass
            case _:
                return Judgement(Decision.ASK, "it does not say in one way which path it is about")
        if not is_name(path):
            return Judgement(Decision.ASK, "no file can have such a path")
        touched = self.paths.touched(
            tool.access,
            path,
            request.cwd,
            request.tool,
            recursive=tool.recursive,
            skips_hidden=tool.skips_hidden,
        )
        verdict = self._filtered(request, tool, touched.verdict)
        judged = _worst((Piece(request.tool, path, (path,), verdict, (touched,)),))
        if judged.decision is not Decision.ASK:
            return judged
        return _with_scopes(judged, remembering.for_path(request.tool, touched, self.paths))

    def _filtered(self, request: Request, tool: PathTool, verdict: Verdict) -> Verdict:
        """A filter may lead out again, or to a secret, below a path that is fine."""
        free = self.mode is Mode.FULL and not self._restricting()
        if verdict.decision is not Decision.ALLOW or free:
            return verdict
        for name in tool.filters:
            match request.arguments.get(name):
                case None:
                    pass
                case str() as text if _stays(text):
                    pass
                case _:
                    return Verdict(Decision.ASK, f"{name} may lead out of the path, or to secrets")
        return verdict

    def _other_tool(self, request: Request) -> Judgement:
        text = remembering.written(request.arguments)
        exact = self._exact(request, text) if text is not None else None
        rules = (self._whole_tool(request), self._tool_by_path(request), exact)
        rule = _strongest(one for one in rules if one)
        if rule:
            why = f"a rule says {rule.decision} for {in_quotes(request.tool)}"
            verdict = Verdict(rule.decision, why, rule)
        elif request.tool in HARMLESS_TOOLS:
            verdict = Verdict(Decision.ALLOW, "it touches only what the run itself made")
        elif self.mode is Mode.FULL:
            verdict = Verdict(Decision.ALLOW, "mode full")
        else:
            verdict = Verdict(
                Decision.ASK, f"nothing is known about the tool {in_quotes(request.tool)}"
            )
        if verdict.decision is Decision.ALLOW and not exact and request.tool not in HARMLESS_TOOLS:
            verdict = self._secret_among(request) or verdict
        scopes = remembering.for_tool(request.tool, request.arguments)
        return _with_scopes(Judgement(verdict.decision, verdict.why, verdict.rule), scopes)

    def _secret_among(self, request: Request) -> Verdict | None:
        """A secret that is named asks, whatever the tool; nobody here knows which words are paths.
        A rule for exactly these arguments is the way to allow it."""
        for text in _texts(request.arguments):
            named = self._commands.named_in(text, request.cwd)
            if named is None:
                return Verdict(Decision.ASK, "there are too many names in it to look for secrets")
            for one in named:
                if one.verdict.decision is not Decision.ALLOW:
                    return Verdict(Decision.ASK, one.verdict.why, one.verdict.rule)
        return None

    def _tool_by_path(self, request: Request) -> Rule | None:
        """For tools of plugins. Path rules restrict them and allow nothing: who knows all paths?"""
        found: list[Rule] = []
        for key in PATH_ARGUMENTS:
            path = request.arguments.get(key)
            for rule in self.rules if isinstance(path, str) and is_name(path) else ():
                absolute = self.paths.absolute(str(path), request.cwd)
                if (
                    rule.path is not None
                    and rule.command is None
                    and rule.text is None
                    and rule.decision is not Decision.ALLOW
                    and rule.is_for(request.tool, request.cwd)
                    and self.paths.covers(rule, absolute, self.files.real(absolute))
                ):
                    found.append(rule)
        return _strongest(found)


def _overrides(exact: Rule, judged: Judgement) -> bool:
    """Whether a rule for the exact text decides: where it asks, or to restrict it."""
    if exact.decision is Decision.ASK:
        return judged.decision is Decision.ALLOW and judged.rule is None
    return exact.decision is Decision.DENY or judged.decision is Decision.ASK


def _names_a_secret(exact: Rule, judged: Judgement) -> bool:
    """A text may have become about one, by a link; a secret is allowed by its path alone."""
    asked = [p for p in judged.pieces if p.verdict.decision is Decision.ASK]
    secret = any(one.is_secret for piece in asked for one in piece.touched)
    return secret and exact.decision is Decision.ALLOW


def _texts(value: object) -> Iterator[str]:
    """All text in a tool's arguments."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield from (*_texts(key), *_texts(inner))
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)


def _is_unseen(judged: Judgement) -> bool:
    """Whether something in it was not understood, or is allowed without a look at what it does."""
    if judged.not_understood is not None:
        return judged.decision is not Decision.DENY
    return judged.decision is Decision.ALLOW and any(map(_is_free, judged.pieces))


def _is_free(piece: Piece) -> bool:
    rule = piece.verdict.rule
    return piece.verdict == FREE or (rule is not None and is_whole(rule))


def _stays(text: str) -> bool:
    last = text.rpartition("/")[2]
    out = text.startswith(("/", "~", ".")) or ".." in text.split("/")
    named = last.strip("*") and any(matches(last, name) for name in (".env", "id_rsa", ".netrc"))
    return not out and not named and not is_secret("/" + text)


def _strongest(rules: Iterable[Rule]) -> Rule | None:
    return min(rules, key=lambda rule: STRONGEST.index(rule.decision), default=None)


def _worst(pieces: Sequence[Piece]) -> Judgement:
    worst = min(pieces, key=lambda piece: WORST.index(piece.verdict.decision))
    return Judgement(worst.verdict.decision, worst.verdict.why, worst.verdict.rule, tuple(pieces))


def _with_scopes(judged: Judgement, scopes: tuple[Scope, ...]) -> Judgement:
    # A rule that asks is the person's own wish to be asked each time.
    if judged.decision is not Decision.ASK or judged.rule is not None:
        return judged
    return Judgement(
        judged.decision, judged.why, None, judged.pieces, scopes, judged.not_understood
    )
