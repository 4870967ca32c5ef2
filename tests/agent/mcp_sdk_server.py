"""An MCP server on the official SDK, for tests of the client: on standard streams, or `made` for an
app in this process."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one pixel."""


def made() -> MCPServer:
    """A server with its tools."""
    server = MCPServer("of the tests", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool()
    def variable(name: str) -> str:
        """Return a variable of the environment."""
        return os.environ.get(name, "(none)")

    @server.tool(name="odd name/with signs")
    def odd() -> str:
        """A tool whose name no model API accepts."""
        return "odd"

    @server.tool(structured_output=False)
    def picture() -> list[Any]:
        """Return a text and an image."""
        return ["a pixel:", Image(data=PIXEL, format="png")]

    @server.tool(structured_output=False)
    def links() -> CallToolResult:
        """Return a link, a resource, and structured content."""
        return CallToolResult(
            content=[
                ResourceLink(
                    type="resource_link",
                    name="notes",
                    uri="file:///notes.txt",
                    description="my notes",
                ),
                EmbeddedResource(
                    type="resource",
                    resource=TextResourceContents(
                        uri="memo://1", text="a memo", mime_type="text/plain"
                    ),
                ),
                TextContent(type="text", text="and a text"),
            ],
            structured_content={"count": 3},
        )

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ValueError("it went wrong")

    @server.tool()
    async def hang(told: str) -> str:
        """Wait for ever, and write into a file what happened."""
        file = Path(told)
        file.write_text("began")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            file.write_text("cancelled")
            raise
        return ""

    @server.tool()
    def die() -> str:
        """End the process in the middle of a call."""
        print("I die now", file=sys.stderr, flush=True)
        os._exit(7)

    @server.tool()
    async def grow(context: Context) -> str:
        """Add a tool, and say that the list has changed."""

        @server.tool(name="late")
        def late() -> str:
            """A tool that was not there at first."""
            return "late"

        await context.session.send_tool_list_changed()  # as servers of the first era say it
        await context.notify_tools_changed()
        return "grown"

    return server


def main() -> None:
    made().run("stdio")


if __name__ == "__main__":
    main()
