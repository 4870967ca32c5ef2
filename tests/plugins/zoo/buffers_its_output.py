import sys

import speaking

speaking.raw = sys.stdout.buffer.write
speaking.serve()
