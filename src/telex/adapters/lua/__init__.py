"""Where plugins run: Lua 5.4, one instance to a process, and each such process killable.

A budget of instructions alone cannot hold a plugin: pattern matching counts none. So a plugin runs
where the kernel can end it, in a *worker*: a process that has one Lua, one socket and nothing else.
`WorkerPool` is the way in; a server has one. Workers are forks of the *zygote*, a process that has
Lua ready.

    worker_pool      all instances of a server
    instance         one plugin in one worker: calls in order, deadlines, restarts
    zygote           our side of the zygote: have workers forked and killed, receive how they ended
    worker_socket    a socket in the event loop

and on the other side, in processes where nothing of the server is:

    zygote_process   the zygote: it forks workers and reaps them, and runs no plugin
    zygote_protocol  the records between it and `zygote`
    lua_state        one Lua in a worker: calls in, plain data out
    prelude.lua      what a plugin finds there: an allow-list, guards, and the host's functions
    view.lua         the module `telex.view`, for plugins to require
"""
