import speaking


def work(message):
    deep = b"[" * 100_000 + b"]" * 100_000
    speaking.frame(b'{"jsonrpc": "2.0", "id": %d, "result": %b}' % (message["id"], deep))


speaking.serve(work=work)
