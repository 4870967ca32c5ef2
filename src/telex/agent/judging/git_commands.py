"""The words of a git command: its subcommand, and what an alias on its command line makes of it.
Pure.

A word that is no command of git's may be an alias that some configuration has, so that nobody knows
what it runs. Git itself refuses aliases with the name of a command. Used by `nested`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.judging.options import names

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = names("""
    add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr
    check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean
    clone column commit commit-graph commit-tree config count-objects credential
    credential-cache credential-store describe diagnose diff diff-files diff-index diff-tree
    difftool fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref for-each-repo
    format-patch fsck gc get-tar-commit-id grep hash-object help hook index-pack init init-db
    interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge
    merge-base merge-file merge-index merge-ours merge-recursive merge-tree mergetool mktag
    mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id prune prune-packed
    pull push range-diff read-tree rebase receive-pack reflog remote repack replace rerere reset
    restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-index show-ref
    sparse-checkout stage stash status stripspace submodule switch symbolic-ref tag unpack-file
    unpack-objects update-index update-ref update-server-info upload-archive upload-pack var
    verify-commit verify-pack verify-tag version worktree write-tree
""")
OTHER_NAMES: Final = {
    name: names(others)
    for name, others in {
        "add": "stage update-index read-tree apply fast-import",
        "branch": "update-ref symbolic-ref checkout switch worktree fast-import",
        "checkout": "switch restore read-tree checkout-index reset worktree symbolic-ref",
        "clone": "fetch fetch-pack remote submodule",
        "commit": "commit-tree am cherry-pick revert rebase merge pull fast-import update-ref",
        "diff": "diff-files diff-index diff-tree difftool show log format-patch range-diff",
        "fetch": "fetch-pack pull clone remote submodule",
        "gc": "repack prune prune-packed maintenance",
        "log": "rev-list show reflog shortlog",
        "merge": "pull merge-recursive merge-ours merge-index merge-tree read-tree rebase am",
        "pull": "fetch fetch-pack merge rebase",
        "push": "send-pack receive-pack http-push",
        "rebase": "pull cherry-pick am fast-import replace",
        "reset": "update-ref read-tree checkout restore symbolic-ref update-index branch switch",
        "restore": "checkout checkout-index read-tree reset",
        "rm": "update-index read-tree",
        "show": "cat-file log diff-tree diff format-patch unpack-file",
        "switch": "checkout symbolic-ref",
        "tag": "update-ref mktag fast-import",
    }.items()
}
"""Commands by which the same can be done. What is no command of git's by itself (`remote-https`)
is not known, and asks anyway."""
_WITH_VALUE: Final = names("""
    -C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env
""")
_ALIASES_DEEP: Final = 10
"""An alias may be for another; one that is for itself ends here."""


@dataclass(frozen=True, slots=True)
class GitCall:
    """What git is told to do."""

    name: str
    """Its subcommand; empty if it has none."""
    rest: tuple[str, ...]
    runs: str = ""
    """A shell text, where an alias is for one."""

    @property
    def is_known(self) -> bool:
        return self.name in COMMANDS or self.name == ""


def read_git(words: Sequence[str]) -> GitCall:
    """`words` come after git's name. An alias that is given with `-c` is put in."""
    aliases: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 2 if option in _WITH_VALUE else 1
        if option == "-c" and at <= len(words):
            key, _, value = words[at - 1].partition("=")
            section, _, name = key.partition(".")
            if section.lower() == "alias":
                aliases[name.removesuffix(".command")] = value
    call = GitCall(words[at], tuple(words[at + 1 :])) if at < len(words) else GitCall("", ())
    for _ in range(_ALIASES_DEEP):
        if call.is_known or call.name not in aliases:
            break
        value = aliases[call.name]
        if value.startswith("!"):
            return GitCall(call.name, call.rest, runs=value[1:])
        first, *more = value.split() or [""]
        call = GitCall(first, (*more, *call.rest))
    return call
