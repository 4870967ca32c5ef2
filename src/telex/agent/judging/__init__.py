"""What an agent may do without asking. Pure, but for `on_disk`, which looks where links lead.

    judge = Judge(layers, Mode.MINIMAL, root, home, Disk(), trusted=False)
    judge.judge(Request("shell", {"command": "ls | head"}, cwd)).decision   # Decision.ALLOW

What there is:
    judge           requests and judgements; the file to read first
    commands        each simple command and redirect of a shell text
    paths           where a path leads; secrets; what programs obey
    programs        which programs only read, by which options; `options` reads their words
    rules, modes    what the person wrote, and what holds where nothing is written
    shell_reading   text to a `script`, or `NotUnderstood`
    remembering     what may be offered not to be asked again; `lasting` is what does not change
    nested          a rule's words among those of a program that may run them
    showing         the command as a person sees it, and its digest
    explaining      a judgement as JSON
    environment     variables that would make a judged command another one

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
from telex.agent.judging.showing import digest, shown

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
    "parse",
    "shown",
    "to_table",
]
