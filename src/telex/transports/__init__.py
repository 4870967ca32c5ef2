"""Ways to get a channel: stdio, unix socket, WebSocket, HTTP; and the door to the network.

Each module gives channels that fit `telex.rpc.channel` without knowing what is said over them.
`framed` is the byte-stream channel that stdio and unix sockets share. `door` is the one place that
decides who may come in over the network.
"""
