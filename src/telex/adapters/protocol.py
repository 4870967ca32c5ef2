"""Parameters and results of `adapter.*` and `plugin.*`, and the permissions that methods need.

This is the second half of the spec in `automation.protocol`, and uses its codes, actions and
matchers. A plugin is, as in the spec, a manifest and Lua sources. Names and numbers are from the
spec; fields beyond the spec are additive.
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
"""The permissions that a method needs in the manifest of the plugin."""

PLUGIN_ERROR: Final = "plugin_error"
"""The state that the host sets if the plugin failed to classify."""

WAIT_MATCHER: Final = "wait_turn_matcher"
"""The plugin's function for a wait that names no other."""

COMPLETED_TURN_STABLE_MS: Final = 300
"""How long a screen must be unchanged before a plugin may call a turn complete."""

WaitId = Annotated[str, Meta(min_length=1, max_length=128)]
Kind = Literal["adapter", "macro", "matcher"]


# Manifests.


class DefaultTarget(Struct, frozen=True, omit_defaults=True):
    """The program to start when the caller names none, with its settings."""

    program: str
    args: tuple[Word, ...] = ()
    rows: Rows | None = None
    cols: Cols | None = None
    env: dict[Name, Word] = {}
    """The caller may override these."""
    required_env: dict[Name, Word] = {}
    """The caller may not."""


class CoreIntents(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a core of the agent uses the plugin: names of its intents, states and metadata."""

    prompt: str
    """The intent that begins a turn with a text of the person."""
    prompt_param: str
    """The parameter of `prompt` that gets the text."""
    interrupt: str
    """The intent that interrupts a turn."""
    ready: tuple[str, ...]
    """The states in which a prompt can be sent."""
    said: str
    """The metadata with what the program said in this turn: a text, or a list of tables, each with
    `text`, or with `tool`, `summary` and `result`."""
    command: str | None = None
    """The intent that types a command of the program: a text of one line that begins with `/`."""
    command_param: str | None = None
    """The parameter of `command` that gets the text."""
    choose: str | None = None
    """The intent that chooses an option of a dialog, by `option` and `dialog_id`. Without it no
    dialog is answered."""
    dismiss: str | None = None
    """The intent that closes a panel without options."""
    answer: str | None = None
    """The intent that answers a question with a line of text, in states with the metadata
    `asked`."""
    answer_param: str | None = None
    """The parameter of `answer` that gets the line."""


class Manifest(Struct, frozen=True, kw_only=True):
    """The `manifest.toml` of a plugin."""

    name: str
    kind: Kind
    version: str
    runtime: Literal["lua"] | None = None
    entrypoint: str | None = None
    """The Lua file, relative to the manifest."""
    permissions: tuple[Permission, ...] = ()
    default_target: DefaultTarget | None = None
    core: CoreIntents | UnsetType = UNSET
    """For plugins of interactive agents, which telex's agent can then use like a model."""


# The result of `classify`.


class StateCandidate(Struct, frozen=True, omit_defaults=True):
    """Another state that is possible."""

    state: str
    confidence: float = 0.0
    evidence: str = ""


class HostMark(Struct, frozen=True):
    """A label that the plugin sets at the current place of the transcript."""

    label: Annotated[str, Meta(min_length=1, max_length=128)]


class AdapterState(Struct, frozen=True, kw_only=True):
    """The state of a program's screen, as the plugin classified it."""

    state: str
    confidence: float
    evidence: str
    """The reason, as a sentence."""
    sequence: int
    candidates: tuple[StateCandidate, ...] = ()
    last_intent: str | None = None
    metadata: dict[str, Any] = {}
    """Other facts that a caller needs to act; each plugin has its own."""
    rule: str | UnsetType = UNSET
    """The rule of the plugin that decided."""
    host_marks: tuple[HostMark, ...] | UnsetType = UNSET


# Parameters. Null means absent wherever a field may be left out.


class Start(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin, and the program to start; by default the manifest's."""

    plugin: str
    program: str | None = None
    """A path, or a name that is searched in PATH; by default the manifest's."""
    args: tuple[Word, ...] | None = None
    """By default the manifest's for its own program, and none for another program."""
    cwd: str | None = None
    env: dict[Name, Word | None] | None = None
    """Overrides on top of the manifest's `env`; null removes. They cannot override the manifest's
    `required_env`."""
    rows: Rows | None = None
    """By default the manifest's, else 40."""
    cols: Cols | None = None
    """By default the manifest's, else 120."""
    pixel_width: Pixels | None = None
    pixel_height: Pixels | None = None


class Resume(Start, frozen=True, kw_only=True):
    """A plugin and a program, and an adapter to close first."""

    prior_adapter: str | None = None
    """An unknown or closed adapter is not an error."""


class AttachTo(Struct, frozen=True, omit_defaults=True):
    """A plugin, and a session that exists already."""

    plugin: str
    session: str


class OfAdapter(Struct, frozen=True, omit_defaults=True):
    """An adapter by its id."""

    adapter: str


class Intent(Struct, frozen=True, omit_defaults=True):
    """A function of the plugin that plans actions, with its parameters."""

    intent: str
    params: dict[str, Any] | None = None


class SendIntent(Struct, frozen=True, omit_defaults=True):
    """An intent for one adapter."""

    adapter: str
    intent: str
    """A function of the plugin; `plugin.describe` lists them."""
    params: dict[str, Any] | None = None


class Waiting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function of the plugin that returns a matcher, and a timeout."""

    intent: str | None = None
    """The plugin's function that returns a matcher; by default `wait_turn_matcher`."""
    params: dict[str, Any] | None = None
    timeout_ms: Milliseconds | None = None
    """By default 120,000."""
    wait_id: WaitId | None = None
    """A name for `adapter.cancel_wait`."""


class WaitFor(Waiting, frozen=True, kw_only=True):
    """A wait on one adapter."""

    adapter: str


class TakeTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An intent and the wait after it, without input of other clients in between."""

    adapter: str
    send: Intent
    wait: Waiting | None = None


class CancelAdapterWait(Struct, frozen=True, omit_defaults=True):
    """A wait by its `wait_id`."""

    wait_id: str


class ReadAdapter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An adapter to read, and the redaction of the result."""

    adapter: str
    redact: bool = True
    redaction: RedactionRules | None = None


class ReadAdapterScreen(ReadAdapter, frozen=True, kw_only=True):
    """An adapter whose screen is read, and how cells and secrets are returned."""

    cells: Cells = "full"


class ReadAdapterTranscript(ReadAdapter, frozen=True, kw_only=True):
    """An adapter whose transcript is read, the start, and how the text is returned."""

    strip: bool = False
    cursor: Annotated[int, Meta(ge=0)] | None = None


class ValidateManifest(Struct, frozen=True, omit_defaults=True):
    """A manifest as JSON values, to be checked."""

    manifest: dict[str, Any]


class OfPlugin(Struct, frozen=True, omit_defaults=True):
    """A plugin by its name."""

    plugin: str


class LoadPlugin(Struct, frozen=True, omit_defaults=True):
    """The path of a manifest on the server's disk."""

    manifest_path: str


# Results.


class PluginList(Struct, frozen=True):
    """The manifests of the server's plugins."""

    plugins: tuple[Manifest, ...]


class LiveAdapter(Struct, frozen=True):
    """An open adapter."""

    adapter: str
    plugin: str
    session: str
    sequence: int
    finished: bool
    """Whether the program has exited."""


class LiveAdapters(Struct, frozen=True):
    """All open adapters, in the order of their ids."""

    adapters: tuple[LiveAdapter, ...]


class Started(Struct, frozen=True):
    """The new adapter and its first state."""

    adapter: str
    plugin: str
    session: str
    state: AdapterState


class StateReply(Struct, frozen=True):
    """The current state of an adapter."""

    state: AdapterState


class AdapterMatched(Struct, frozen=True):
    """The state at the end of a wait, and the branch of the matcher that matched."""

    state: AdapterState
    matched: dict[str, Any]
    wait_id: str | UnsetType = UNSET


class AdapterWaitCancelled(Struct, frozen=True):
    """Whether there was a wait with this id."""

    cancelled: bool
    adapter: str | UnsetType = UNSET
    wait_id: str | UnsetType = UNSET


class Inspection(Struct, frozen=True, kw_only=True):
    """The context of the classifier, and the state it returns."""

    adapter: str
    plugin: str
    session: str
    state: AdapterState
    plain_text: str
    body_text: str
    status_text: str
    """The bottom three rows; empty for a screen of six rows or fewer."""
    transcript_tail: str
    """The last 4,096 characters; empty if the plugin may not read the transcript."""
    sequence: int


class PluginCapabilities(Struct, frozen=True):
    """The permissions and runtimes that this server supports."""

    permissions: tuple[Permission, ...]
    embedded_lua: bool
    wasm: bool
    builtin_plugins: tuple[Manifest, ...]


class ManifestValid(Struct, frozen=True):
    """The manifest can be used. For an unusable manifest the method fails, and the error's data
    names every problem by its field."""

    valid: bool


class PluginDescription(Struct, frozen=True):
    """The intents, wait matchers and states of a plugin, as its `describe` returns them."""

    plugin: str
    manifest: Manifest
    intents: list[Any]
    wait_matchers: list[Any]
    states: list[Any]


class Loaded(Struct, frozen=True):
    """The name of the loaded plugin."""

    plugin: str


class Unloaded(Struct, frozen=True):
    unloaded: bool
