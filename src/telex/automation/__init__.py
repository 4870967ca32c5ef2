"""The automation protocol: sessions on terminals, served to a peer, and its clients.

protocol          parameters, results, notifications, error codes, as data
server            the handlers of `server.*` and `session.*`
client            `telex.spawn` and `telex.connect`: the asyncio client
sync              its blocking twin
errors            exceptions, and how they map to wire codes, both ways
session_registry  the sessions of one server, and what others add to them
session_reader    what is read of a session, redacted, in the shapes of the wire
notices           what one connection is sent unasked
attach            recordings, and attachments that follow a session's bytes
leases            who may type into a session
dialer            from an address to a peer
portal            `with` or `async with`: an event loop in a thread for blocking callers
"""
