"""Decide whether a tool call may run without a question. Pure, except for its `FileLookup`.

Read this file first. A request is judged in pieces: each simple command, each redirect and each
path is judged by itself, also those in substitutions. The strictest piece decides: a denied piece
denies the request, otherwise a piece that asks asks. Text that cannot be parsed asks. A rule for
the exact text may allow a request that asks, but nothing allows a request that a rule denies.

The runtime calls this before a tool runs. `explain_judgement` returns the same as JSON, for
`permission.explain` and for the details of a question. Commands are judged as text for `bash` or
`sh` that runs in `unattended_environment`; another shell may read them differently.
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
    PRIVATE_TOOLS,
    SHELL_ARGUMENT,
    SKILL_TOOL,
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
"""The order of rules that match: the first wins."""
STRICTEST: Final = (Permission.DENY, Permission.ASK, Permission.ALLOW)
"""The order of pieces: the first decides."""
_WHOLE_TOOL: Final = "a rule for the whole tool"
_TOO_MANY_NAMES: Final = "the text has too many names to check for secrets"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A tool call that is about to run. `cwd` is absolute."""

    tool: str
    arguments: Mapping[str, object]
    cwd: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about a request, with the pieces that led to it."""

    decision: Permission
    why: str
    """One sentence about the piece that decided."""
    rule: ToolRule | None = None
    pieces: tuple[JudgedPiece, ...] = ()
    remember: tuple[RememberScope, ...] = ()
    """The scopes that the user may choose to remember; empty unless the decision is to ask."""
    not_understood: UnparsedShell | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the requests of one workspace. `root` and `home` are absolute."""

    layers: Sequence[RuleLayer]
    mode: Mode
    root: str
    home: str
    files: FileLookup
    trusted: bool = False
    """Whether the user trusts the workspace; if not, `git` asks. Layers have their own flag."""
    own: Sequence[str] = ()
    """The directories of telex; an agent that writes there could grant itself permissions."""
    rules: tuple[ToolRule, ...] = field(init=False)
    paths: PathPolicy = field(init=False)

    def __post_init__(self) -> None:
        rules = tuple(active_rules(self.layers))
        object.__setattr__(self, "rules", rules)
        paths = PathPolicy(self.root, self.home, self.mode, rules, self.files, self.own)
        object.__setattr__(self, "paths", paths)

    def judge(self, request: PermissionRequest) -> Judgement:
        """Return the decision about a request."""
        # Each path is looked up once, so that all pieces are judged by the same state of the disk.
        return replace(self, files=CachedLookup(self.files))._judge(request)

    def _judge(self, request: PermissionRequest) -> Judgement:
        match request.tool, request.arguments.get(SHELL_ARGUMENT):
            case "shell", str() as text:
                return self._judge_shell(request, text)
            case "shell", _:
                return Judgement(Permission.ASK, "the command is not a text")
        if tool := PATH_TOOLS.get(request.tool):
            return self._judge_path_tool(request, tool)
        return self._judge_other_tool(request)

    def _judge_shell(self, request: PermissionRequest, text: str) -> Judgement:
        script = parse_shell(text)
        if isinstance(script, UnparsedShell):
            judged = self._judge_unparsed(request, script)
        else:
            judged = self._judge_script(request, script)
        if _is_unchecked(judged):
            judged = self._check_names_in_text(request, text, judged)
        scopes = repeatable.shell_scopes(request.cwd, text, script, judged.pieces)
        exact = self._exact_rule(request, text, offered=bool(scopes))
        if exact and _overrides(exact, judged) and not _allows_a_secret(exact, judged):
            return Judgement(exact.decision, "a rule has this exact text", exact, judged.pieces)
        if judged.decision is not Permission.ASK:
            return judged
        return _with_scopes(judged, scopes)

    @property
    def _commands(self) -> CommandJudge:
        rules = CommandRules(self.paths, self.rules)
        return CommandJudge(self.paths, rules, self.mode, trusted=self.trusted)

    def _judge_script(self, request: PermissionRequest, script: ShellScript) -> Judgement:
        pieces = self._commands.judge(script, request.cwd)
        if not pieces:
            return Judgement(Permission.ASK, "the text has no command")
        judged = _strictest(pieces)
        conflict = environment_conflict(pieces) if self.mode is not Mode.FULL else None
        if conflict and judged.decision is Permission.ALLOW:
            reader, allowed = (in_quotes(piece.source) for piece in conflict)
            why = (
                f"{reader} runs in a restricted environment, and {allowed} needs yours; "
                "run them as separate commands"
            )
            return replace(judged, decision=Permission.ASK, why=why, rule=None)
        return judged

    def _check_names_in_text(
        self, request: PermissionRequest, text: str, judged: Judgement
    ) -> Judgement:
        """Judge a command that was not checked otherwise by the names and words in its text. A
        named secret asks in every mode, and so does a text with the words of a rule that
        restricts."""
        named = self._commands.named_in(text, request.cwd)
        if named is None:
            return replace(judged, decision=Permission.ASK, why=_TOO_MANY_NAMES)
        verdicts = [path.verdict for path in named if path.verdict.decision is not Permission.ALLOW]
        rule = CommandRules(self.paths, self.rules).in_text(text, request.cwd)
        unchecked = [piece for piece in judged.pieces if _is_unchecked_piece(piece)]
        if rule and any(not runs_nothing(piece.argv) for piece in unchecked):
            words = in_quotes(" ".join(rule.command or ()))
            why = f"the command contains {words}, which a rule restricts"
            verdicts.append(PermissionVerdict(Permission.ASK, why, rule))
        if not verdicts:
            return judged
        asks = replace(verdicts[0], decision=Permission.ASK)
        piece = JudgedPiece("text", text, (text,), asks, named)
        if judged.decision is not Permission.ALLOW:
            return replace(judged, pieces=(*judged.pieces, piece))
        return replace(_strictest((*judged.pieces, piece)), not_understood=judged.not_understood)

    def _judge_unparsed(self, request: PermissionRequest, unparsed: UnparsedShell) -> Judgement:
        """Judge a text that cannot be parsed. It may contain what any rule restricts."""
        why = f"telex cannot parse the command: {unparsed.why}, at character {unparsed.at}"
        whole = self._whole_tool_rule(request)
        if whole and whole.decision is Permission.DENY:
            return Judgement(Permission.DENY, _WHOLE_TOOL, whole, not_understood=unparsed)
        if not self._has_restriction() and (whole or self.mode is Mode.FULL):
            allowed_by = _WHOLE_TOOL if whole else "mode full"
            return Judgement(Permission.ALLOW, allowed_by, whole, not_understood=unparsed)
        asks = whole if whole and whole.decision is Permission.ASK else None
        return Judgement(Permission.ASK, why, asks, not_understood=unparsed)

    def _has_restriction(self) -> bool:
        return any(rule.decision is not Permission.ALLOW for rule in self.rules)

    def _whole_tool_rule(self, request: PermissionRequest) -> ToolRule | None:
        return _strongest(
            rule for rule in self.rules if rule.is_for(request.tool, request.cwd) and is_whole(rule)
        )

    def _exact_rule(
        self, request: PermissionRequest, text: str, *, offered: bool = True
    ) -> ToolRule | None:
        """Return the rule with this exact text. A remembered yes counts only while the text could
        be remembered again (`offered`): a changed link may lead the same text to another file."""
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

    def _judge_path_tool(self, request: PermissionRequest, tool: PathTool) -> Judgement:
        given = [request.arguments[key] for key in PATH_ARGUMENTS if key in request.arguments]
        match given:
            case [] if tool.recursive:
                path = request.cwd
            case [str() as path]:
                pass
            case _:
                return Judgement(Permission.ASK, "the arguments must have exactly one path")
        if not is_name(path):
            return Judgement(Permission.ASK, "the path is not valid")
        touched = self.paths.touched(
            tool.access,
            path,
            request.cwd,
            request.tool,
            recursive=tool.recursive,
            skips_hidden=tool.skips_hidden,
        )
        verdict = self._check_filters(request, tool, touched.verdict)
        judged = _strictest((JudgedPiece(request.tool, path, (path,), verdict, (touched,)),))
        if judged.decision is not Permission.ASK:
            return judged
        return _with_scopes(judged, repeatable.path_scopes(request.tool, touched, self.paths))

    def _check_filters(
        self, request: PermissionRequest, tool: PathTool, verdict: PermissionVerdict
    ) -> PermissionVerdict:
        """Check the filters of a tool: below an allowed path, a filter may match files outside it
        or secrets."""
        free = self.mode is Mode.FULL and not self._has_restriction()
        if verdict.decision is not Permission.ALLOW or free:
            return verdict
        for name in tool.filters:
            match request.arguments.get(name):
                case None:
                    pass
                case str() as text if _stays_below(text):
                    pass
                case _:
                    return PermissionVerdict(
                        Permission.ASK, f"{name} may match files outside the path, or secrets"
                    )
        return verdict

    def _judge_other_tool(self, request: PermissionRequest) -> Judgement:
        text = repeatable.arguments_text(request.arguments)
        exact = self._exact_rule(request, text) if text is not None else None
        rules = (self._whole_tool_rule(request), self._path_rule(request), exact)
        rule = _strongest(filter(None, rules))
        if rule:
            why = f"a rule says {rule.decision} for {in_quotes(request.tool)}"
            verdict = PermissionVerdict(rule.decision, why, rule)
        elif request.tool in HARMLESS_TOOLS:
            verdict = PermissionVerdict(Permission.ALLOW, "the tool uses only data of this run")
        elif request.tool == SKILL_TOOL:
            verdict = PermissionVerdict(Permission.ALLOW, "the tool reads only files of skills")
        elif request.tool in PRIVATE_TOOLS:
            verdict = PermissionVerdict(Permission.ASK, "the clipboard may contain anything")
        elif self.mode is Mode.FULL:
            verdict = PermissionVerdict(Permission.ALLOW, "mode full")
        else:
            verdict = PermissionVerdict(
                Permission.ASK, f"telex does not know what the tool {in_quotes(request.tool)} does"
            )
        if (
            verdict.decision is Permission.ALLOW
            and not exact
            and request.tool not in {*HARMLESS_TOOLS, SKILL_TOOL}
        ):
            verdict = self._named_secret(request) or verdict
        scopes = repeatable.tool_scopes(request.tool, request.arguments)
        if request.tool in PRIVATE_TOOLS:
            scopes = ()
        return _with_scopes(Judgement(verdict.decision, verdict.why, verdict.rule), scopes)

    def _named_secret(self, request: PermissionRequest) -> PermissionVerdict | None:
        """Ask if the arguments of a tool name a secret. Every text counts, because telex does not
        know which arguments are paths. A rule for exactly these arguments can allow the call."""
        for text in _texts(request.arguments):
            named = self._commands.named_in(text, request.cwd)
            if named is None:
                return PermissionVerdict(Permission.ASK, _TOO_MANY_NAMES)
            for path in named:
                if path.verdict.decision is not Permission.ALLOW:
                    return PermissionVerdict(Permission.ASK, path.verdict.why, path.verdict.rule)
        return None

    def _path_rule(self, request: PermissionRequest) -> ToolRule | None:
        """Return the strongest path rule for a plugin's tool. Path rules only restrict such a tool
        and never allow it, because it may use paths that telex does not know."""
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
    """Return whether a rule for the exact text decides: it restricts, or allows what would ask."""
    if exact.decision is Permission.ASK:
        return judged.decision is Permission.ALLOW and judged.rule is None
    return exact.decision is Permission.DENY or judged.decision is Permission.ASK


def _allows_a_secret(exact: ToolRule, judged: Judgement) -> bool:
    """Return whether the rule would allow a secret. Only a rule with a path may allow one, because
    a changed link may lead the same text to a secret."""
    asked = [p for p in judged.pieces if p.verdict.decision is Permission.ASK]
    secret = any(path.is_secret for piece in asked for path in piece.touched)
    return secret and exact.decision is Permission.ALLOW


def _texts(value: object) -> Iterator[str]:
    """Yield all text in a tool's arguments."""
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield from (*_texts(key), *_texts(inner))
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)


def _is_unchecked(judged: Judgement) -> bool:
    """Return whether the text was not parsed, or a piece is allowed without a check of its
    words."""
    if judged.not_understood is not None:
        return judged.decision is not Permission.DENY
    return judged.decision is Permission.ALLOW and any(map(_is_unchecked_piece, judged.pieces))


def _is_unchecked_piece(piece: JudgedPiece) -> bool:
    rule = piece.verdict.rule
    return piece.verdict == ALLOWED_UNCHECKED or (rule is not None and is_whole(rule))


def _stays_below(text: str) -> bool:
    """Return whether a filter matches only files below its path, and no typical secret."""
    last = text.rpartition("/")[2]
    out = text.startswith(("/", "~", ".")) or ".." in text.split("/")
    named = last.strip("*") and any(
        matches_pattern(last, name) for name in (".env", "id_rsa", ".netrc")
    )
    return not out and not named and not is_secret("/" + text)


def _strongest(rules: Iterable[ToolRule]) -> ToolRule | None:
    return min(rules, key=lambda rule: STRONGEST.index(rule.decision), default=None)


def _strictest(pieces: Sequence[JudgedPiece]) -> Judgement:
    verdict = min(pieces, key=lambda piece: STRICTEST.index(piece.verdict.decision)).verdict
    return Judgement(verdict.decision, verdict.why, verdict.rule, tuple(pieces))


def _with_scopes(judged: Judgement, scopes: tuple[RememberScope, ...]) -> Judgement:
    # With a rule that asks, the user wants to be asked each time.
    if judged.decision is not Permission.ASK or judged.rule is not None:
        return judged
    return Judgement(
        judged.decision, judged.why, None, judged.pieces, scopes, judged.not_understood
    )


def explain_request(judge: Judge, request: PermissionRequest) -> dict[str, Any]:
    """Judge a request without running it, and return the reasons as JSON."""
    return explain_judgement(judge, judge.judge(request))


def explain_judgement(judge: Judge, judged: Judgement) -> dict[str, Any]:
    """Return a judgement as JSON, with all foreign text escaped."""
    unparsed = judged.not_understood
    return {
        "decision": str(judged.decision),
        "why": in_sentence(judged.why),
        "rule": _rule(judged.rule),
        "mode": str(judge.mode),
        "trusted": judge.trusted,
        "root": in_line(judge.root),
        "not_understood": unparsed and {"why": unparsed.why, "at": unparsed.at},
        "why_not_automatic": [in_sentence(why) for why in _objections(judged)],
        "pieces": [_piece(piece) for piece in judged.pieces],
        "paths": [_path(path) for piece in judged.pieces for path in piece.touched],
        "remember": [
            {
                "kind": str(scope.kind),
                "says": in_sentence(scope.description),
                "rule": _rule(scope.rule),
            }
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
    members = {
        key: in_line(value) if isinstance(value, str) else value
        for key, value in rule_to_table(rule).items()
    }
    return {**members, "layer": rule.layer, "place": rule.place}


def _piece(piece: JudgedPiece) -> dict[str, Any]:
    return {
        "kind": piece.kind,
        "source": in_line(piece.source),
        "argv": [in_line(word) for word in piece.argv],
        "decision": str(piece.verdict.decision),
        "why": in_sentence(piece.verdict.why),
        "rule": _rule(piece.verdict.rule),
    }


def _path(touched: TouchedPath) -> dict[str, Any]:
    return {
        "access": str(touched.access),
        "path": in_line(touched.path),
        "real": in_line(touched.real),
        "secret": touched.is_secret,
        "decision": str(touched.verdict.decision),
    }
