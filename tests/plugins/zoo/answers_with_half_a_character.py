import speaking

later = []


def work(message):
    speaking.frame(b'{"jsonrpc": "2.0", "id": %d, "result": "\\ud800"}' % message["id"])


def work_much(message):
    speaking.frame(
        b'{"jsonrpc": "2.0", "id": %d, "result": "%b"}' % (message["id"], b"x" * 17_000_000)
    )


def now(message):
    speaking.write(id=later[0], result="later")


speaking.serve(
    work=work, work_much=work_much, answer_later=lambda m: later.append(m["id"]), now=now
)
