"""Write a plugin in Python: functions with a decorator, and `run`.

    from typing import Annotated

    from telex.plugins.sdk import CommandCall, Plugin

    plugin = Plugin("greet", version="1")

    @plugin.command()
    def hello(call: CommandCall, name: Annotated[str, "whom to greet"] = "world") -> None:
        \"\"\"Say hello.\"\"\"
        print(f"Hello, {name}!")

    plugin.run()

What a function takes is what the host asks for: the parameters of a command or a task are its
configuration (with their types, defaults and words), those of a tool its arguments. A first
parameter of a `Call`'s type gets the call. `async def` runs in the event loop, `def` in a thread.

    plugin       `Plugin` and `Group`: what a plugin gives, and `run`
    calls        what a function may know of the call it serves, and what it raises
    signature    a function's parameters as configuration and as JSON Schema (pure)
    server       the protocol's methods, and the process they are answered in
    log_handler  the `logging` module's records as `log` notifications

Nothing else of telex need be known to a plugin's author. The other side is `telex.plugins.client`.
"""

from telex.plugins.protocol import Flag
from telex.plugins.sdk.calls import Call, CommandCall, Failed, InvalidConfig, TaskCall, ToolCall
from telex.plugins.sdk.plugin import Group, Plugin

__all__ = [
    "Call",
    "CommandCall",
    "Failed",
    "Flag",
    "Group",
    "InvalidConfig",
    "Plugin",
    "TaskCall",
    "ToolCall",
]
