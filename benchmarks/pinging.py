"""The plugins' other end: answers `ping`, by the SDK or by pygls, until it is left.

python -m benchmarks.pinging sdk | pygls
"""

from __future__ import annotations

import sys


def by_the_sdk() -> None:
    from telex.plugins.sdk import Plugin

    plugin = Plugin("pinging")

    @plugin.tool()
    async def ping() -> dict[str, int]:
        return {}

    @plugin.tool()
    def ping_in_a_thread() -> dict[str, int]:
        return {}

    plugin.run()


def by_pygls() -> None:
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("pinging", "1")

    @server.feature("ping")  # type: ignore[untyped-decorator]  # pygls is not always installed
    def ping(_: object, __: object) -> dict[str, int]:
        return {}

    server.start_io()


if __name__ == "__main__":
    {"sdk": by_the_sdk, "pygls": by_pygls}[sys.argv[1]]()
