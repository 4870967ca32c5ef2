"""The settings of a run that are stored with it, beside its input and the `meta` of the UI."""

from __future__ import annotations

import msgspec


class RunSettings(msgspec.Struct, omit_defaults=True):
    """The settings, beside its input, that a run needs to be resumed after a restart."""

    model: str = ""
    provider: str = ""
    compact: bool = False
    root: str = ""
    """The workspace of the run: its root, cwd and mode; empty for runs older than these members."""
    cwd: str = ""
    mode: str = ""
    loaded: str = ""
    """What the input called by `/name`: a `command`, a `skill`, or nothing."""
    steered: list[str] = []
    """All texts of `run.steer`, read or not."""


class _RunMeta(msgspec.Struct, omit_defaults=True):
    """Stored with a run beside its input: telex's settings, and the `meta` of the UI unchanged."""

    telex: RunSettings = msgspec.field(default_factory=RunSettings)
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def run_settings(meta: bytes | None) -> RunSettings:
    return msgspec.json.decode(meta or b"{}", type=_RunMeta).telex


def with_run_settings(meta: bytes | None, settings: RunSettings) -> bytes:
    given = msgspec.UNSET if meta is None else msgspec.Raw(meta)
    return msgspec.json.encode(_RunMeta(settings, given))


def with_steering(meta: bytes | None, text: str) -> bytes:
    decoded = msgspec.json.decode(meta or b"{}", type=_RunMeta)
    decoded.telex.steered = [*decoded.telex.steered, text]
    return msgspec.json.encode(decoded)
