"""Plugins: executables in any language, which speak JSON-RPC with us over their standard input and
output.

Not the plugins of `telex.adapters`, which are Lua inside a server and never processes of their own.

The protocol:
    protocol          method names, parameters, results and error codes of both generations
    sdk/              the server's side: write a plugin in Python
    client            the host's side: one plugin started, introduced, called, ended
    errors            what can be wrong, in sentences that name the plugin
Which there are:
    discovery         executables in the plugin directories, looked at and not run
    ownership         whether another user could have written one
    project_trust     whether a project's own may be run
    plugin_manifest   a plugin's `manifest.json`; `validation` names what is wrong with a field
One that runs:
    plugin_process    its process, its pipes, its standard error
    conversation      calls, progress, log, and its mistakes, counted
    dialect           its JSON-RPC, and what of its output is wrong
    handshake         the start of the conversation, normalized for both generations
    plugin_logs       `log` notifications as records of a logger
    plugin_settings   what the host gives it, and how long each step may take
    restrictions      what it is kept from, where Linux can do that; `shim` applies it
Several, over time:
    supervisor        started on demand, restarted with care, stopped when idle
What they give:
    config_values     the values they take, by where each comes from
    plugin_commands   one is chosen and run
    plugin_tasks      all validated, then run as they need; `task_plan` is the file and the order
    plugin_tools      of all plugins, for an agent
For authors:
    skeleton          one to begin with, in three languages
    check/            how well any executable does
"""
