import signal

import speaking


def work(message):
    speaking.raw(b"Content-Length: 1000000000\r\n\r\n")
    for _ in range(1600):  # a tenth of it
        speaking.raw(b"0" * 65536)
    signal.pause()


speaking.serve(work=work)
