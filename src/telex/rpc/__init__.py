"""RPC between two peers, each of which may call the other.

`messages` are the values of a conversation, and `dialects` encode them in two formats. `state` is
the table of allowed transitions, sans-IO. `peer` is the asyncio shell around them. `methods` holds
typed handlers. `channel` defines the interface between a peer and a transport; `memory` implements
it inside one process. `testing` checks a peer against a written conversation.

Error numbers and method names belong to a protocol (its `protocol.py`), never to this package,
which knows only the five reserved codes.
"""
