"""Ways to get a channel: stdio, unix socket, WebSocket, HTTP; and authentication for the network.

Each transport gives channels that fit `telex.rpc.channel` without knowing what is said over them.

    stdio unix websocket http http_client   the transports
    channels        channels on byte streams and on awaited frames
    auth            who may use a server over the network: token, Host, Origin
    web_server      uvicorn, started and stopped in the running event loop
    responses       error pages and JSON errors
    http_messages   what both ends of HTTP agree on
    errors          why there is no channel
"""
