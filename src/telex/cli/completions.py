"""`telex completions`: the completion script of a shell."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from telex.cli.console import say
from telex.cli.root import COMPLETE

# The shells that complete our commands: their scripts, and how each passes the typed words.
#
# bash splits words at colons and equal signs, and replaces only the last piece. So the pieces are
# joined before click sees them, and the part before the last piece is cut off the answers. zsh and
# fish pass whole words.


_BREAKS: Final = frozenset(":=")
_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(
        COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        COMP_LINE="${COMP_LINE-}" COMP_POINT="${COMP_POINT-}" \\
        %(complete_var)s=bash_complete "${1/#\\~/$HOME}"
    )
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    source_template: ClassVar[str] = _BASH

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._shown = ""
        """The part of the word before the piece that bash replaces."""

    def get_completion_args(self) -> tuple[list[str], str]:
        at = int(os.environ["COMP_CWORD"])
        pieces = os.environ["COMP_WORDS"].split("\n")
        words = whole_words(pieces[: at + 1], os.environ.get("COMP_LINE", ""))
        *before, last = [_unquoted(word) for word in words]
        piece = pieces[at] if at < len(pieces) and not _is_break(pieces[at]) else ""
        self._shown = last.removesuffix(_unquoted(piece))
        return before[1:], last

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value.removeprefix(self._shown)}"


def whole_words(pieces: list[str], line: str) -> list[str]:
    """Join bash's pieces to whole words, up to the cursor. `line` shows where blanks are; without a
    line, pieces around a break character are joined."""
    words: list[str] = []
    end, glued = 0, False
    for piece in pieces:
        start = line.find(piece, end)
        apart = not piece or (start > end >= 0 and line[end:start].isspace())
        if words and not apart and (glued or _is_break(piece)):
            words[-1] += piece
        else:
            words.append(piece)
        glued = _is_break(piece)
        end = start + len(piece) if start >= 0 else end
    return words


def _is_break(piece: str) -> bool:
    return bool(piece) and _BREAKS.issuperset(piece)


def _unquoted(word: str) -> str:
    return "".join(split_arg_string(word)) if word else ""


class Fish(FishComplete):
    """Like click's, whose script cuts a line of help at its first comma."""

    source_template: ClassVar[str] = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


SHELLS: Final[dict[str, type[ShellComplete]]] = {
    "bash": Bash,
    "zsh": ZshComplete,
    "fish": Fish,
}
add_completion_class(Bash, "bash")


HELP = """Print the completion script of a shell.

Put it where the shell looks for such files, and start a new shell:

\b
bash   mkdir -p ~/.local/share/bash-completion/completions
       telex completions bash > ~/.local/share/bash-completion/completions/telex
zsh    telex completions zsh > "${fpath[1]}/_telex"
fish   telex completions fish > ~/.config/fish/completions/telex.fish

For bash this needs version 4.4 or newer and the bash-completion package; without the package,
source the file from ~/.bashrc.
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    script = SHELLS[shell](context.find_root().command, {}, "telex", COMPLETE)
    # Not script.source(): for bash it runs bash to ask its version, and the script may be for
    # another computer anyway.
    say(script.source_template % script.source_vars())
