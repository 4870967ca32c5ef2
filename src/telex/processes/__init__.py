"""Start a child, own its whole tree, end it. No other package starts or ends a process.

`spawn.start` is the way in: it gives a `child.Child`, which can be waited for and ended. Whoever
starts a child ends it, also after it has exited: what it left in the background is still its tree.
`guardian` sees to it when nobody can, because we were killed.

    spawn        start a child on pipes or on a terminal
    environment  what a child inherits
    child        wait for it; end it
    ending       the ladder: which signal goes to whom, and when the next
    tree         who belongs to a child (pure)
    table        one look at the system's processes; a signal that cannot miss
    guardian     the small process that outlives us by a moment
    ledger       what we leave written for it
    terminal_note  how it is to leave the person's terminal
    reaper       the small process between us and a command, which loses no orphan
    sandbox      what the kernel can hold a child to (`syscall_filter` is a part of it)
    restrict     does that, in the child
    launch       the one call that makes a process

Importing the package imports none of them: the guardian uses all below `child` in this list, and
must start fast and stay small, without asyncio.
"""
