"""Permissions: decide what an agent may do without a question, ask the user, and confine commands.

    judge = Judge(layers, Mode.MINIMAL, root, home, DiskLookup(), trusted=False)
    request = PermissionRequest("shell", {"command": "ls | head"}, cwd)
    judge.judge(request).decision   # Permission.ALLOW

The judge is pure; only `disk` reads the disk for it:
    judge               requests and judgements, also as JSON; read this file first
    tool_rules          rules and their layers; the modes, which decide where no rule matches
    shell_parser        parses shell text to a `ShellScript`, or to `UnparsedShell`
    shell_commands      judges each simple command and redirect of a script
    command_rules       finds the rules that match a simple command
    embedded_commands   commands and code among the arguments of another command; git aliases
    embedded_paths      paths inside a word, and names anywhere in a text
    read_only_programs  the programs that only read, and their options (readers.toml)
    unnamed_files       programs that use files which their arguments do not name
    path_policy         judges paths; rules for paths
    path_walk           resolves a path link by link; the lookups that this needs
    sensitive_names     names of secrets and of guarded files (names.toml)
    ripgrep_globs       generates ripgreprc, with which rg excludes secrets
    guarded_files       guarded files, also through links and git's configuration
    git_config          parses git's configuration; the files that a setting runs
    git_index           parses git's index
    git_repository      finds a repository and the directories that git reads
    git_inspector       decides whether git may run without a question
    reader_environment  the environment of a command that runs without a question
    repeatable          commands that will do the same later, and answers to remember
    typed_input         what may be typed into a terminal without a question
    display_text        escapes foreign text for questions; the digest of a question

Enforcement:
    workspace_permissions  the rules of one workspace, with the remembered answers
    confirmation           judges a call, asks the user, and binds the answer to what was shown
    terminal_confirmation  judges calls that open a terminal or type into one
    question_text          the text of questions
    bound_files            the files that an answer is bound to
    implied_files          files and directories that a command uses without naming them
    confinement            the kernel sandbox of a command that runs without a question

tests/corpus/permissions has test cases that can be used from any language.
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
