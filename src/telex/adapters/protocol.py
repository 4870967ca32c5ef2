"""Adapters as data: `adapter.*` and `plugin.*` of terminal automation, with their permissions.

The second half of the spec of `automation.protocol`, whose codes, actions and matchers it uses. A
plugin here is what the spec calls one: a manifest and Lua sources. Names and numbers are the
spec's; fields beyond it are additive.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from telex.automation.protocol import Cells, Name, RedactionRules, Word
from telex.terminal.actions import Cols, Pixels, Rows
from telex.terminal.waits.matchers import Milliseconds

Permission = Literal[
    "session.spawn",
    "session.kill",
    "session.resize",
    "screen.read",
    "transcript.read",
    "input.write",
    "matcher.wait",
]
PERMISSIONS: Final[tuple[Permission, ...]] = (
    "session.spawn",
    "session.kill",
    "session.resize",
    "screen.read",
    "transcript.read",
    "input.write",
    "matcher.wait",
)

REQUIRED: Final[dict[str, tuple[Permission, ...]]] = {
    "adapter.start": ("session.spawn",),
    "adapter.resume": ("session.spawn",),
    "adapter.attach": ("screen.read",),
    "adapter.send": ("input.write",),
    "adapter.wait": ("matcher.wait",),
    "adapter.turn": ("input.write", "matcher.wait"),
    "adapter.cancel_wait": (),
    "adapter.snapshot": ("screen.read",),
    "adapter.state": ("screen.read",),
    "adapter.inspect": ("screen.read",),
    "adapter.transcript": ("transcript.read",),
    "adapter.close": ("session.kill",),
    "adapter.list": (),
    "adapter.live": (),
}
"""What a method needs from the manifest of the plugin it is asked of."""

PLUGIN_ERROR: Final = "plugin_error"
"""The state that is the host's own: the plugin could not say one."""

WAIT_MATCHER: Final = "wait_turn_matcher"
"""What a wait asks the plugin for, unless it names another."""

COMPLETED_TURN_STABLE_MS: Final = 300
"""How long a screen stands still before a plugin may call a turn complete."""

WaitId = Annotated[str, Meta(min_length=1, max_length=128)]
Kind = Literal["adapter", "macro", "matcher"]


# Manifests.


class DefaultTarget(Struct, frozen=True, omit_defaults=True):
    """What is started when the caller names no program, and how."""

    program: str
    args: tuple[Word, ...] = ()
    rows: Rows | None = None
    cols: Cols | None = None
    env: dict[Name, Word] = {}
    """The caller may override these."""
    required_env: dict[Name, Word] = {}
    """The caller may not."""


class Manifest(Struct, frozen=True, kw_only=True):
    """A plugin, as it describes itself in its `manifest.toml`."""

    name: str
    kind: Kind
    version: str
    runtime: Literal["lua"] | None = None
    entrypoint: str | None = None
    """The Lua file, relative to the manifest."""
    permissions: tuple[Permission, ...] = ()
    default_target: DefaultTarget | None = None


# What a plugin says of a screen.


class StateCandidate(Struct, frozen=True, omit_defaults=True):
    """A state it might also have been."""

    state: str
    confidence: float = 0.0
    evidence: str = ""


class HostMark(Struct, frozen=True):
    """A place in the transcript that the plugin wants named."""

    label: Annotated[str, Meta(min_length=1, max_length=128)]


class AdapterState(Struct, frozen=True, kw_only=True):
    """What a program's screen means, by its plugin."""

    state: str
    confidence: float
    evidence: str
    """Why, as a sentence."""
    sequence: int
    candidates: tuple[StateCandidate, ...] = ()
    last_intent: str | None = None
    metadata: dict[str, Any] = {}
    """What else it says: whatever a caller needs to act."""
    rule: str | UnsetType = UNSET
    """Which of the plugin's rules decided."""
    host_marks: tuple[HostMark, ...] | UnsetType = UNSET


# What the methods take. Null stands for absent wherever a field may be left out.


class Start(Struct, frozen=True, kw_only=True):
    """Which plugin, and the program it is to know; by default the manifest's."""

    plugin: str
    program: str | None = None
    """A path, or a name that is looked for in PATH; by default the manifest's."""
    args: tuple[Word, ...] | None = None
    """By default the manifest's, with its program, and none with another."""
    cwd: str | None = None
    env: dict[Name, Word | None] | None = None
    """Overrides on top of the manifest's `env`; null removes. Its `required_env` has the last
    word."""
    rows: Rows | None = None
    """By default the manifest's, else 40."""
    cols: Cols | None = None
    """By default the manifest's, else 120."""
    pixel_width: Pixels | None = None
    pixel_height: Pixels | None = None


class Resume(Start, frozen=True, kw_only=True):
    """The same, and which adapter to close before."""

    prior_adapter: str | None = None
    """One that is not there any more is no error."""


class AttachTo(Struct, frozen=True):
    """A plugin for a session that runs already."""

    plugin: str
    session: str


class OfAdapter(Struct, frozen=True):
    """Which adapter."""

    adapter: str


class Intent(Struct, frozen=True):
    """What the plugin is to do, in its own words."""

    intent: str
    params: dict[str, Any] | None = None


class SendIntent(Struct, frozen=True):
    """An intent for an adapter."""

    adapter: str
    intent: str
    """A function of the plugin; `plugin.describe` lists them."""
    params: dict[str, Any] | None = None


class Waiting(Struct, frozen=True, kw_only=True):
    """What to wait for, in the plugin's words, and how long."""

    intent: str | None = None
    """The plugin's function that answers a matcher; by default `wait_turn_matcher`."""
    params: dict[str, Any] | None = None
    timeout_ms: Milliseconds | None = None
    """By default 120,000."""
    wait_id: WaitId | None = None
    """A name by which `adapter.cancel_wait` finds it."""


class WaitFor(Waiting, frozen=True, kw_only=True):
    """The same, for an adapter."""

    adapter: str


class TakeTurn(Struct, frozen=True, kw_only=True):
    """An intent, and what to wait for after it, with nothing of anybody else in between."""

    adapter: str
    send: Intent
    wait: Waiting | None = None


class CancelAdapterWait(Struct, frozen=True):
    """Which wait."""

    wait_id: str


class ReadAdapter(Struct, frozen=True, kw_only=True):
    """Whose screen or transcript, and how it is told."""

    adapter: str
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadAdapterScreen(ReadAdapter, frozen=True, kw_only=True):
    """Whose screen, and how it is told."""

    cells: Cells = "full"


class ReadAdapterTranscript(ReadAdapter, frozen=True, kw_only=True):
    """Whose transcript, how it is told, and from where."""

    strip: bool = False
    cursor: Annotated[int, Meta(ge=0)] | None = None


class ValidateManifest(Struct, frozen=True):
    """A manifest, as data."""

    manifest: dict[str, Any]


class OfPlugin(Struct, frozen=True):
    """Which plugin."""

    plugin: str


class LoadPlugin(Struct, frozen=True):
    """Where its manifest is."""

    manifest_path: str


# What they answer.


class PluginList(Struct, frozen=True):
    """The manifests this server can start adapters of."""

    plugins: tuple[Manifest, ...]


class LiveAdapter(Struct, frozen=True):
    """An adapter, from its start until it is closed."""

    adapter: str
    plugin: str
    session: str
    sequence: int
    finished: bool
    """Whether its program ended."""


class LiveAdapters(Struct, frozen=True):
    """Every adapter that was not closed, by id."""

    adapters: tuple[LiveAdapter, ...]


class Started(Struct, frozen=True):
    """The new adapter."""

    adapter: str
    plugin: str
    session: str
    state: AdapterState


class StateReply(Struct, frozen=True):
    """The state now."""

    state: AdapterState


class AdapterMatched(Struct, frozen=True):
    """The state when a wait ended, and which branch of the matcher ended it."""

    state: AdapterState
    matched: dict[str, Any]
    wait_id: str | UnsetType = UNSET


class AdapterWaitCancelled(Struct, frozen=True):
    """Whether there was such a wait."""

    cancelled: bool
    adapter: str | UnsetType = UNSET
    wait_id: str | UnsetType = UNSET


class Inspection(Struct, frozen=True, kw_only=True):
    """What the classifier sees, and what it makes of it."""

    adapter: str
    plugin: str
    session: str
    state: AdapterState
    plain_text: str
    body_text: str
    status_text: str
    """The bottom three rows; none of a screen of six rows or fewer."""
    transcript_tail: str
    """The last 4,096 characters; empty if the plugin may not read the transcript."""
    sequence: int


class PluginCapabilities(Struct, frozen=True):
    """What plugins can have here."""

    permissions: tuple[Permission, ...]
    embedded_lua: bool
    wasm: bool
    builtin_plugins: tuple[Manifest, ...]


class ManifestValid(Struct, frozen=True):
    """It can be used. One that cannot is an error whose data names every problem by its field."""

    valid: bool


class PluginDescription(Struct, frozen=True):
    """What a plugin offers. What its own `describe` says is told as it says it."""

    plugin: str
    manifest: Manifest
    intents: list[Any]
    wait_matchers: list[Any]
    states: list[Any]


class Loaded(Struct, frozen=True):
    """The plugin's name."""

    plugin: str


class Unloaded(Struct, frozen=True):
    unloaded: bool
