"""Adapters: plugins in Lua that know what a program's screen means, and how to drive it.

A *plugin* is a manifest and Lua sources; an *adapter* is a plugin bound to one live terminal
session. A plugin says which state a screen shows, which keys an intent takes, and what to wait for.
It sees text and answers data, in a process of its own, and can do no more than its manifest says.

Not the terminal, which is `telex.terminal` and knows nothing of plugins; not the plugins of
`telex.plugins`, which are programs that speak JSON-RPC with us.

The protocol:
    protocol            parameters and results of `adapter.*` and `plugin.*`
    server              their handlers, and `AutomationServer`, all of it put together
    client, sync        `telex.adapt`, and its blocking twin
    errors              exceptions, and their codes on the wire
What a plugin is:
    manifest            a manifest as data, and every problem with one
    lua_plugin          a plugin read from the disk, once and whole
    plugin_registry     the plugins a server has, by name, and where they are found
    plugin_permissions  what a manifest allows a plugin to do and to show
    builtin/            the plugins that come with telex, each with its fixtures
Where it runs:
    lua/                a worker process for each instance
    context             the table of values that a plugin is shown
    classification      `classify` and `describe` called; answers read into states, plans, matchers
What uses it:
    adapter             a plugin and its session; all adapters of a server
    predicates          the `lua` matcher: a plugin's yes or no within any wait
    terminal_spawn      `telex.spawn`, with that matcher
    fixtures, skeleton/ for authors: screens with what is expected of them; a plugin to begin with
"""
