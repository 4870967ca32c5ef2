"""`python -m telex` is `telex`."""

import sys

from telex.cli import main

sys.exit(main())
