import json
import os

import speaking


def slowly(id, result):
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    for byte in b"Content-Length: %d\r\n\r\n%b" % (len(body), body):
        os.write(1, bytes([byte]))


speaking.serve(
    handshake=lambda message: slowly(message["id"], speaking.introduction()),
    work=lambda message: slowly(message["id"], "done"),
)
