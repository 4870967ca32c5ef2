import os
import signal

import speaking

speaking.serve(work=lambda message: os.kill(os.getpid(), signal.SIGSEGV))
