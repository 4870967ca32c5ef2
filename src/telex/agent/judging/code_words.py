"""Whether a program may run what its words say, as code of a shell or of another language. Pure.

A rule that restricts looks for its own words among those of a command (`nested`), and code can
spell them in other ways: `g=gi; ${g}t push`. Nobody knows all programs that run code, so listed
here are those that are known to run none of their words, and options whose value is only text. A
word of any other program is code if it has a character by which code would compute a name. A word
without such is what it says, and a rule finds it there. What a file holds is not seen: `python3
x.py` may do anything. Used by `nested`, `command_rules` and `commands`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from telex.agent.judging.environment import ACTING
from telex.agent.judging.git_commands import read_git
from telex.agent.judging.lasting import runs_nothing
from telex.agent.judging.options import names
from telex.agent.judging.programs import SHELLS, base

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMPUTES: Final = frozenset("$`;|&!()'\"\\\r\n")
_EXPANDS: Final = frozenset("*?[]{}<>~")
"""A pattern or braces make a command only where there are several words in one."""
_FROM_PIPE: Final = re.compile(
    r"-|-[A-Za-z]+-|-.*=-|(?:.*=|-[A-Za-z]+)?/(?:dev/(?:stdin|fd)|proc)\b.*", re.DOTALL
)
"""A program may be told to read its code from a pipe: `make -f-`."""
_MOST_PROGRAMS: Final = 32
"""Words of one command that may be programs with options of their own; with more it asks."""
_QUOTING: Final = re.compile(r"['\"\\]")
_BETWEEN: Final = re.compile(r"[\s'\"\\`$(){}\[\];|&<>=,:!]+")
_SYSTEM: Final = re.compile(r"(?:/usr)?/s?bin/|/usr/local/bin/")
"""Where a program is the system's own; `./grep` is another one."""

_RUN_NO_WORDS: Final = names("""
    [ b2sum base32 base64 basename cat chgrp chmod chown cksum cmp column comm cp csplit curl cut
    date df diff dirname du echo egrep expand false fgrep file fmt fold getent grep head hexdump
    hostname id join jq kill ln ls lsof md5sum mkdir mkfifo mktemp mv nl nproc numfmt od paste
    pathchk pgrep pidof ps pwd readlink realpath rev rm rmdir seq sha1sum sha224sum sha256sum
    sha384sum sha512sum shuf sleep sort stat strings sum tac tail tee test touch tr tree true
    truncate tsort tty uname unexpand uniq unlink wc which whoami xxd yes fd fdfind find rg
""")
"""Whatever their words are, but for those of `_RUNS_BY`."""
_RUNS_BY: Final = {
    "[": r"-v",
    "bsdtar": r"--use.*|-[a-zA-Z]*I.*",
    "bun": r"repl|exec",
    "bunx": r"-e|--eval.*",
    "deno": r"eval|repl|task",
    "doas": r"-[a-zA-Z]*s.*",
    "env": r"-[a-zA-Z0]*S.*|--s.*",
    "fd": r"-[a-zA-Z]*[xX].*|--exec.*",
    "fdfind": r"-[a-zA-Z]*[xX].*|--exec.*",
    "find": r"-exec|-execdir|-ok|-okdir",
    "gmake": r"--ev.*|-[a-zA-Z]*E.*",
    "gtar": r"--checkpoint-.*|--to-.*|--us.*|--inf.*|--new-.*|--rsh.*|--rmt.*|-[a-zA-Z]*[IF].*",
    "make": r"--ev.*|-[a-zA-Z]*E.*",
    "nix": r"-c|--command|--expr.*|--run.*|repl|eval",
    "nix-instantiate": r"-E|--expr|--eval.*",
    "nix-shell": r"--run.*|--command.*|-E|--expr",
    "npm": r"exec|x|explore|-c|--call.*|--script-shell.*",
    "npx": r"-c|--call.*",
    "pnpm": r"-c|--shell-mode|--script-shell.*",
    "rg": r"--pre.*|--hostname-bin.*",
    "rsync": r"-[a-zA-Z]*e.*|--rsh.*|--rsync-path.*",
    "sort": r"--co.*",
    "split": r"--f.*",
    "sudo": r"-[a-zA-Z]*[sie].*|--shell|--login|--edit",
    "tar": r"--checkpoint-.*|--to-.*|--us.*|--inf.*|--new-.*|--rsh.*|--rmt.*|-[a-zA-Z]*[IF].*",
    "test": r"-v",
    "zip": r"-[a-zA-Z]*T.*|--un.*",
}
"""Options, and words, by which a program runs what it is told or what it reads. Written so that an
abbreviation of one is found too."""
_BUNDLED: Final = names("tar gtar bsdtar")
"""Their first word is a bundle of options, also without a dash."""
_ONLY_TEXT: Final = {
    "gh": names("--title --body"),
    "go": names("-run -bench -skip --run --bench --skip"),
    "hg": names("-m --message"),
    "jest": names("-t --testNamePattern"),
    "jj": names("-m --message"),
    "pytest": names("-k -m"),
    "svn": names("-m --message"),
    "vitest": names("-t --testNamePattern"),
}
"""Options whose value such a program never runs."""

_ALWAYS: Final = names("""
    at batch chroot crontab ed entr expect flock nsenter parallel runuser script ssh su unshare
    watch xargs systemd-run start-stop-daemon socat ncat
    ex gvim gview nvim rgvim rview rvim vi view vim vimdiff emacs emacsclient jed joe kak micro
    cgdb gdb lldb radare2
    duckdb mariadb mongo mongosh mysql psql sqlite sqlite3 sqlplus
    screen tmux zellij dtach abduco
    dc gnuplot m4 maxima gs
    less more most mutt mailx ansible
""")
"""They run what they are told in many ways, or read it from a pipe or a person."""
_NAME_TASKS: Final = names("""
    apt apt-get brew bun cargo dnf docker dotnet go gmake gradle grunt gulp just kubectl lerna make
    man mix mvn ninja npm nx pip pnpm poetry rake service systemctl task tox turbo uv yarn
""")
"""Their words are names of tasks, packages and containers: `npm run watch` is not the program."""
_INTERPRETERS: Final = names("""
    python pypy ipython bpython jython micropython perl ruby jruby irb pry node nodejs deno bun php
    php-cgi hhvm lua luajit luau texlua tclsh wish osascript pwsh powershell Rscript R littler guile
    elixir iex erl escript octave octave-cli matlab scilab ghc ghci runghc runhaskell raku rakudo
    perl6 groovy groovysh scala scala-cli amm kotlin clojure clj bb jshell jrunscript jjs rhino
    julia ocaml utop sbcl clisp ecl ccl abcl racket scheme mit-scheme csi gosh chibi-scheme gforth
    swipl gprolog yap newlisp picolisp janet fennel coffee ts-node tsx nu xonsh elvish osh
    wolframscript qjs quickjs d8 mujs hermes
""")
_GIVES_FILE: Final = names("-i -I -u -B -s -S -E -W -X -O -OO -q -w -v -b -d -x --check --harmony")
"""Options of interpreters after which a file may still follow. Others may give code."""
_WITH_VALUE: Final = names("-W -X -I")
_GLUED: Final = re.compile(r"-[WXI].+")
_NO_CODE: Final = names("-V -h -v --help --version -version --test")
"""With these alone, an interpreter waits for none."""
_AWK: Final = names("awk gawk mawk nawk goawk frawk")

_GIT_TEXT: Final = names("""
    add am annotate apply blame branch cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry cherry-pick clean commit commit-tree
    count-objects describe diff diff-files diff-index diff-tree for-each-ref format-patch fsck gc
    grep hash-object init log ls-files ls-tree merge merge-base merge-file merge-tree mv name-rev
    notes range-diff read-tree reflog reset restore rev-list rev-parse revert rm shortlog show
    show-branch show-ref sparse-checkout stage stash status stripspace switch symbolic-ref tag
    update-index update-ref var version worktree write-tree
""")
"""Commands of git that run none of their words."""
_GIT_RUNS: Final = {
    "grep": r"-O.*|--op.*",
    "rebase": r"-[a-zA-Z]*x.*|--ex.*",
    "bisect": r"run",
    "submodule": r"foreach",
    "difftool": r"-[a-zA-Z]*x.*|--ex.*",
    "filter-branch": r".*",
    "for-each-repo": r".*",
    "send-email": r".*",
    "instaweb": r".*",
    "hook": r".*",
    "merge-index": r".*",
    "credential": r".*",
    "fast-import": r".*",
    "daemon": r".*",
    "shell": r".*",
}
_GIT_HARMLESS: Final = re.compile(
    r"(?:user\.(?:name|email)|color\..*|column\..*|advice\..*|alias\.[^!]*|core\.(?:quotepath|autocrlf|eol"
    r"|abbrev|filemode|ignorecase|precomposeunicode|longpaths)|init\.defaultbranch|commit\.gpgsign"
    r"|tag\.gpgsign|diff\.(?:renames|algorithm|context|nopreFix)|merge\.(?:ff|conflictstyle)"
    r"|pull\.(?:rebase|ff)|push\.default|fetch\.prune|log\.(?:date|decorate)|http\.(?:version|lowspeed.*)"
    r"|protocol\.version|rebase\.autostash|safe\.directory)=[^!].*|[\w.]+",
    re.IGNORECASE,
)
"""Settings after `-c` by which git runs nothing. An alias is read by `git_commands`."""

_SHELL_RUNS: Final = names("eval source . exec trap")
_SHELL_NAMES: Final = {
    "alias": r".*=.*",
    "bind": r"-[a-zA-Z]*x.*",
    "compgen": r"-[a-zA-Z]*[CF].*",
    "complete": r"-[a-zA-Z]*[CF].*",
    "enable": r"-[a-zA-Z]*f.*",
    "fc": r".*",
    "hash": r"-[a-zA-Z]*p.*",
    "mapfile": r"-[a-zA-Z]*C.*",
    "readarray": r"-[a-zA-Z]*C.*",
}
"""Commands of a shell, and the words by which they run something or give a program a name."""
_SHELL_SETS: Final = names("""
    declare export getopts let local mapfile printf read readarray readonly typeset unset
""")
"""Those that set a variable which a word of theirs names."""
_PROGRAMS_BY: Final = re.compile(
    rf"PATH|HOME|XDG_CONFIG_\w+|BASH_ALIASES|BASH_CMDS|(?!GIT_(?:AUTHOR|COMMITTER)_)(?:{ACTING.pattern})"
)
"""Variables by which a name is another program, or a program runs another."""

_SED_COMMAND: Final = re.compile(
    r"(?:(?:[0-9]+|\$|/[^/\n\\;{}]*/)(?:,(?:\+?[0-9]+|\$|/[^/\n\\;{}]*/))?)?!?"
    r"(?:[dpq=]|s([/|#,@:])(?:(?!\1)[^\n\\]|\\[^\n])*\1(?:(?!\1)[^\n\\]|\\[^\n])*\1[gIipM0-9]*)"
)
"""One command of sed that runs and writes nothing: no `e` and no `w`, nor flags of these names."""
_SED_OPTIONS: Final = re.compile(
    r"-[nErsuz]*(?:i[.~\w]*)?|--quiet|--silent|--regexp-extended|--in-place(?:=[.~\w]*)?|--posix"
)


def may_run_code(argv: Sequence[str]) -> bool:
    """Whether it is told, or may read, commands that are not among its words."""
    name = _name(argv[0])
    if name == "sed":
        return not _is_plain_sed(argv[1:])
    if runs_nothing((name, *argv[1:])):
        return False
    if runs_no_word(argv):
        return False
    if _has_code_option(name, argv[1:]):
        return True
    if (git := _as_git(argv)) is not None:
        return _git_may_run(git)
    return _has_runner(argv) or holds_code(argv)


def changes_programs(argv: Sequence[str]) -> bool:
    """Whether the shell itself is told to run something, or to take another program or setting for
    a name from now on."""
    words = list(argv)
    while len(words) > 1 and (words[0] in ("builtin", "command") or words[0].startswith("-")):
        words.pop(0)
    name, rest = words[0], words[1:]
    if name in _SHELL_RUNS:
        return True
    pattern = _SHELL_NAMES.get(name)
    if pattern and any(re.fullmatch(pattern, one, re.DOTALL) for one in rest):
        return True
    sets = name in _SHELL_SETS
    return any(
        _PROGRAMS_BY.fullmatch(found[1]) is not None
        for one in rest
        if (found := re.match(r"-?v?(\w+)(?:\[[^=]*)?(\+?=|\Z)", one)) and (sets or found[2])
    )


def holds_code(argv: Sequence[str], after: int = 1) -> bool:
    """Whether one of the words from there on may be code, as far as the program runs its words."""
    name = _name(argv[0])
    if runs_no_word(argv) or runs_nothing((name, *argv[1:])):
        return False
    git = _as_git(argv)
    if git is not None and read_git(git).name in _GIT_TEXT:
        return False
    texts = _ONLY_TEXT.get(name, frozenset())
    reads_pipes = name not in _BUNDLED
    return any(
        _is_code(word) or (reads_pipes and _FROM_PIPE.fullmatch(word) is not None)
        for at, word in enumerate(argv)
        if at >= after and argv[at - 1] not in texts and word.partition("=")[0] not in texts
    )


def _is_code(word: str) -> bool:
    if not _COMPUTES.isdisjoint(word):
        return True
    return not _EXPANDS.isdisjoint(word) and any(map(str.isspace, word))


def runs_no_word(argv: Sequence[str]) -> bool:
    """Whether it is a program that is known to run none of its words, with options that do not."""
    name = _name(argv[0])
    return name in _RUN_NO_WORDS and not _has_code_option(name, argv[1:])


def _name(program: str) -> str:
    """Of the system's own; any other keeps its path."""
    found = _SYSTEM.match(program)
    return program[found.end() :] if found else program


def _has_code_option(name: str, words: Sequence[str]) -> bool:
    pattern = _RUNS_BY.get(base(name))
    if pattern is None or not words:
        return False
    first = "-" + words[0] if base(name) in _BUNDLED and "." not in words[0] else words[0]
    return any(re.fullmatch(pattern, one, re.DOTALL) for one in (first, *words))


def _has_runner(argv: Sequence[str]) -> bool:
    """A shell, a program that runs what it reads, an interpreter that is not given a file: anywhere
    among the words, since any program may run another."""
    names_tasks, looked = base(argv[0]) in _NAME_TASKS, 0
    for at, word in enumerate(argv):
        name, rest = base(word), argv[at + 1 :]
        if any(base(one) in SHELLS for one in pieces(word)):
            return True
        if {name, word.rpartition("/")[2]} & _ALWAYS and not (at and names_tasks):
            return True
        if name in _AWK and not any(one.startswith("-f") for one in rest):
            return True
        if {name, word.rpartition("/")[2]} & _INTERPRETERS and _is_given_code(rest):
            return True
        if at and name in _RUNS_BY:
            looked += 1
            if looked > _MOST_PROGRAMS or _has_code_option(name, rest):
                return True
    return False


def pieces(word: str) -> Iterator[str]:
    """A word, and what may be words in it: with quotes taken off, and cut at them."""
    yield word
    for text in (_QUOTING.sub("", word), word):
        for part in filter(None, _BETWEEN.split(text)):
            yield part
            if re.match(r"-[A-Za-z].", part):
                yield part[2:]  # an option's value, as in `env -Srm`


def _is_given_code(words: Sequence[str]) -> bool:
    """An interpreter with these words runs what they say, or what it reads; not a file. A module
    (`-m`) is as a file is, and its words are looked at as those of any program."""
    before = ""
    for word in words:
        if word.startswith("-m") or (word[:1] != "-" and before not in _WITH_VALUE):
            return False
        is_known = word in _GIVES_FILE or word in _NO_CODE or _GLUED.fullmatch(word)
        if word[:1] == "-" and not is_known:
            return True
        before = word
    return not words or not set(words) <= _NO_CODE


def _as_git(argv: Sequence[str]) -> Sequence[str] | None:
    """The words after git's name, where it is git: `git-grep` is `git grep`."""
    name = argv[0].rpartition("/")[2].casefold()
    if name == "git":
        return argv[1:]
    return (name.removeprefix("git-"), *argv[1:]) if name.startswith("git-") else None


def _git_may_run(words: Sequence[str]) -> bool:
    call = read_git(words)
    options = words[: len(words) - len(call.rest)]
    for at, word in enumerate(options):
        if word == "-c" and not (at + 1 < len(options) and _GIT_HARMLESS.fullmatch(words[at + 1])):
            return True
        if re.fullmatch(r"-c.+|--exec-path=.*|--config-env.*", word, re.DOTALL):
            return True
    pattern = _GIT_RUNS.get(call.name)
    if pattern and any(re.fullmatch(pattern, word, re.DOTALL) for word in (call.name, *call.rest)):
        return True
    if call.name in _GIT_TEXT:
        return False
    return _has_runner(("git", *call.rest)) or holds_code(("git", call.name, *call.rest))


def _is_plain_sed(words: Sequence[str]) -> bool:
    """Whether its scripts are known to run and write nothing."""
    scripts: list[str] = []
    others: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if re.fullmatch(r"-[nErsuz]*e|--expression", word) and rest:
            scripts.append(rest.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word.startswith("-") and word != "-":
            if not _SED_OPTIONS.fullmatch(word):
                return False
        else:
            others.append(word)
    scripts = scripts or others[:1]
    return bool(scripts) and all(_SED_COMMAND.fullmatch(one) for one in scripts)
