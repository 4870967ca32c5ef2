"""Adapters: plugins in Lua that name the state of a program's screen, and drive the program.

A *plugin* is a manifest and Lua sources; an *adapter* is a plugin bound to one live terminal
session. A plugin returns the state that a screen shows, the keys of an intent, and the condition to
wait for. It receives text and returns data, in a process of its own, and can do only what its
manifest permits. `lua/__init__` describes how such a process starts and ends.

Not the terminal, which is `telex.terminal` and knows nothing of plugins; not the plugins of
`telex.plugins`, which are executables that speak JSON-RPC.

The protocol:
    protocol            parameters and results of `adapter.*` and `plugin.*`
    server              their handlers, and `AutomationServer`, which joins all parts
    client, sync        `telex.adapt`, asynchronous and blocking
    errors              exceptions, and their codes on the wire
A plugin:
    manifest            a manifest as data, and every problem of a manifest
    lua_plugin          a plugin's files, read once and completely
    plugin_registry     the plugins of a server by name, and the directories to search
    plugin_permissions  checks of the permissions in a manifest
    builtin/            the plugins that are part of telex, each with its fixtures
Running it:
    lua/                a worker process for each instance
    context             the table of values that is passed to a plugin
    classification      calls of `classify` and `describe`; readers of states, plans, matchers
Using it:
    adapter             a plugin on a session; all adapters of a server
    predicates          the `lua` matcher: a plugin's function as a condition in any wait
    terminal_spawn      `telex.spawn`, with that matcher
    fixtures, skeleton/ for authors: screens with expected states; a plugin to start with
"""
