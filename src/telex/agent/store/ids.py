"""Ids of sessions and runs, as they stand on the wire."""

from __future__ import annotations

import uuid


def new_session_id() -> str:
    """Random from its first character on: UIs list sessions by the first eight."""
    return str(uuid.uuid4())


def new_run_id() -> str:
    return f"run_{uuid.uuid4().hex}"
