"""Plugins: executables in any language, which speak JSON-RPC with us over their standard input and
output. `protocols/plugin_v0.py` is the protocol as data.

Not the plugins of `telex.adapters`, which are Lua inside a server and never processes of their own.

Which there are:
    finding      executables in the plugin directories, looked at and not run
    manifest     a plugin's `manifest.json`; `fields` says what is wrong with it
    trust        whether a project's own may be run
One that runs:
    plugin       started, introduced, asked, ended; one task owns it
    process      its process and its pipes
    talk         the conversation: calls, progress, log, mistakes
    hearing      how it is heard, and what it does wrong
    handshake    the beginning of the conversation
    introducing  what it says of itself, the same for both generations
    logs, stderr what it says unasked
    settings     what the host gives it, and how long each step may take
    problems     what can be wrong, in sentences that name it
    restricting  what it is kept from, where Linux can see to it; `shim` does it
Several, over time:
    keeper       started on demand, restarted with care, stopped when idle
    keepers      a host's plugins by name, none of which touches another
    window       how often something happened lately
What they give:
    values       the values they take, by where each comes from
    commands     one is chosen and run
    tasks        all looked at, then run as they need; `task_plan` is the file, `graph` the order
    tools        of all plugins, for whoever works for a language model
    content      what was answered, as text
For authors:
    sdk          write one in Python
    skeleton     one to begin with, in three languages
    checking     how well any executable does
"""
