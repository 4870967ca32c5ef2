"""Write a plugin in Python: functions with a decorator, and `run`.

    from typing import Annotated

    from telex.plugins.sdk import CommandCall, Plugin

    plugin = Plugin("greet", version="1")

    @plugin.command()
    def hello(call: CommandCall, name: Annotated[str, "whom to greet"] = "world") -> None:
        \"\"\"Say hello.\"\"\"
        print(f"Hello, {name}!")

    plugin.run()

The parameters of a command or a task are its configuration, with their types, defaults and
descriptions; the parameters of a tool are its arguments. If the first parameter has a `Call` type,
it receives the call. `async def` functions run in the event loop, `def` functions in a thread.

    plugin       `Plugin` and `Group`: decorators for commands, tasks and tools, and `run`
    calls        the call that a function serves, and the exceptions it may raise
    signature    a function's parameters as configuration and as JSON Schema (pure)
    server       the protocol's methods, and the process that serves them; `plugin_logs` of
                 `telex.plugins` sends records of the `logging` module

A plugin's author needs nothing else of telex. The host's side is `telex.plugins.client`.
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
