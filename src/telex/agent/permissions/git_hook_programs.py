"""What a command in git's configuration may run in the working tree, beyond the words it has. Pure.

Git hands such a value to a shell, which may go elsewhere first, put in variables, look for programs
in another PATH; and an interpreter adds an ending to a name. So a word counts for all that begins
with it. What a value can still run unseen is not plain (`is_plain`): nothing keeps an agent from
writing that, so git asks. Used by `guards`, and by `git_repository`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import SHELLS, program_name, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from telex.agent.permissions.git_files import GitSetting

_VARIABLE: Final = re.compile(r"\$(?:\w+|[@*#?!$-])")
_BETWEEN: Final = re.compile(r"[\s'\"`;|&()<>=$!{},:\\]+")
_WILD: Final = re.compile(r"[*?\[]")
_PLAIN: Final = re.compile(r"!?[\w@%+,./-]*(?:[ \t]+[\w@%+=:,./-]+)*")
_OTHER_HOME: Final = re.compile(r"~([^/]+)(/.*)?", re.DOTALL)
_PREFIX: Final = "%(prefix)/"
_PREFIXES: Final = ("/usr", "/usr/local", "/opt/local", "/opt/homebrew")
"""Where git may have been installed."""
_OWN_WORDS: Final = word_set("git-lfs git-crypt git-annex gh glab osxkeychain manager manager-core")
"""Programs whose words are commands of theirs and no files."""
_TEXT: Final = re.compile(
    r"diff\.(?:\*\.)?(?:xfuncname|funcname|wordregex)|(?:format|pretty|grep|i18n|log|notes|user|gui"
    r"|versionsort|status|column|credential|merge|diff)\.(?:\*\.)?"
    r"(?:name|email|username|pretty|signature|date|tool|guitool|conflictstyle|encoding|\w+encoding)"
    r"|pretty\.\w+|gui\.recentrepo|remote\.\*\.(?:promisor|partialclonefilter|skip\w+)"
    r"|extensions\.\w+"
)
"""Settings that are neither a command nor a place."""
RUNNERS: Final = SHELLS | word_set("""
    ansible ant awk bazel bmake bun bundle bunx busybox cargo cmake composer deno doas docker dotnet
    env exec find gawk gmake go gradle gradlew invoke java julia just lua luajit make meson mise mix
    mvn mvnw nice ninja node nodejs nohup nox npm npx perl php pipenv pnpm podman poetry pypy python
    R rake Rscript ruby scons setsid sudo task tclsh timeout tox ts-node tsx uv uvx xargs yarn
""")
"""Programs that run what they find in a directory, or what their words are about in other ways."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A path from the top of the tree: what is run is that, or below it, or has an ending more."""

    path: str
    if_there: bool = False
    """It counts only if something is there: most words are no files."""
    is_cut: bool = False
    """Any name may go on from here: it was a pattern."""


def begun_by(one: GitSetting) -> Iterator[Begun]:
    """With what the paths may begin that it runs."""
    value = one.value
    if one.is_harmless or one.names_data or one.names_place or _TEXT.fullmatch(one.kind):
        return
    if one.section == "alias" and not value.startswith("!"):
        return  # words of git's own
    words = [word for word in _BETWEEN.split(_VARIABLE.sub(" ", value)) if word]
    if words and program_name(words[0]) in _OWN_WORDS:
        return
    before = ""
    for at, word in enumerate(words):
        if re.fullmatch(r"-[A-Za-z]\S+", word):
            yield from _begun(word[2:], is_module=False)
            if module := re.fullmatch(r"-[A-Za-z]*?m([A-Za-z_][\w.]*)", word):
                yield from _begun(module[1], is_module=True)
        elif not word.startswith("-") and (at or "/" in word):
            is_module = re.fullmatch(r"-[A-Za-z]*m", before) is not None
            yield from _begun(word, is_module=is_module)
        before = word


def _begun(word: str, *, is_module: bool) -> Iterator[Begun]:
    if is_module:
        yield Begun(word.split(".")[0])
        return
    known = _WILD.split(word)[0].lstrip("/")
    known = re.sub(r"^(?:~[^/]*/|(?:\.?/)+)+", "", known)
    if known not in ("", ".", "..", "~"):
        is_cut = _WILD.search(word) is not None
        yield Begun(known, "/" not in word and not is_cut, is_cut)


def places(value: str, home: str) -> tuple[str, ...]:
    """Where git may take a place to be: in the home of somebody, or where it is installed."""
    if value.startswith(_PREFIX):
        return tuple(f"{top}/{value.removeprefix(_PREFIX)}" for top in _PREFIXES)
    if value == "~" or value.startswith("~/"):
        return (home + value[1:],)
    if other := _OTHER_HOME.fullmatch(value):
        user, rest = other[1], other[2] or ""
        above = home.rpartition("/")[0]
        homes = [f"{above}/{user}", f"/home/{user}", f"/Users/{user}"]
        homes += ["/root", "/var/root"] if user == "root" else []
        homes += [home] if home.endswith(f"/{user}") else []
        return (value, *dict.fromkeys(one + rest for one in homes))
    return (value,)


def is_plain(one: GitSetting) -> bool:
    """Whether the files it has git run are those that are guarded: a program that looks for nothing
    by itself, and words that a shell takes as they are."""
    if one.is_harmless or one.names_data or one.section == "alias" or _TEXT.fullmatch(one.kind):
        return True
    if one.names_place:
        return _OTHER_HOME.fullmatch(one.value) is None and not one.value.startswith(_PREFIX)
    words = one.value.removeprefix("!").split()
    return not words or (
        _PLAIN.fullmatch(one.value) is not None
        and "ext::" not in one.key + one.value
        and program_name(words[0]) not in RUNNERS
    )
