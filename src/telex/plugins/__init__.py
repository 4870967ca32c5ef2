"""Plugins: executables in any language that speak JSON-RPC over standard input and output.

Not the plugins of `telex.adapters`: those are Lua sources that run in worker processes of a server.

How a call travels: `PluginTools.call` finds the plugin of the tool, `PluginSupervisor.call` starts
the plugin if it does not run, `RunningPlugin.call` enforces the deadline, and `rpc.Peer.call`
sends the request. A process is started by `RunningPlugin._spawn`. It is ended by
`PluginShutdown`, called by the owner task of `client`, which `RunningPlugin.close` signals.

The protocol:
    protocol          method names, parameters, results and error codes of both generations
    sdk/              the server's side: write a plugin in Python
    client            the host's side: one plugin started, called and ended
    errors            exceptions, whose messages name the plugin
Find plugins and decide which may run:
    discovery         executables in the plugin directories, checked and not run; and which plugins
                      of a project the person trusts
    ownership         whether another user could have written a plugin
    plugin_manifest   a plugin's `manifest.json`; `validation` names the problem of a field
Run one plugin:
    plugin_process    process, pipes, standard error; its end: requests, signals, deadlines
    handshake         the first requests, normalized for both generations
    dialect           the plugin's JSON-RPC, and the faults in its output, counted and limited
    plugin_logs       `log` notifications as records of a logger, and the reverse
    plugin_settings   environment, callbacks and deadlines that the host gives
    restrictions      Landlock rules for a plugin, on Linux; `shim` applies them
Run several plugins over time:
    supervisor        start on demand, restart with backoff, stop when idle
Use a plugin:
    config_values     the values that a plugin takes, by source
    plugin_commands   choose a command and run it
    plugin_tasks      validate all tasks, then run them; `task_plan` is the file and the order
    plugin_tools      the tools of all plugins, for an agent
For authors:
    skeleton          a plugin to start with, in three languages
    check/            a conformance check for any executable
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["sdk"]
"""The only public module; everything else here is private."""


def __getattr__(name: str) -> Any:
    if name != "sdk":
        raise AttributeError(f"module 'telex.plugins' has no attribute {name!r}")
    return importlib.import_module("telex.plugins.sdk")


def __dir__() -> list[str]:
    return __all__
