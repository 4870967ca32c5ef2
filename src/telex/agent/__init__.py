"""The agent: a runtime that serves one protocol to any user interface, and its clients.

    async with telex.agent.spawn(confirm=ask_the_person) as agent:
        run = await agent.run_start("run make test")
        async for event in run:
            show(event)

The client:
    runtime_access    `spawn`, `connect`, `in_process`
    client, sync      `AsyncAgent`, and the blocking `Agent`
    run_stream        one run as a client follows it
    ui_callbacks      the functions that answer questions
    client_connection a conversation that survives the loss of its channel
    errors            exceptions, and how they map to wire codes, both ways
    protocol          methods, events and error codes, as data
The runtime is the rest: `server` has the handlers, `runtime` the runs. The public names below are
loaded when they are first used, so importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from telex.agent.client import AsyncAgent as AsyncAgent
    from telex.agent.errors import AgentError as AgentError
    from telex.agent.errors import ConnectionLost as ConnectionLost
    from telex.agent.errors import InvalidParams as InvalidParams
    from telex.agent.errors import InvalidRequest as InvalidRequest
    from telex.agent.errors import MethodNotFound as MethodNotFound
    from telex.agent.errors import RunNotFound as RunNotFound
    from telex.agent.errors import RuntimeBusy as RuntimeBusy
    from telex.agent.errors import RuntimeFailed as RuntimeFailed
    from telex.agent.errors import SessionListFailed as SessionListFailed
    from telex.agent.errors import SessionLoadFailed as SessionLoadFailed
    from telex.agent.errors import SessionNotFound as SessionNotFound
    from telex.agent.errors import UnsupportedVersion as UnsupportedVersion
    from telex.agent.errors import UserCancelled as UserCancelled
    from telex.agent.protocol.events import AgentEvent as AgentEvent
    from telex.agent.protocol.events import CompactionCompleteEvent as CompactionCompleteEvent
    from telex.agent.protocol.events import CompactionStartEvent as CompactionStartEvent
    from telex.agent.protocol.events import FinalEvent as FinalEvent
    from telex.agent.protocol.events import HiddenUserMessageEvent as HiddenUserMessageEvent
    from telex.agent.protocol.events import LlmRetryEvent as LlmRetryEvent
    from telex.agent.protocol.events import PermissionPreviewEvent as PermissionPreviewEvent
    from telex.agent.protocol.events import PermissionReadyEvent as PermissionReadyEvent
    from telex.agent.protocol.events import ReasoningEvent as ReasoningEvent
    from telex.agent.protocol.events import StepCompleteEvent as StepCompleteEvent
    from telex.agent.protocol.events import StepStartEvent as StepStartEvent
    from telex.agent.protocol.events import TextEvent as TextEvent
    from telex.agent.protocol.events import ToolCallEvent as ToolCallEvent
    from telex.agent.protocol.events import ToolResultEvent as ToolResultEvent
    from telex.agent.protocol.extensions import ArtifactReadResult as ArtifactReadResult
    from telex.agent.protocol.extensions import CommandsListResult as CommandsListResult
    from telex.agent.protocol.extensions import FileDiff as FileDiff
    from telex.agent.protocol.extensions import HistoryExportResult as HistoryExportResult
    from telex.agent.protocol.extensions import HistoryUndoResult as HistoryUndoResult
    from telex.agent.protocol.extensions import ListedTerminal as ListedTerminal
    from telex.agent.protocol.extensions import OfferedCommand as OfferedCommand
    from telex.agent.protocol.extensions import PermissionExplainResult as PermissionExplainResult
    from telex.agent.protocol.extensions import RunDiffResult as RunDiffResult
    from telex.agent.protocol.extensions import RunSteerResult as RunSteerResult
    from telex.agent.protocol.extensions import TerminalListResult as TerminalListResult
    from telex.agent.protocol.extensions import TodosResult as TodosResult
    from telex.agent.protocol.extensions import TodosUpdate as TodosUpdate
    from telex.agent.protocol.extensions import UndoneFile as UndoneFile
    from telex.agent.protocol.extensions import WorkspaceEntry as WorkspaceEntry
    from telex.agent.protocol.extensions import WorkspaceListResult as WorkspaceListResult
    from telex.agent.protocol.extensions import WorkspaceMatch as WorkspaceMatch
    from telex.agent.protocol.extensions import WorkspaceReadResult as WorkspaceReadResult
    from telex.agent.protocol.extensions import WorkspaceSearchResult as WorkspaceSearchResult
    from telex.agent.protocol.runs import ActiveFile as ActiveFile
    from telex.agent.protocol.runs import LlmCallDiagnostics as LlmCallDiagnostics
    from telex.agent.protocol.runs import PeerInfo as PeerInfo
    from telex.agent.protocol.runs import Position as Position
    from telex.agent.protocol.runs import Range as Range
    from telex.agent.protocol.runs import RunCancelResult as RunCancelResult
    from telex.agent.protocol.runs import RunContextNotify as RunContextNotify
    from telex.agent.protocol.runs import RunStatusNotify as RunStatusNotify
    from telex.agent.protocol.runs import Selection as Selection
    from telex.agent.protocol.runs import ServerCapabilities as ServerCapabilities
    from telex.agent.protocol.runs import SummaryDiagnostics as SummaryDiagnostics
    from telex.agent.protocol.runs import UiCapabilities as UiCapabilities
    from telex.agent.protocol.runs import UiContext as UiContext
    from telex.agent.protocol.runs import WorkspaceChoice as WorkspaceChoice
    from telex.agent.protocol.runs import WorkspaceInfo as WorkspaceInfo
    from telex.agent.protocol.sessions import AuthLogoutResult as AuthLogoutResult
    from telex.agent.protocol.sessions import ContextInspectResult as ContextInspectResult
    from telex.agent.protocol.sessions import McpListResult as McpListResult
    from telex.agent.protocol.sessions import ModelListResult as ModelListResult
    from telex.agent.protocol.sessions import ModelSetResult as ModelSetResult
    from telex.agent.protocol.sessions import SessionListResult as SessionListResult
    from telex.agent.protocol.sessions import SessionSummary as SessionSummary
    from telex.agent.protocol.sessions import ShellExecResult as ShellExecResult
    from telex.agent.protocol.sessions import SkillsListResult as SkillsListResult
    from telex.agent.protocol.sessions import ToolCallResult as ToolCallResult
    from telex.agent.protocol.ui_requests import ClipboardImage as ClipboardImage
    from telex.agent.protocol.ui_requests import ClipboardText as ClipboardText
    from telex.agent.protocol.ui_requests import PickItem as PickItem
    from telex.agent.protocol.ui_requests import UiClipboardReadParams as UiClipboardReadParams
    from telex.agent.protocol.ui_requests import UiClipboardReadResult as UiClipboardReadResult
    from telex.agent.protocol.ui_requests import UiConfirmRequestParams as UiConfirmRequestParams
    from telex.agent.protocol.ui_requests import UiConfirmResult as UiConfirmResult
    from telex.agent.protocol.ui_requests import UiPickRequestParams as UiPickRequestParams
    from telex.agent.protocol.ui_requests import UiPickResult as UiPickResult
    from telex.agent.protocol.ui_requests import UiPromptRequestParams as UiPromptRequestParams
    from telex.agent.protocol.ui_requests import UiPromptResult as UiPromptResult
    from telex.agent.run_stream import AsyncRun as AsyncRun
    from telex.agent.run_stream import RunDelta as RunDelta
    from telex.agent.run_stream import RunEvent as RunEvent
    from telex.agent.run_stream import RunResult as RunResult
    from telex.agent.run_stream import SessionHistory as SessionHistory
    from telex.agent.run_stream import UnknownEvent as UnknownEvent
    from telex.agent.runtime_access import connect as connect
    from telex.agent.runtime_access import in_process as in_process
    from telex.agent.runtime_access import spawn as spawn
    from telex.agent.sync import Agent as Agent
    from telex.agent.sync import Run as Run
    from telex.agent.ui_callbacks import UiOptions as UiOptions

_MODULES = {
    "ActiveFile": "protocol.runs",
    "Agent": "sync",
    "AgentError": "errors",
    "AgentEvent": "protocol.events",
    "ArtifactReadResult": "protocol.extensions",
    "AsyncAgent": "client",
    "AsyncRun": "run_stream",
    "AuthLogoutResult": "protocol.sessions",
    "ClipboardImage": "protocol.ui_requests",
    "ClipboardText": "protocol.ui_requests",
    "CommandsListResult": "protocol.extensions",
    "CompactionCompleteEvent": "protocol.events",
    "CompactionStartEvent": "protocol.events",
    "ConnectionLost": "errors",
    "ContextInspectResult": "protocol.sessions",
    "FileDiff": "protocol.extensions",
    "FinalEvent": "protocol.events",
    "HiddenUserMessageEvent": "protocol.events",
    "HistoryExportResult": "protocol.extensions",
    "HistoryUndoResult": "protocol.extensions",
    "InvalidParams": "errors",
    "InvalidRequest": "errors",
    "LlmCallDiagnostics": "protocol.runs",
    "LlmRetryEvent": "protocol.events",
    "McpListResult": "protocol.sessions",
    "MethodNotFound": "errors",
    "ModelListResult": "protocol.sessions",
    "ModelSetResult": "protocol.sessions",
    "OfferedCommand": "protocol.extensions",
    "PeerInfo": "protocol.runs",
    "PermissionExplainResult": "protocol.extensions",
    "PermissionPreviewEvent": "protocol.events",
    "PermissionReadyEvent": "protocol.events",
    "PickItem": "protocol.ui_requests",
    "Position": "protocol.runs",
    "Range": "protocol.runs",
    "ReasoningEvent": "protocol.events",
    "Run": "sync",
    "RunCancelResult": "protocol.runs",
    "RunContextNotify": "protocol.runs",
    "RunDelta": "run_stream",
    "RunDiffResult": "protocol.extensions",
    "RunEvent": "run_stream",
    "RunNotFound": "errors",
    "RunResult": "run_stream",
    "RunStatusNotify": "protocol.runs",
    "RunSteerResult": "protocol.extensions",
    "RuntimeBusy": "errors",
    "RuntimeFailed": "errors",
    "Selection": "protocol.runs",
    "ServerCapabilities": "protocol.runs",
    "SessionHistory": "run_stream",
    "SessionListFailed": "errors",
    "SessionListResult": "protocol.sessions",
    "SessionLoadFailed": "errors",
    "SessionNotFound": "errors",
    "SessionSummary": "protocol.sessions",
    "ShellExecResult": "protocol.sessions",
    "SkillsListResult": "protocol.sessions",
    "StepCompleteEvent": "protocol.events",
    "StepStartEvent": "protocol.events",
    "SummaryDiagnostics": "protocol.runs",
    "TextEvent": "protocol.events",
    "ListedTerminal": "protocol.extensions",
    "TerminalListResult": "protocol.extensions",
    "TodosResult": "protocol.extensions",
    "TodosUpdate": "protocol.extensions",
    "ToolCallEvent": "protocol.events",
    "ToolCallResult": "protocol.sessions",
    "ToolResultEvent": "protocol.events",
    "UiCapabilities": "protocol.runs",
    "UiClipboardReadParams": "protocol.ui_requests",
    "UiClipboardReadResult": "protocol.ui_requests",
    "UiConfirmRequestParams": "protocol.ui_requests",
    "UiConfirmResult": "protocol.ui_requests",
    "UiContext": "protocol.runs",
    "UiOptions": "ui_callbacks",
    "UiPickRequestParams": "protocol.ui_requests",
    "UiPickResult": "protocol.ui_requests",
    "UiPromptRequestParams": "protocol.ui_requests",
    "UiPromptResult": "protocol.ui_requests",
    "UndoneFile": "protocol.extensions",
    "UnknownEvent": "run_stream",
    "UnsupportedVersion": "errors",
    "UserCancelled": "errors",
    "WorkspaceChoice": "protocol.runs",
    "WorkspaceEntry": "protocol.extensions",
    "WorkspaceInfo": "protocol.runs",
    "WorkspaceListResult": "protocol.extensions",
    "WorkspaceMatch": "protocol.extensions",
    "WorkspaceReadResult": "protocol.extensions",
    "WorkspaceSearchResult": "protocol.extensions",
    "connect": "runtime_access",
    "in_process": "runtime_access",
    "spawn": "runtime_access",
}
"""The module of each public name, imported when the name is first used."""

__all__ = [
    "ActiveFile",
    "Agent",
    "AgentError",
    "AgentEvent",
    "ArtifactReadResult",
    "AsyncAgent",
    "AsyncRun",
    "AuthLogoutResult",
    "ClipboardImage",
    "ClipboardText",
    "CommandsListResult",
    "CompactionCompleteEvent",
    "CompactionStartEvent",
    "ConnectionLost",
    "ContextInspectResult",
    "FileDiff",
    "FinalEvent",
    "HiddenUserMessageEvent",
    "HistoryExportResult",
    "HistoryUndoResult",
    "InvalidParams",
    "InvalidRequest",
    "ListedTerminal",
    "LlmCallDiagnostics",
    "LlmRetryEvent",
    "McpListResult",
    "MethodNotFound",
    "ModelListResult",
    "ModelSetResult",
    "OfferedCommand",
    "PeerInfo",
    "PermissionExplainResult",
    "PermissionPreviewEvent",
    "PermissionReadyEvent",
    "PickItem",
    "Position",
    "Range",
    "ReasoningEvent",
    "Run",
    "RunCancelResult",
    "RunContextNotify",
    "RunDelta",
    "RunDiffResult",
    "RunEvent",
    "RunNotFound",
    "RunResult",
    "RunStatusNotify",
    "RunSteerResult",
    "RuntimeBusy",
    "RuntimeFailed",
    "Selection",
    "ServerCapabilities",
    "SessionHistory",
    "SessionListFailed",
    "SessionListResult",
    "SessionLoadFailed",
    "SessionNotFound",
    "SessionSummary",
    "ShellExecResult",
    "SkillsListResult",
    "StepCompleteEvent",
    "StepStartEvent",
    "SummaryDiagnostics",
    "TerminalListResult",
    "TextEvent",
    "TodosResult",
    "TodosUpdate",
    "ToolCallEvent",
    "ToolCallResult",
    "ToolResultEvent",
    "UiCapabilities",
    "UiClipboardReadParams",
    "UiClipboardReadResult",
    "UiConfirmRequestParams",
    "UiConfirmResult",
    "UiContext",
    "UiOptions",
    "UiPickRequestParams",
    "UiPickResult",
    "UiPromptRequestParams",
    "UiPromptResult",
    "UndoneFile",
    "UnknownEvent",
    "UnsupportedVersion",
    "UserCancelled",
    "WorkspaceChoice",
    "WorkspaceEntry",
    "WorkspaceInfo",
    "WorkspaceListResult",
    "WorkspaceMatch",
    "WorkspaceReadResult",
    "WorkspaceSearchResult",
    "connect",
    "in_process",
    "spawn",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'telex.agent' has no attribute {name!r}")
    return getattr(importlib.import_module(f"telex.agent.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
