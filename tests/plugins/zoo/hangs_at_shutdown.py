import signal

import speaking

speaking.serve(shutdown=lambda message: signal.pause())
