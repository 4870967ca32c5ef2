import signal

import speaking

speaking.serve(work=lambda message: signal.pause())
