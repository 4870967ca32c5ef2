"""A conversation between two peers.

`messages` are its values and `dialects` their two spellings; `state` is the table of what may
follow what, sans-IO; `peer` is the one asyncio shell around them; `methods` are typed handlers;
`channel` says what a peer needs of a transport; `testing` joins two peers without a wire.

Error numbers and method names belong to a protocol (its `protocol.py`), never to this package,
which knows the five reserved codes and nothing more.
"""
