"""Find commands and code among the arguments of another command. Pure.

`sudo rm x`, `split --filter='rm x'` and `git -c alias.y='!rm x' y` all run rm, and no list of the
programs that run others would be complete. So the words of a rule that denies or asks are searched
in all arguments of a command, also inside an argument, unless the program is known to run none of
them. That finds too much (a commit message that mentions rm) rather than too little.
`may_be_rule_command` finds commands that may run the rule's command without showing its words: an
alias of git, or words that come from a pipe.

Code can spell a command in other ways: `g=gi; ${g}t push`. No list of the programs that run code
would be complete either, so this module lists the programs that are known to run none of their
arguments, and the options whose value is only text. An argument of any other program counts as code
if it has a character with which code could compute a name. The content of files is not checked:
`python3 x.py` may do anything.

`git-push` means `git push`, and an alias that git gets with `-c` means its value. Any other word
that is not a command of git may be an alias from some configuration, so its effect is not known.
Git itself refuses aliases with the name of a command. Used by `command_rules` and `shell_commands`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from telex.agent.permissions.read_only_programs import SHELLS, program_name, word_set
from telex.agent.permissions.reader_environment import ACTING
from telex.agent.permissions.repeatable import runs_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


GIT_COMMANDS: Final = word_set("""
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
GIT_EQUIVALENTS: Final = {
    name: word_set(others)
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
"""Commands that can do the same as another one. A word that is not a command of git itself
(`remote-https`) is unknown, and asks anyway."""
_GIT_WITH_VALUE: Final = word_set("""
    -C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env
""")
_MOST_ALIASES: Final = 10
"""Aliases that are expanded one after another; an alias for itself ends here."""


@dataclass(frozen=True, slots=True)
class GitCall:
    """A call of git, with aliases from the command line expanded."""

    name: str
    """The subcommand; empty if there is none."""
    rest: tuple[str, ...]
    runs: str = ""
    """The shell text of an alias that begins with `!`."""

    @property
    def is_known(self) -> bool:
        return self.name in GIT_COMMANDS or self.name == ""


def parse_git_call(words: Sequence[str]) -> GitCall:
    """Parse the words after `git`, and expand aliases that are given with `-c`."""
    aliases: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 2 if option in _GIT_WITH_VALUE else 1
        if option == "-c" and at <= len(words):
            key, _, value = words[at - 1].partition("=")
            section, _, name = key.partition(".")
            if section.lower() == "alias":
                aliases[name.removesuffix(".command")] = value
    call = GitCall(words[at], tuple(words[at + 1 :])) if at < len(words) else GitCall("", ())
    for _ in range(_MOST_ALIASES):
        if call.is_known or call.name not in aliases:
            break
        value = aliases[call.name]
        if value.startswith("!"):
            return GitCall(call.name, call.rest, runs=value[1:])
        first, *more = value.split() or [""]
        call = GitCall(first, (*more, *call.rest))
    return call


_COMPUTES: Final = frozenset("$`;|&!()'\"\\\r\n")
_EXPANDS: Final = frozenset("*?[]{}<>~")
"""A pattern or braces form a command only if the argument has several words."""
_FROM_PIPE: Final = re.compile(
    r"-|-[A-Za-z]+-|-.*=-|(?:.*=|-[A-Za-z]+)?/(?:dev/(?:stdin|fd)|proc)\b.*", re.DOTALL
)
"""Arguments with which a program may read code from a pipe: `make -f-`."""
_MOST_PROGRAMS: Final = 32
"""Words of one command that may be programs with options of their own; with more, it asks."""
_QUOTING: Final = re.compile(r"['\"\\]")
_BETWEEN: Final = re.compile(r"[\s'\"\\`$(){}\[\];|&<>=,:!]+")
_SYSTEM: Final = re.compile(r"(?:/usr)?/s?bin/|/usr/local/bin/")
"""The directories of the system's programs; `./grep` is another program."""

_RUN_NO_WORDS: Final = word_set("""
    [ b2sum base32 base64 basename cat chgrp chmod chown cksum cmp column comm cp csplit curl cut
    date df diff dirname du echo egrep expand false fgrep file fmt fold getent grep head hexdump
    hostname id join jq kill ln ls lsof md5sum mkdir mkfifo mktemp mv nl nproc numfmt od paste
    pathchk pgrep pidof ps pwd readlink realpath rev rm rmdir seq sha1sum sha224sum sha256sum
    sha384sum sha512sum shuf sleep sort stat strings sum tac tail tee test touch tr tree true
    truncate tsort tty uname unexpand uniq unlink wc which whoami xxd yes fd fdfind find rg
""")
"""Programs that run none of their arguments, except for the options in `_CODE_OPTIONS`."""
_CODE_OPTIONS: Final = {
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
"""Options and words with which a program runs their value or its input. The patterns also match
abbreviations."""
_BUNDLED: Final = word_set("tar gtar bsdtar")
"""Programs whose first argument is a group of options, also without a dash."""
_ONLY_TEXT: Final = {
    "gh": word_set("--title --body"),
    "go": word_set("-run -bench -skip --run --bench --skip"),
    "hg": word_set("-m --message"),
    "jest": word_set("-t --testNamePattern"),
    "jj": word_set("-m --message"),
    "pytest": word_set("-k -m"),
    "svn": word_set("-m --message"),
    "vitest": word_set("-t --testNamePattern"),
}
"""Options whose value the program never runs."""

_ALWAYS: Final = word_set("""
    at batch chroot crontab ed entr expect flock nsenter parallel runuser script ssh su unshare
    watch xargs systemd-run start-stop-daemon socat ncat
    ex gvim gview nvim rgvim rview rvim vi view vim vimdiff emacs emacsclient jed joe kak micro
    cgdb gdb lldb radare2
    duckdb mariadb mongo mongosh mysql psql sqlite sqlite3 sqlplus
    screen tmux zellij dtach abduco
    dc gnuplot m4 maxima gs
    less more most mutt mailx ansible
""")
"""Programs that run commands from their arguments in many ways, or read them from their input."""
_NAME_TASKS: Final = word_set("""
    apt apt-get brew bun cargo dnf docker dotnet go gmake gradle grunt gulp just kubectl lerna make
    man mix mvn ninja npm nx pip pnpm poetry rake service systemctl task tox turbo uv yarn
""")
"""Programs whose arguments are names of tasks, packages and containers: `npm run watch` does not
run the program `watch`."""
_INTERPRETERS: Final = word_set("""
    python pypy ipython bpython jython micropython perl ruby jruby irb pry node nodejs deno bun php
    php-cgi hhvm lua luajit luau texlua tclsh wish osascript pwsh powershell Rscript R littler guile
    elixir iex erl escript octave octave-cli matlab scilab ghc ghci runghc runhaskell raku rakudo
    perl6 groovy groovysh scala scala-cli amm kotlin clojure clj bb jshell jrunscript jjs rhino
    julia ocaml utop sbcl clisp ecl ccl abcl racket scheme mit-scheme csi gosh chibi-scheme gforth
    swipl gprolog yap newlisp picolisp janet fennel coffee ts-node tsx nu xonsh elvish osh
    wolframscript qjs quickjs d8 mujs hermes
""")
_GIVES_FILE: Final = word_set(
    "-i -I -u -B -s -S -E -W -X -O -OO -q -w -v -b -d -x --check --harmony"
)
"""Options of interpreters after which a script file may still follow. Other options may be code."""
_WITH_VALUE: Final = word_set("-W -X -I")
_GLUED: Final = re.compile(r"-[WXI].+")
_NO_CODE: Final = word_set("-V -h -v --help --version -version --test")
"""Options with which, alone, an interpreter reads no code."""
_AWK: Final = word_set("awk gawk mawk nawk goawk frawk")

_GIT_TEXT: Final = word_set("""
    add am annotate apply blame branch cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry cherry-pick clean commit commit-tree
    count-objects describe diff diff-files diff-index diff-tree for-each-ref format-patch fsck gc
    grep hash-object init log ls-files ls-tree merge merge-base merge-file merge-tree mv name-rev
    notes range-diff read-tree reflog reset restore rev-list rev-parse revert rm shortlog show
    show-branch show-ref sparse-checkout stage stash status stripspace switch symbolic-ref tag
    update-index update-ref var version worktree write-tree
""")
"""Commands of git that run none of their arguments."""
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
"""Settings after `-c` that make git run nothing. `parse_git_call` handles aliases."""

_SHELL_RUNS: Final = word_set("eval source . exec trap")
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
"""Shell builtins, and the arguments with which they run a command or define a name for one."""
_SHELL_SETS: Final = word_set("""
    declare export getopts let local mapfile printf read readarray readonly typeset unset
""")
"""Shell builtins that set a variable named by an argument."""
_PROGRAMS_BY: Final = re.compile(
    rf"PATH|HOME|XDG_CONFIG_\w+|BASH_ALIASES|BASH_CMDS|(?!GIT_(?:AUTHOR|COMMITTER)_)(?:{ACTING.pattern})"
)
"""Variables that change which program a name means, or which program another one runs."""

_SED_COMMAND: Final = re.compile(
    r"(?:(?:[0-9]+|\$|/[^/\n\\;{}]*/)(?:,(?:\+?[0-9]+|\$|/[^/\n\\;{}]*/))?)?!?"
    r"(?:[dpq=]|s([/|#,@:])(?:(?!\1)[^\n\\]|\\[^\n])*\1(?:(?!\1)[^\n\\]|\\[^\n])*\1[gIipM0-9]*)"
)
"""A sed command that runs and writes nothing: no `e` and no `w`, and no flags with these names."""
_SED_OPTIONS: Final = re.compile(
    r"-[nErsuz]*(?:i[.~\w]*)?|--quiet|--silent|--regexp-extended|--in-place(?:=[.~\w]*)?|--posix"
)


def may_run_code(argv: Sequence[str]) -> bool:
    """Return whether a command may run code from its arguments or its input."""
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
    """Return whether a shell builtin runs a command, or changes which program a later name
    means."""
    words = list(argv)
    while len(words) > 1 and (words[0] in ("builtin", "command") or words[0].startswith("-")):
        words.pop(0)
    name, rest = words[0], words[1:]
    if name in _SHELL_RUNS:
        return True
    pattern = _SHELL_NAMES.get(name)
    if pattern and any(re.fullmatch(pattern, word, re.DOTALL) for word in rest):
        return True
    sets = name in _SHELL_SETS
    return any(
        _PROGRAMS_BY.fullmatch(found[1]) is not None
        for word in rest
        if (found := re.match(r"-?v?(\w+)(?:\[[^=]*)?(\+?=|\Z)", word)) and (sets or found[2])
    )


def holds_code(argv: Sequence[str], after: int = 1) -> bool:
    """Return whether one of the words from `after` on may be code that the program runs."""
    name = _name(argv[0])
    if runs_no_word(argv) or runs_nothing((name, *argv[1:])):
        return False
    git = _as_git(argv)
    if git is not None and parse_git_call(git).name in _GIT_TEXT:
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
    """Return whether the program is known to run none of its arguments, with these options."""
    name = _name(argv[0])
    return name in _RUN_NO_WORDS and not _has_code_option(name, argv[1:])


def _name(program: str) -> str:
    """Return the bare name of a program of the system; any other program keeps its path."""
    found = _SYSTEM.match(program)
    return program[found.end() :] if found else program


def _has_code_option(name: str, words: Sequence[str]) -> bool:
    pattern = _CODE_OPTIONS.get(program_name(name))
    if pattern is None or not words:
        return False
    first = "-" + words[0] if program_name(name) in _BUNDLED and "." not in words[0] else words[0]
    return any(re.fullmatch(pattern, word, re.DOTALL) for word in (first, *words))


def _has_runner(argv: Sequence[str]) -> bool:
    """Return whether any word is a shell, a program that runs its input, or an interpreter without
    a script file. All words count, because any program may run another."""
    names_tasks, checked = program_name(argv[0]) in _NAME_TASKS, 0
    for at, word in enumerate(argv):
        name, rest = program_name(word), argv[at + 1 :]
        if any(program_name(part) in SHELLS for part in split_embedded_words(word)):
            return True
        if {name, word.rpartition("/")[2]} & _ALWAYS and not (at and names_tasks):
            return True
        if name in _AWK and not any(option.startswith("-f") for option in rest):
            return True
        if {name, word.rpartition("/")[2]} & _INTERPRETERS and _is_given_code(rest):
            return True
        if at and name in _CODE_OPTIONS:
            checked += 1
            if checked > _MOST_PROGRAMS or _has_code_option(name, rest):
                return True
    return False


def split_embedded_words(word: str) -> Iterator[str]:
    """Yield a word, and the words that it may contain: split without its quotes, and at them."""
    yield word
    for text in (_QUOTING.sub("", word), word):
        for part in filter(None, _BETWEEN.split(text)):
            yield part
            if re.match(r"-[A-Za-z].", part):
                yield part[2:]  # an option's value, as in `env -Srm`


def _is_given_code(words: Sequence[str]) -> bool:
    """Return whether an interpreter with these arguments runs code from them or from its input, and
    not a file. A module (`-m`) counts as a file; its arguments are checked like those of any
    program."""
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
    """Return the words after `git`, or None if the program is not git. `git-grep` is `git grep`."""
    name = argv[0].rpartition("/")[2].casefold()
    if name == "git":
        return argv[1:]
    return (name.removeprefix("git-"), *argv[1:]) if name.startswith("git-") else None


def _git_may_run(words: Sequence[str]) -> bool:
    call = parse_git_call(words)
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
    """Return whether the sed scripts are known to run and write nothing."""
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
    return bool(scripts) and all(_SED_COMMAND.fullmatch(script) for script in scripts)


_ALSO_GIT: Final = word_set("dulwich gix got hub")
"""Programs that do the same as git, with the same or other arguments."""
_MOST_GITS: Final = 32
"""Words of one command that may be git; with more, the command may be restricted."""


def embeds_rule_words(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether the rule's words appear in this order somewhere after the program's name."""
    return _appear_in(rule, [part for word in argv[1:] for part in split_embedded_words(word)])


def is_rule_command(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether the command's program is the rule's first word, and the rule's other words
    follow in order."""
    return any(_begins(rule, form) for form in _forms(argv))


def may_be_rule_command(rule: Sequence[str], argv: Sequence[str]) -> bool:
    """Return whether the command may run the rule's command without showing its words."""
    if rule[0].casefold() != "git" or len(rule) < 2:
        return False
    seen = 0
    for at, word in enumerate(argv):
        name = word.rpartition("/")[2].casefold()
        if program_name(name) in _ALSO_GIT:
            return True
        if name == "git" or name.startswith("git-"):
            # `git-send-pack` is `git send-pack`.
            subcommand = (name.removeprefix("git-"),) if name != "git" else ()
            call = parse_git_call((*subcommand, *argv[at + 1 :]))
            seen += 1
            if (
                seen > _MOST_GITS
                or not call.is_known
                or call.name in GIT_EQUIVALENTS.get(rule[1], ())
            ):
                return True
    return False


def text_has_rule_words(rule: Sequence[str], text: str) -> bool:
    """Return whether all words of the rule are in the text, in any order, because a pipe may
    reorder them."""
    words = list(split_embedded_words(text))
    has_program = any(_is_program(rule[0], word) for word in words)
    return has_program and set(rule[1:]) <= set(words)


def _forms(argv: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the command, and the same command under its other names."""
    yield argv
    # `git-push` is in git's own directory; `docker-compose` is `docker compose`.
    name = argv[0].rpartition("/")[2]
    if "-" in name.strip("-"):
        yield (*name.split("-", 1), *argv[1:])
        yield (*name.split("-"), *argv[1:])
    if _is_program("git", argv[0]):
        call = parse_git_call(argv[1:])
        yield ("git", *(split_embedded_words(call.runs) if call.runs else (call.name,)), *call.rest)
        yield (f"git-{call.name}", *call.rest)


def _begins(rule: Sequence[str], argv: Sequence[str]) -> bool:
    return _is_program(rule[0], argv[0]) and _appear_in_order(rule[1:], argv[1:])


def _appear_in(rule: Sequence[str], words: Sequence[str]) -> bool:
    parts = [part for word in words for part in (word, *_split_dashed(rule[0], word))]
    starts = (at for at, word in enumerate(parts) if _is_program(rule[0], word))
    first = next(starts, None)
    return first is not None and _appear_in_order(rule[1:], parts[first + 1 :])


def _split_dashed(name: str, word: str) -> Sequence[str]:
    """Split `git-push` into two words, for a rule about git."""
    program, dash, rest = word.rpartition("/")[2].partition("-")
    return (program, rest) if dash and program.casefold() == name.casefold() else ()


def _is_program(name: str, word: str) -> bool:
    """Compare without case, because some file systems ignore it."""
    return name.casefold() in (word.casefold(), word.rpartition("/")[2].casefold())


def _appear_in_order(rule: Sequence[str], words: Sequence[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in rule)
