"""The command `telex`, and `python -m telex`.

A verb goes to the server without importing the command line, which takes several times as long; so
do the messages of `telex mcp`.
"""

import sys

VERBS = frozenset(
    "open see type press paste click wait do list resize signal close".split()  # noqa: SIM905
)


def main() -> int:
    """Run the command line of this process and return its exit code."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in VERBS and not asks_for_help(arguments):
        from telex.server.verb_client import run

        try:
            return run(arguments)
        except Exception as error:  # noqa: BLE001  Python would print a traceback
            from telex.cli import end_command

            return end_command(error)
    if arguments == ["mcp"]:
        from telex.server.mcp_relay import run as carry

        return carry()
    from telex.cli import main as command_line

    return command_line()


def asks_for_help(arguments: list[str]) -> bool:
    """Whether the help of a command is asked for, and not that of a program after `--`."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in own or own[-1:] == ["-h"]


if __name__ == "__main__":
    sys.exit(main())
