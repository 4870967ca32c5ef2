"""`telex run`: a program in this terminal, as if telex were not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from telex.cli import completion_candidates
from telex.cli.address import read_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from telex.escapes.policy import Policy
    from telex.passthrough.escape_filter import EscapeOptions, ExtraListener, PageOptions
    from telex.passthrough.joined_terminals import RunWitness

HELP = """Run a program in this terminal, as if telex were not there.

The program gets a terminal of its own, of the same size and kind, and everything typed here. Its
exit code is telex's; a program ended by signal N gives 128+N. A program that does not exist gives
127, one that cannot be run 126.

Without a command it is your shell: SHELL, else that of your account, else /bin/sh.

When the program ends, what it left running in the background ends with it.

Without a terminal it is a filter: stdin is typed into the program's terminal, its end is Ctrl-D,
and what the program shows goes to stdout.

The program can use JSON terminal escapes, as if this terminal understood them. telex asks for your
consent on the last row before the program reads the clipboard, for example; --policy names a TOML
file with rules that answer for you. TELEX_SOCKET has the path of a socket with the same commands,
and --door opens an HTTP listener at /rpc/escapes, whose token is printed first.

The program can also show a page in your browser, through this terminal and any ssh between (HTTY).
telex asks before a command shows its first page. Where no browser can be opened, the address is
printed.

\b
  telex run
  telex run -- vim notes.txt
  telex run -- ls --color=auto | less -R
"""

program = click.argument(
    "program",
    metavar="-- COMMAND [ARGUMENT]...",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    shell_complete=completion_candidates.programs,
)


def _or_shell(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if given:
        return given
    from telex.passthrough.person_terminal import person_shell

    return (person_shell(),)


program_or_shell = click.argument(
    "program",
    metavar="[-- COMMAND [ARGUMENT]...]",
    nargs=-1,
    callback=_or_shell,
    type=click.UNPROCESSED,
    shell_complete=completion_candidates.programs,
)
"""A command, or without one the person's shell."""


def _doors(
    _: click.Context, __: click.Parameter, given: tuple[str, ...]
) -> tuple[ExtraListener, ...]:
    return tuple([_door(one) for one in given])


def _door(given: str) -> ExtraListener:
    kind, _, at = given.partition("=")
    if kind != "http":
        raise click.BadParameter(f"{given!r} is not http=HOST:PORT, as in http=127.0.0.1:8024")
    from telex.cli.http_listener import serve_http

    address = read_address(at)
    return lambda converse: serve_http({"escapes": converse}, address, False)


def _policy(_: click.Context, __: click.Parameter, given: Path | None) -> Policy | None:
    if given is None:
        return None
    from telex.escapes.policy import BadPolicy, Policy

    try:
        return Policy.parse(given.read_text("utf-8"), str(given))
    except (BadPolicy, OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error)) from error


@click.command(help=HELP, context_settings={"allow_interspersed_args": False})
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_policy,
    help="Rules for what the program may do by JSON escapes.",
)
@click.option(
    "--door",
    "doors",
    metavar="http=HOST:PORT",
    multiple=True,
    callback=_doors,
    help="Serve the same commands at /rpc/escapes.",
)
@click.option(
    "--no-escapes", is_flag=True, help="Pass JSON escapes on like other output; no pages."
)
@click.option(
    "--open",
    "opens",
    type=click.Choice(["always", "ask", "never"]),
    default="ask",
    show_default=True,
    help="Whether to open pages in your browser. With never, the address is printed, and the page "
    "is served once you open it.",
)
@click.option("--no-pages", is_flag=True, help="Do not let the program show pages.")
@click.option(
    "--gateway-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port for pages on 127.0.0.1; by default any free port.",
)
@click.option(
    "--htty-eager",
    is_flag=True,
    help="Send the first HTTY bytes, invisibly, to every program that reads single keys.",
)
@program_or_shell
def command(
    program: tuple[str, ...],
    policy: Policy | None,
    doors: tuple[ExtraListener, ...],
    no_escapes: bool,
    opens: str,
    no_pages: bool,
    gateway_port: int,
    htty_eager: bool,
) -> int:
    from telex.passthrough.escape_filter import EscapeOptions, PageOpening, PageOptions

    if no_escapes and (policy or doors):
        raise click.UsageError("--no-escapes excludes --policy and --door")
    if no_escapes:
        return hosted(program)
    pages = None if no_pages else PageOptions(PageOpening(opens), gateway_port, htty_eager)
    return hosted(program, escapes=EscapeOptions(_with_pages(policy, pages), doors, pages))


def _with_pages(policy: Policy | None, pages: PageOptions | None) -> Policy | None:
    """Apply --open where no rule of the person is about pages. With never, a page may be offered:
    opening its address is the consent."""
    from telex.passthrough.escape_filter import PageOpening

    if pages is None or pages.open is PageOpening.ASK:
        return policy
    from telex.escapes.policy import Policy, PolicyRule, PolicyVerdict

    rules = () if policy is None else policy.rules
    return Policy((*rules, PolicyRule("page:open", "*", PolicyVerdict.ALLOW)))


def hosted(
    program: tuple[str, ...],
    witness: Callable[[], RunWitness] | None = None,
    escapes: EscapeOptions | None = None,
) -> int:
    """Run a program, and return its exit code."""
    from telex.passthrough.program_run import run

    return run(program, witness=witness, escapes=escapes)
