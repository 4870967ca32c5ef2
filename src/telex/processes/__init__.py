"""Starts children, tracks their whole process trees, and ends them.

No other package starts or ends a process. `spawn.start` returns a `child.Child`, which can be
awaited and ended. The code that starts a child must also end it, even after the child has exited,
because its descendants may still run. If this process is killed, `guardian` ends the trees instead.

    spawn              start a child on pipes or on a terminal
    child_environment  the environment that a child inherits
    child              wait for a child; end it
    termination        the ladder: which signal is sent to which process, and when the next one
    tree               which processes belong to a child (pure)
    proc               a scan of all processes; signals that cannot hit a recycled pid
    guardian           the small process that outlives this one and ends its trees
    ledger             the shared memory in which the guardian finds the children, and how it
                       restores the person's terminal
    reaper             the small process between us and a command, which adopts all its orphans
    sandbox            the restrictions that the kernel enforces (with `syscall_filter`)
    restrict           applies them, in the child
    launch             the one call that creates a process

Importing the package imports none of them. The guardian imports several of them and must start fast
and stay small, so they do not use asyncio.
"""
