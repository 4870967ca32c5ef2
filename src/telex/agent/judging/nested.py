"""Whether a rule's words are among those that a program is given, which may run them. Pure.

`sudo rm x`, `split --filter='rm x'` and `git -c alias.y='!rm x' y` all run rm, and nobody knows all
programs that run others. So a rule that denies or asks is looked for in every word of a command
that is not known to run nothing, also as text within a word. That finds too much (a message of a
commit that speaks of rm) rather than too little. `git-push` is `git push`, an alias that git is
given with `-c` is what it is for, and where a command may be what a rule is about but does not say
so (an alias that git may know, words that come from a pipe), it is doubtful. Used by `commands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from telex.agent.judging.code_words import pieces
from telex.agent.judging.git_commands import OTHER_NAMES, read_git
from telex.agent.judging.options import names
from telex.agent.judging.programs import base

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ALSO_GIT: Final = names("dulwich gix got hub")
"""Programs that do what git does, by the same or by other words."""
_MOST_GITS: Final = 32
"""Words of one command that may be git; with more it is doubtful."""


def is_told(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether the rule's words come in this order somewhere after the program's name."""
    return _come_in(rule, [one for word in argv[1:] for one in pieces(word)])


def is_about(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether they are the command's own, the first as its program."""
    return any(_begins(rule, form) for form in _forms(argv))


def is_doubtful(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether it may be what the rule is about without saying so."""
    if rule[0].casefold() != "git" or len(rule) < 2:
        return False
    seen = 0
    for at, word in enumerate(argv):
        name = word.rpartition("/")[2].casefold()
        if base(name) in _ALSO_GIT:
            return True
        if name == "git" or name.startswith("git-"):
            # `git-send-pack` is `git send-pack`.
            own = (name.removeprefix("git-"),) if name != "git" else ()
            call = read_git((*own, *argv[at + 1 :]))
            seen += 1
            if seen > _MOST_GITS or not call.is_known or call.name in OTHER_NAMES.get(rule[1], ()):
                return True
    return False


def holds_words_of(rule: Sequence[str], text: str) -> bool:
    """Whether all of the rule's words are in the text, in any order: a pipe may turn them."""
    words = list(pieces(text))
    has_program = any(_is_program(rule[0], word) for word in words)
    return has_program and set(rule[1:]) <= set(words)


def _forms(argv: Sequence[str]) -> Iterator[Sequence[str]]:
    """The command, and what it is by another name."""
    yield argv
    # `git-push` in git's own directory; `docker-compose` is `docker compose`.
    name = argv[0].rpartition("/")[2]
    if "-" in name.strip("-"):
        yield (*name.split("-", 1), *argv[1:])
        yield (*name.split("-"), *argv[1:])
    if _is_program("git", argv[0]):
        call = read_git(argv[1:])
        yield ("git", *(pieces(call.runs) if call.runs else (call.name,)), *call.rest)
        yield (f"git-{call.name}", *call.rest)


def _begins(rule: Sequence[str], argv: Sequence[str]) -> bool:
    return _is_program(rule[0], argv[0]) and _follow(rule[1:], argv[1:])


def _come_in(rule: Sequence[str], words: Sequence[str]) -> bool:
    apart = [one for word in words for one in (word, *_dashed(rule[0], word))]
    starts = (at for at, word in enumerate(apart) if _is_program(rule[0], word))
    first = next(starts, None)
    return first is not None and _follow(rule[1:], apart[first + 1 :])


def _dashed(name: str, word: str) -> Sequence[str]:
    """`git-push` in two, for a rule about git."""
    program, dash, rest = word.rpartition("/")[2].partition("-")
    return (program, rest) if dash and program.casefold() == name.casefold() else ()


def _is_program(name: str, word: str) -> bool:
    """Some file systems do not tell cases apart."""
    return name.casefold() in (word.casefold(), word.rpartition("/")[2].casefold())


def _follow(rule: Sequence[str], words: Sequence[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in rule)
