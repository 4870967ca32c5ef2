"""What is stored with a run beside its input: the UI's own `meta`, and what it needs to go on.
Pure."""

from __future__ import annotations

import msgspec


class Own(msgspec.Struct, omit_defaults=True):
    """What a run needs beside its input to go on after a restart."""

    model: str = ""
    compact: bool = False
    steered: list[str] = []
    """All that was said to it meanwhile."""


class _RunMeta(msgspec.Struct, omit_defaults=True):
    """What the UI gave stays as it was, beside ours."""

    telex: Own = msgspec.field(default_factory=Own)
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def own(meta: bytes | None) -> Own:
    return msgspec.json.decode(meta or b"{}", type=_RunMeta).telex


def with_own(meta: bytes | None, own: Own) -> bytes:
    given = msgspec.UNSET if meta is None else msgspec.Raw(meta)
    return msgspec.json.encode(_RunMeta(own, given))


def with_said(kept: bytes | None, text: str) -> bytes:
    meta = msgspec.json.decode(kept or b"{}", type=_RunMeta)
    meta.telex.steered = [*meta.telex.steered, text]
    return msgspec.json.encode(meta)
