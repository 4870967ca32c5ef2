import speaking


def work(message):
    speaking.frame(b'[{"jsonrpc": "2.0", "id": %d, "result": 1}]' % message["id"])


speaking.serve(work=work)
