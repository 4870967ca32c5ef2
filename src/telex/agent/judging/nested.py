"""Whether a rule's words are among those that a program is given, which may run them. Pure.

`sudo rm x`, `split --filter='rm x'` and `git -c alias.y='!rm x' y` all run rm, and nobody knows all
programs that run others. So a rule that denies or asks is looked for in every word of a command
that is not known to run nothing, also as text within a word. That finds too much (a message of a
commit that speaks of rm) rather than too little. Used by `commands`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.agent.judging.programs import SHELLS, base

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_QUOTING: Final = re.compile(r"['\"\\]")
_BETWEEN: Final = re.compile(r"[\s'\"\\`$(){}\[\];|&<>=,:!]+")


def is_told(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether the rule's words come in this order somewhere after the program's name."""
    words = list(_words(argv[1:]))
    starts = [at for at, word in enumerate(words) if _is_program(rule[0], word)]
    return bool(starts) and _follow(rule[1:], words[starts[0] + 1 :])


def is_about(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether they are the command's own, the first as its program."""
    return _is_program(rule[0], argv[0]) and _follow(rule[1:], argv[1:])


def may_run_a_shell(argv: Sequence[str]) -> bool:
    return any(base(word) in SHELLS for word in _words(argv))


def _words(argv: Sequence[str]) -> Iterator[str]:
    """Each word, and what may be words in it: with quotes taken off, and cut at them."""
    for word in argv:
        yield word
        for text in (_QUOTING.sub("", word), word):
            for part in filter(None, _BETWEEN.split(text)):
                yield part
                if re.match(r"-[A-Za-z].", part):
                    yield part[2:]  # an option's value, as in `env -Srm`


def _is_program(name: str, word: str) -> bool:
    return word == name or word.rpartition("/")[2] == name


def _follow(rule: Sequence[str], words: Sequence[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in rule)
