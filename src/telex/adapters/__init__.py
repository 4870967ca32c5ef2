"""Adapters: plugins in Lua that know what a program's screen means, and how to drive it.

A *plugin* is a manifest and Lua sources; an *adapter* is a plugin bound to one live terminal
session. A plugin says which state a screen shows, which keys an intent takes, and what to wait for.
It sees text and answers data, in a process of its own, and can do no more than its manifest says.

Not the terminal, which is `telex.terminal` and knows nothing of plugins; not the plugins of
`telex.plugins`, which are programs that speak JSON-RPC with us.

What a plugin is:
    manifest        a manifest as data, and every problem with one
    sources         a plugin read from the disk, once and whole; `beneath` opens its files
    registry        the plugins a server has, by name; `finding` is for what a person types
    permissions     what a manifest allows
    builtin/        the plugins that come with telex, each with its fixtures
Where it runs:
    lua/            a worker process for each instance, and what can go wrong there
    context         what a plugin is shown
    classification  what it answers, made into states, plans and matchers
What uses it:
    adapter, live   a plugin and its session; all of a server's
    predicates      the `lua` matcher: a plugin's yes or no within any wait
    service, plugin_service, problems    `adapter.*` and `plugin.*` on the wire
    server          all of it put together
For those who write one:
    asking, watching    what it says of a moment, and of a session while that goes on
    fixtures, fixture_files, skeleton/
"""
