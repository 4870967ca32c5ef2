"""`telex completions`: the script that teaches a shell our commands."""

from __future__ import annotations

import click

from telex.cli.console import say
from telex.cli.root import COMPLETE
from telex.cli.shells import SHELLS

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
