import sys

import speaking


def work(message):
    speaking.raw(b"Content-Len")
    sys.exit(0)


speaking.serve(work=work)
