"""What an agent may do without asking, how a person is asked, and what holds what was allowed.

    judge = Judge(layers, Mode.MINIMAL, root, home, DiskLookup(), trusted=False)
    request = PermissionRequest("shell", {"command": "ls | head"}, cwd)
    judge.judge(request).decision   # Permission.ALLOW

Judging is pure; `disk` is the one file that looks at the disk for it:
    judge               requests and judgements, also as JSON; the file to read first
    tool_rules          rules, their layers, and the modes that hold where no rule matches
    shell_parser        shell text to a `ShellScript`, or `UnparsedShell`
    shell_commands      each simple command and redirect of a script, judged
    command_rules       which rule is about a simple command
    embedded_commands   commands and code among the words of another command; git's aliases
    embedded_paths      paths within a word, and names anywhere in a text
    read_only_programs  which programs only read, by which options (readers.toml)
    path_policy         what may be done at a path; rules for paths
    path_walk           where a path leads, link by link, and what has to be looked up for it
    sensitive_names     secrets, and files that programs obey, by their names (names.toml)
    guarded_files       files that programs obey, also by links and by git's configuration
    git_files           git's configuration and index, parsed
    git_repository      where git reads, and what a repository's configuration may have it run
    reader_environment  the environment of a command that nobody was asked about
    repeatable          commands that do the same tomorrow, and what may be remembered
    display_text        the command as a person sees it, and its digest

Acting on a judgement:
    workspace_permissions  the rules in force in one workspace, with those remembered
    confirmation           judges a call, asks the person, and binds the answer to what was shown
    question_text          the wording of questions
    bound_files            the files that an answer is bound to
    confinement            what the kernel's sandbox lets an unasked command do
    permission_handlers    the handlers of `tool.call` and `permission.explain`

Tests that anybody can use, in any language: tests/corpus/permissions.
"""

from __future__ import annotations

from telex.agent.permissions.disk import DiskLookup
from telex.agent.permissions.display_text import (
    digest,
    escaped,
    in_line,
    in_quotes,
    in_sentence,
    marked_off,
)
from telex.agent.permissions.judge import (
    Judge,
    Judgement,
    PermissionRequest,
    explain_judgement,
    explain_request,
)
from telex.agent.permissions.path_policy import FileLookup
from telex.agent.permissions.repeatable import RememberScope
from telex.agent.permissions.shell_commands import JudgedPiece
from telex.agent.permissions.shell_parser import ShellScript, UnparsedShell, parse_shell
from telex.agent.permissions.tool_rules import (
    InvalidRule,
    Mode,
    Permission,
    RuleLayer,
    ToolRule,
    rule_to_table,
    rules_from_tables,
)

__all__ = [
    "DiskLookup",
    "FileLookup",
    "InvalidRule",
    "Judge",
    "JudgedPiece",
    "Judgement",
    "Mode",
    "Permission",
    "PermissionRequest",
    "RememberScope",
    "RuleLayer",
    "ShellScript",
    "ToolRule",
    "UnparsedShell",
    "digest",
    "escaped",
    "explain_judgement",
    "explain_request",
    "in_line",
    "in_quotes",
    "in_sentence",
    "marked_off",
    "parse_shell",
    "rule_to_table",
    "rules_from_tables",
]
