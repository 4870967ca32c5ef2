"""HTTP/2 over any byte stream, on top of the `h2` library, for both sides of a page.

http2_connection  `Http2Connection`: one connection, with its tasks
http_stream       `HttpStream`: one request and its response; flow control: the order of writes, the
                  queue for new streams, and the stall timeout
http2_state       the connection as `h2` sees it, without I/O, with the limits that `h2` lacks
http2_frames      frames by their headers, and the flood budgets
header_fields     which header fields are allowed; HPACK with a cache
http2_websocket   `WebSocketStream`: a WebSocket on one stream
"""
