import speaking


def work(message):
    while True:
        speaking.raw(b"X-Header: " + b"y" * 65536)


speaking.serve(work=work)
