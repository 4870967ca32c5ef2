import json
import sys

import speaking

line = json.dumps(
    {"jsonrpc": "2.0", "method": "log", "params": {"level": "debug", "msg": "x" * 50}}
)
frame = b"Content-Length: %d\r\n\r\n%b" % (len(line), line.encode())


def work(message):
    for _ in range(int(sys.argv[1])):
        speaking.raw(frame * 100)
    speaking.write(id=message["id"], result="done")


speaking.serve(work=work)
