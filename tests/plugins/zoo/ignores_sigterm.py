import signal

import speaking

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)


def pause(message):
    while True:
        signal.pause()


speaking.serve(shutdown=pause)
