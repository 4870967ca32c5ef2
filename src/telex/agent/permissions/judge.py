"""May this be done without asking? Pure, but for the `FileLookup` it is given.

Read this file first. A request is judged in pieces: each simple command, each redirect and each
path of its own, also those in substitutions. The whole is as the worst of its pieces: one that is
denied denies it, one that asks asks. What was not understood asks. A rule for the exact text may
then allow what asks, and nothing allows what a rule denies.

Used by the runtime before a tool runs; `explain_judgement` gives the same as JSON, for
`permission.explain` and for the details of a question. What is judged is text for `bash` or `sh`,
run in `unattended_environment`; in another shell it may mean something else.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from telex.agent.permissions import repeatable
from telex.agent.permissions.command_rules import CommandRules, is_whole
from telex.agent.permissions.display_text import in_line, in_quotes, in_sentence
from telex.agent.permissions.path_policy import (
    CachedLookup,
    FileLookup,
    PathPolicy,
    PermissionVerdict,
    is_name,
    is_secret,
)
from telex.agent.permissions.reader_environment import environment_conflict
from telex.agent.permissions.repeatable import runs_nothing
from telex.agent.permissions.shell_commands import ALLOWED_UNCHECKED, CommandJudge, JudgedPiece
from telex.agent.permissions.shell_parser import ShellScript, UnparsedShell, parse_shell
from telex.agent.permissions.tool_rules import (
    HARMLESS_TOOLS,
    PATH_ARGUMENTS,
    PATH_TOOLS,
    SHELL_ARGUMENT,
    Mode,
    PathTool,
    Permission,
    RuleLayer,
    ToolRule,
    active_rules,
    matches_pattern,
    rule_to_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from telex.agent.permissions.path_policy import TouchedPath
    from telex.agent.permissions.repeatable import RememberScope
    from telex.agent.permissions.shell_commands import JudgedPiece


STRONGEST: Final = (Permission.DENY, Permission.ALLOW, Permission.ASK)
"""Among rules."""
WORST: Final = (Permission.DENY, Permission.ASK, Permission.ALLOW)
"""Among pieces."""


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a tool is about to be called with. `cwd` is absolute."""

    tool: str
    arguments: Mapping[str, object]
    cwd: str


@dataclass(frozen=True, slots=True)
class Judgement:
    decision: Permission
    why: str
    """One sentence about the piece that decided."""
    rule: ToolRule | None = None
    pieces: tuple[JudgedPiece, ...] = ()
    remember: tuple[RememberScope, ...] = ()
    """What the person may be offered not to be asked about again; empty unless it asks."""
    not_understood: UnparsedShell | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules, the mode and the place of one workspace. `root` and `home` are absolute."""

    layers: Sequence[RuleLayer]
    mode: Mode
    root: str
    home: str
    files: FileLookup
    trusted: bool = False
    """Whether the person trusts the workspace; if not, `git` asks. Layers say it themselves."""
    own: Sequence[str] = ()
    """Where telex keeps its own; to write there is to grant oneself something."""
    rules: tuple[ToolRule, ...] = field(init=False)
    paths: PathPolicy = field(init=False)

    def __post_init__(self) -> None:
        rules = tuple(active_rules(self.layers))
        object.__setattr__(self, "rules", rules)
        paths = PathPolicy(self.root, self.home, self.mode, rules, self.files, self.own)
        object.__setattr__(self, "paths", paths)

    def judge(self, request: PermissionRequest) -> Judgement:
        # Each path is looked up once, so that all pieces are judged by the same state of the disk.
        return replace(self, files=CachedLookup(self.files))._judge(request)

    def _judge(self, request: PermissionRequest) -> Judgement:
        match request.tool, request.arguments.get(SHELL_ARGUMENT):
            case "shell", str() as text:
                return self._shell(request, text)
            case "shell", _:
                return Judgement(Permission.ASK, "the command is not text")
        if tool := PATH_TOOLS.get(request.tool):
            return self._path_tool(request, tool)
        return self._other_tool(request)

    def _shell(self, request: PermissionRequest, text: str) -> Judgement:
        script = parse_shell(text)
        if isinstance(script, UnparsedShell):
            judged = self._unread(request, script)
        else:
            judged = self._read(request, script)
        if _is_unseen(judged):
            judged = self._by_its_text(request, text, judged)
        scopes = repeatable.shell_scopes(request.cwd, text, script, judged.pieces)
        exact = self._exact(request, text, offered=bool(scopes))
        if exact and _overrides(exact, judged) and not _names_a_secret(exact, judged):
            return Judgement(exact.decision, "a rule names this exact text", exact, judged.pieces)
        if judged.decision is not Permission.ASK:
            return judged
        return _with_scopes(judged, scopes)

    @property
    def _commands(self) -> CommandJudge:
        rules = CommandRules(self.paths, self.rules)
        return CommandJudge(self.paths, rules, self.mode, trusted=self.trusted)

    def _read(self, request: PermissionRequest, script: ShellScript) -> Judgement:
        pieces = self._commands.judge(script, request.cwd)
        if not pieces:
            return Judgement(Permission.ASK, "there is no command in it")
        judged = _worst(pieces)
        both = environment_conflict(pieces) if self.mode is not Mode.FULL else None
        if both and judged.decision is Permission.ALLOW:
            reader, whole = (in_quotes(piece.source) for piece in both)
            why = f"{reader} runs without hooks, and {whole} as your rule says; run them apart"
            return replace(judged, decision=Permission.ASK, why=why, rule=None)
        return judged

    def _by_its_text(self, request: PermissionRequest, text: str, judged: Judgement) -> Judgement:
        """What nobody looked into, by the names and words that its text has. A secret that is named
        asks in every mode, and so does what may be what a rule is about."""
        named = self._commands.named_in(text, request.cwd)
        if named is None:
            why = "there are too many names in it to look for secrets"
            return replace(judged, decision=Permission.ASK, why=why)
        verdicts = [one.verdict for one in named if one.verdict.decision is not Permission.ALLOW]
        rule = CommandRules(self.paths, self.rules).in_text(text, request.cwd)
        if rule and any(not runs_nothing(piece.argv) for piece in judged.pieces if _is_free(piece)):
            about = in_quotes(" ".join(rule.command or ()))
            verdicts.append(PermissionVerdict(Permission.ASK, f"{about} is in its text", rule))
        if not verdicts:
            return judged
        asks = replace(verdicts[0], decision=Permission.ASK)
        piece = JudgedPiece("text", text, (text,), asks, named)
        if judged.decision is not Permission.ALLOW:
            return replace(judged, pieces=(*judged.pieces, piece))
        return replace(_worst((*judged.pieces, piece)), not_understood=judged.not_understood)

    def _unread(self, request: PermissionRequest, unread: UnparsedShell) -> Judgement:
        """Nobody knows what is in it: a rule may be about something that is."""
        why = f"not understood: {unread.why}, at character {unread.at}"
        whole = self._whole_tool(request)
        if whole and whole.decision is Permission.DENY:
            return Judgement(Permission.DENY, "a rule for the tool", whole, not_understood=unread)
        if not self._restricting() and (whole or self.mode is Mode.FULL):
            say = "a rule for the tool" if whole else "mode full"
            return Judgement(Permission.ALLOW, say, whole, not_understood=unread)
        asks = whole if whole and whole.decision is Permission.ASK else None
        return Judgement(Permission.ASK, why, asks, not_understood=unread)

    def _restricting(self) -> bool:
        return any(rule.decision is not Permission.ALLOW for rule in self.rules)

    def _whole_tool(self, request: PermissionRequest) -> ToolRule | None:
        return _strongest(
            rule for rule in self.rules if rule.is_for(request.tool, request.cwd) and is_whole(rule)
        )

    def _exact(
        self, request: PermissionRequest, text: str, *, offered: bool = True
    ) -> ToolRule | None:
        """A remembered yes counts only while it would be offered again: by a link, the same text
        may lead elsewhere today."""
        return _strongest(
            rule
            for rule in self.rules
            if rule.text == text
            and rule.path is None
            and rule.is_for(request.tool, request.cwd)
            and (
                offered
                or rule.layer != repeatable.REMEMBERED_LAYER
                or rule.decision is not Permission.ALLOW
            )
        )

    def _path_tool(self, request: PermissionRequest, tool: PathTool) -> Judgement:
        given = [request.arguments[key] for key in PATH_ARGUMENTS if key in request.arguments]
        match given:
            case [] if tool.recursive:
                path = request.cwd
            case [str() as path]:
                pass
            case _:
                return Judgement(
                    Permission.ASK, "it does not say in one way which path it is about"
                )
        if not is_name(path):
            return Judgement(Permission.ASK, "no file can have such a path")
        touched = self.paths.touched(
            tool.access,
            path,
            request.cwd,
            request.tool,
            recursive=tool.recursive,
            skips_hidden=tool.skips_hidden,
        )
        verdict = self._filtered(request, tool, touched.verdict)
        judged = _worst((JudgedPiece(request.tool, path, (path,), verdict, (touched,)),))
        if judged.decision is not Permission.ASK:
            return judged
        return _with_scopes(judged, repeatable.path_scopes(request.tool, touched, self.paths))

    def _filtered(
        self, request: PermissionRequest, tool: PathTool, verdict: PermissionVerdict
    ) -> PermissionVerdict:
        """A filter may lead out again, or to a secret, below a path that is fine."""
        free = self.mode is Mode.FULL and not self._restricting()
        if verdict.decision is not Permission.ALLOW or free:
            return verdict
        for name in tool.filters:
            match request.arguments.get(name):
                case None:
                    pass
                case str() as text if _stays(text):
                    pass
                case _:
                    return PermissionVerdict(
                        Permission.ASK, f"{name} may lead out of the path, or to secrets"
                    )
        return verdict

    def _other_tool(self, request: PermissionRequest) -> Judgement:
        text = repeatable.arguments_text(request.arguments)
        exact = self._exact(request, text) if text is not None else None
        rules = (self._whole_tool(request), self._tool_by_path(request), exact)
        rule = _strongest(one for one in rules if one)
        if rule:
            why = f"a rule says {rule.decision} for {in_quotes(request.tool)}"
            verdict = PermissionVerdict(rule.decision, why, rule)
        elif request.tool in HARMLESS_TOOLS:
            verdict = PermissionVerdict(
                Permission.ALLOW, "it touches only what the run itself made"
            )
        elif self.mode is Mode.FULL:
            verdict = PermissionVerdict(Permission.ALLOW, "mode full")
        else:
            verdict = PermissionVerdict(
                Permission.ASK, f"nothing is known about the tool {in_quotes(request.tool)}"
            )
        if (
            verdict.decision is Permission.ALLOW
            and not exact
            and request.tool not in HARMLESS_TOOLS
        ):
            verdict = self._secret_among(request) or verdict
        scopes = repeatable.tool_scopes(request.tool, request.arguments)
        return _with_scopes(Judgement(verdict.decision, verdict.why, verdict.rule), scopes)

    def _secret_among(self, request: PermissionRequest) -> PermissionVerdict | None:
        """A secret that is named asks, whatever the tool; nobody here knows which words are paths.
        A rule for exactly these arguments is the way to allow it."""
        for text in _texts(request.arguments):
            named = self._commands.named_in(text, request.cwd)
            if named is None:
                return PermissionVerdict(
                    Permission.ASK, "there are too many names in it to look for secrets"
                )
            for one in named:
                if one.verdict.decision is not Permission.ALLOW:
                    return PermissionVerdict(Permission.ASK, one.verdict.why, one.verdict.rule)
        return None

    def _tool_by_path(self, request: PermissionRequest) -> ToolRule | None:
        """For tools of plugins. Path rules restrict them and allow nothing: who knows all paths?"""
        found: list[ToolRule] = []
        for key in PATH_ARGUMENTS:
            path = request.arguments.get(key)
            for rule in self.rules if isinstance(path, str) and is_name(path) else ():
                absolute = self.paths.absolute(str(path), request.cwd)
                if (
                    rule.path is not None
                    and rule.command is None
                    and rule.text is None
                    and rule.decision is not Permission.ALLOW
                    and rule.is_for(request.tool, request.cwd)
                    and self.paths.covers(rule, absolute, self.files.real(absolute))
                ):
                    found.append(rule)
        return _strongest(found)


def _overrides(exact: ToolRule, judged: Judgement) -> bool:
    """Whether a rule for the exact text decides: where it asks, or to restrict it."""
    if exact.decision is Permission.ASK:
        return judged.decision is Permission.ALLOW and judged.rule is None
    return exact.decision is Permission.DENY or judged.decision is Permission.ASK


def _names_a_secret(exact: ToolRule, judged: Judgement) -> bool:
    """A text may have become about one, by a link; a secret is allowed by its path alone."""
    asked = [p for p in judged.pieces if p.verdict.decision is Permission.ASK]
    secret = any(one.is_secret for piece in asked for one in piece.touched)
    return secret and exact.decision is Permission.ALLOW


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
        return judged.decision is not Permission.DENY
    return judged.decision is Permission.ALLOW and any(map(_is_free, judged.pieces))


def _is_free(piece: JudgedPiece) -> bool:
    rule = piece.verdict.rule
    return piece.verdict == ALLOWED_UNCHECKED or (rule is not None and is_whole(rule))


def _stays(text: str) -> bool:
    last = text.rpartition("/")[2]
    out = text.startswith(("/", "~", ".")) or ".." in text.split("/")
    named = last.strip("*") and any(
        matches_pattern(last, name) for name in (".env", "id_rsa", ".netrc")
    )
    return not out and not named and not is_secret("/" + text)


def _strongest(rules: Iterable[ToolRule]) -> ToolRule | None:
    return min(rules, key=lambda rule: STRONGEST.index(rule.decision), default=None)


def _worst(pieces: Sequence[JudgedPiece]) -> Judgement:
    worst = min(pieces, key=lambda piece: WORST.index(piece.verdict.decision))
    return Judgement(worst.verdict.decision, worst.verdict.why, worst.verdict.rule, tuple(pieces))


def _with_scopes(judged: Judgement, scopes: tuple[RememberScope, ...]) -> Judgement:
    # A rule that asks is the person's own wish to be asked each time.
    if judged.decision is not Permission.ASK or judged.rule is not None:
        return judged
    return Judgement(
        judged.decision, judged.why, None, judged.pieces, scopes, judged.not_understood
    )


def explain_request(judge: Judge, request: PermissionRequest) -> dict[str, Any]:
    """Judges, runs nothing, and says all that had a part in it."""
    return explain_judgement(judge, judge.judge(request))


def explain_judgement(judge: Judge, judged: Judgement) -> dict[str, Any]:
    unread = judged.not_understood
    return {
        "decision": str(judged.decision),
        "why": in_sentence(judged.why),
        "rule": _rule(judged.rule),
        "mode": str(judge.mode),
        "trusted": judge.trusted,
        "root": in_line(judge.root),
        "not_understood": unread and {"why": unread.why, "at": unread.at},
        "why_not_automatic": [in_sentence(why) for why in _objections(judged)],
        "pieces": [_piece(piece) for piece in judged.pieces],
        "paths": [_path(one) for piece in judged.pieces for one in piece.touched],
        "remember": [
            {"kind": str(scope.kind), "says": in_sentence(scope.says), "rule": _rule(scope.rule)}
            for scope in judged.remember
        ],
        "ignored_layers": [layer.name for layer in judge.layers if not layer.trusted],
    }


def _objections(judged: Judgement) -> Iterator[str]:
    if judged.decision is Permission.ALLOW:
        return
    found = [p.verdict.why for p in judged.pieces if p.verdict.decision is not Permission.ALLOW]
    yield from dict.fromkeys([judged.why, *found])


def _rule(rule: ToolRule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    said = {
        key: in_line(value) if isinstance(value, str) else value
        for key, value in rule_to_table(rule).items()
    }
    return {**said, "layer": rule.layer, "place": rule.place}


def _piece(piece: JudgedPiece) -> dict[str, Any]:
    return {
        "kind": piece.kind,
        "source": in_line(piece.source),
        "argv": [in_line(word) for word in piece.argv],
        "decision": str(piece.verdict.decision),
        "why": in_sentence(piece.verdict.why),
        "rule": _rule(piece.verdict.rule),
    }


def _path(one: TouchedPath) -> dict[str, Any]:
    return {
        "access": str(one.access),
        "path": in_line(one.path),
        "real": in_line(one.real),
        "secret": one.is_secret,
        "decision": str(one.verdict.decision),
    }
