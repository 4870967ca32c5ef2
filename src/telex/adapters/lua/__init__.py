"""Where plugins run: Lua 5.4, one instance to a process, and each such process killable.

A budget of instructions alone cannot hold a plugin: pattern matching counts none. So a plugin runs
where the kernel can end it, in a *worker*: a process that has one Lua, one socket and nothing else.
`Nursery` is the way in; a server has one.

    nursery    all instances of a server
    instance   one plugin in one worker: calls in order, deadlines, another worker after a failure
    forks      our side of the helper process, which makes workers and tells how they ended
    wire       a socket in the event loop
    problems   what can go wrong, as an exception with a kind

and on the other side, in processes where nothing of the server is:

    process      the helper: it forks workers and reaps them, and runs no plugin
    records      what it and `forks` say to each other
    chamber      one Lua in a worker: calls in, plain data out
    prelude.lua  what a plugin finds there: an allow-list, guards, and the host's functions
"""
