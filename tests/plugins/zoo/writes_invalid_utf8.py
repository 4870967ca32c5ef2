import speaking


def work(message):
    speaking.frame(b'{"jsonrpc": "2.0", "id": %d, "result": "\xff\xfe"}' % message["id"])


speaking.serve(work=work)
