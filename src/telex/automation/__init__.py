"""The automation protocol: sessions on terminals, served to a peer, and its clients.

protocol          parameters, results, notifications, error codes, as data
server            the handlers of `server.*` and `session.*`
error_map         exceptions of a session as errors of the protocol
client            `telex.spawn` and `telex.connect`: the asyncio client
sync              its blocking twin
caller            how a client calls the methods: in this process, or on a server
errors            the client's exceptions, and the wire codes they stand for
session_registry  the sessions of one server, and the extensions of a session
session_reader    screens and transcripts as wire types, redacted
notices           the notifications of one connection
attach            recordings, and attachments that follow a session's output
leases            which connection may type into a session
dialer            from an address to a peer
verb_requests     the verbs as values; `verb_commands` parses a command line, `verb_arguments` the
                  arguments of tools for models, `screen_text` is the text of a screen
verb_protocol     the method `verb.run`: a verb as words, its answer as text or in parts
portal            `with` or `async with`: an event loop in a thread for blocking callers
"""
