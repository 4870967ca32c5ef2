"""What the runtime refuses, and the number that the wire has for it (spec §9).

`to_rpc_error` is the only place that maps an exception of the agent to a code of the protocol.
"""

from __future__ import annotations

from typing import Final

import msgspec

from telex.agent import protocol
from telex.agent.command_runner import BadShellParams
from telex.agent.sandbox_files import OutsideSandbox
from telex.agent.store import (
    NotStorable,
    RunNotOurs,
    StoreError,
    ThreadBusy,
    UnknownRun,
    UnknownThread,
)
from telex.agent.tools.tool_registry import BadArguments, UnknownTool
from telex.processes.spawn import StartFailed
from telex.processes.termination import TreeSurvived
from telex.rpc.errors import Condition, RpcError


class TooManyRuns(Exception):
    """The runtime has `AGENT_RUNS` runs already."""


class NoSuchModel(Exception):
    """There is no core of that name, or no such provider."""


class SeqBeyondEnd(Exception):
    """`after_seq` is beyond the run's last event: the UI means another run, or another store."""


_WIRE_CODES: Final[tuple[tuple[int | Condition, tuple[type[Exception], ...]], ...]] = (
    (protocol.SESSION_NOT_FOUND, (UnknownThread,)),
    (protocol.RUN_NOT_FOUND, (UnknownRun,)),
    (protocol.BUSY, (ThreadBusy, TooManyRuns, RunNotOurs)),
    (Condition.PARAMS, (UnknownTool, BadArguments, BadShellParams, OutsideSandbox, NoSuchModel)),
    (Condition.PARAMS, (NotStorable, SeqBeyondEnd, msgspec.DecodeError)),
    (protocol.INTERNAL, (StoreError, StartFailed, TreeSurvived, OSError)),
)


def to_rpc_error(error: Exception) -> Exception:
    """The error with its code. An unexpected exception is returned as it is, and is logged."""
    if isinstance(error, RpcError):
        return error
    for code, kinds in _WIRE_CODES:
        if isinstance(error, kinds):
            text = f"{code.value} {error}" if isinstance(code, Condition) else str(error)
            return RpcError(code, text)
    return error
