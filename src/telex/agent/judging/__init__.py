"""What an agent may do without asking. Pure, but for `on_disk`, which looks what links say.

    judge = Judge(layers, Mode.MINIMAL, root, home, Disk(), trusted=False)
    judge.judge(Request("shell", {"command": "ls | head"}, cwd)).decision   # Decision.ALLOW

What there is:
    judge           requests and judgements; the file to read first
    commands        each simple command and redirect of a shell text
    paths           what may be done at a path; rules for paths
    links           where a path leads, link by link; `lookups` is what has to be looked up for it
    names           secrets and what programs obey, by their names
    guards          what programs obey, also by links and by git's configuration (`git_config`)
    programs        which programs only read, by which options; `options` reads their words
    git_repository  what a repository's own configuration may have git run; `git_config` reads it
    rules, modes    what the person wrote, and what holds where nothing is written
    shell_reading   text to a `script`, or `NotUnderstood`
    remembering     what may be offered not to be asked again; `lasting` is what does not change
    nested          a rule's words among those of a program that may run them; `git_commands`
    text_names      names anywhere in a text, for secrets in what is not understood
    showing         the command as a person sees it, and its digest
    explaining      a judgement as JSON
    environment     variables that would make a judged command another one
    protection      which commands of a line need that, and which must not have it

Tests that anybody can use, in any language: tests/corpus/permissions.
"""

from __future__ import annotations

from telex.agent.judging.commands import Piece
from telex.agent.judging.explaining import explain, explained
from telex.agent.judging.judge import Judge, Judgement, Request
from telex.agent.judging.modes import Mode
from telex.agent.judging.on_disk import Disk
from telex.agent.judging.paths import Files
from telex.agent.judging.remembering import Scope
from telex.agent.judging.rules import Decision, Layer, Rule, RuleRefused, from_tables, to_table
from telex.agent.judging.script import NotUnderstood, Script
from telex.agent.judging.shell_reading import parse
from telex.agent.judging.showing import (
    digest,
    in_line,
    in_quotes,
    in_sentence,
    marked_off,
    shown,
)

__all__ = [
    "Decision",
    "Disk",
    "Files",
    "Judge",
    "Judgement",
    "Layer",
    "Mode",
    "NotUnderstood",
    "Piece",
    "Request",
    "Rule",
    "RuleRefused",
    "Scope",
    "Script",
    "digest",
    "explain",
    "explained",
    "from_tables",
    "in_line",
    "in_quotes",
    "in_sentence",
    "marked_off",
    "parse",
    "shown",
    "to_table",
]
