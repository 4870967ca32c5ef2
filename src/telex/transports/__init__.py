"""Transports that open channels: stdio, unix socket, WebSocket, HTTP; with authentication.

Each transport creates channels that fit `telex.rpc.channel`, and does not interpret the messages.

    stdio unix websocket http   the transports
    stdio           has the other end too: a child's standard input and output, for its parent
    addresses       from `unix:PATH` or a URL to a channel
    channels        channels on byte streams and on awaited frames
    auth            authentication of network requests: token, Host, Origin
    web_server      uvicorn, started and stopped in the running event loop
    responses       error pages and JSON errors; the HTTP conventions that client and server share
    errors          why a connection failed
"""
