"""Runs plugins in Lua 5.4: one plugin instance in one process, which the server can kill.

A budget of instructions is not enough to stop a plugin, because pattern matching counts none. So a
plugin runs in a *worker*: a process with one Lua state and one socket, which the kernel can end.
Workers are forks of the *zygote*, a process that has Lua loaded. A server has one `WorkerPool`.

How a worker starts, at the first call of an instance:

    Instance._start_worker                  in the server
    WorkerPool._start_worker                starts the zygote if none runs (`Zygote.__init__`)
    Zygote.start_worker                     sends a FORK record and one end of a socket pair
    zygote_process.ZygoteLoop._fork_worker  in the zygote: `os.fork`
    zygote_process._run_worker              in the worker: limits, then one call after the other
    LuaState.load, LuaState.call            the plugin's code

How a worker ends: `Instance` kills it when a call fails or exceeds its deadline, by `Worker.kill`,
which sends a KILL record; the zygote reaps it and reports. A worker also ends when its socket
closes or the zygote exits.

In the server:
    worker_pool      all instances of a server; starts the zygote, starts and kills workers by it
    instance         one plugin in one worker: calls in order, deadlines, restarts; its socket
In the zygote and the workers, which import nothing else of the server:
    zygote_process   the zygote, which forks and reaps workers and runs no plugin; and a worker
    zygote_protocol  the records between `worker_pool` and `zygote_process`
    lua_state        one Lua state in a worker: JSON values in and out
    prelude.lua      the environment of a plugin: an allow-list, guards, and the host's functions
    view.lua         the module `telex.view`, for plugins to require
"""
