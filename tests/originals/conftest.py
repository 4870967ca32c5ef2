"""The original programs themselves, out of their registries: in `make soak` alone."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TELEX_SOAK") == "1" else ["test_*.py"]
