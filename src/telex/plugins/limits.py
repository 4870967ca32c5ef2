"""The maximums of `plugins`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

PLUGIN_HANDSHAKE_SECONDS: Final = 5
"""seconds: For a plugin to start and answer `handshake`. The protocol's first host waited as
long."""
PLUGIN_INITIALIZE_SECONDS: Final = 5
"""seconds: For a plugin to answer `initialize`."""
PLUGIN_CALL_SECONDS: Final = 60
"""seconds: For a plugin to answer a call, unless the caller passes another timeout."""
PLUGIN_SHUTDOWN_SECONDS: Final = 5
"""seconds: For a plugin to answer `shutdown`."""
PLUGIN_EXIT_SECONDS: Final = 2
"""seconds: For a plugin to exit after the notification `exit`."""
PLUGIN_STDIN_SECONDS: Final = 1
"""seconds: For a plugin to exit after its standard input was closed, and for the host to read the
rest of its output."""
PLUGIN_TERM_SECONDS: Final = 3
"""seconds: For a plugin's process tree to end after SIGTERM. Then SIGKILL: 11 seconds in all."""
PLUGIN_PROTOCOL_ERRORS: Final = 5
"""messages: Invalid messages of one plugin within PLUGIN_WINDOW_SECONDS; the fifth ends the
plugin."""
PLUGIN_FAILURES: Final = 5
"""failures: Of one plugin within PLUGIN_WINDOW_SECONDS, before it is suspended for the rest of the
time."""
PLUGIN_WINDOW_SECONDS: Final = 180
"""seconds: How long a failure counts. A count that never decays would disable a plugin after
days."""
PLUGIN_BACKOFF_MILLISECONDS: Final = 500
"""milliseconds: Before a plugin that failed is started again; twice as long each further time."""
PLUGIN_BACKOFF_SECONDS: Final = 30
"""seconds: The longest such wait."""
PLUGIN_IDLE_SECONDS: Final = 300
"""seconds: Without a call, after which a plugin is stopped. The next call starts it again."""
PLUGIN_STDERR_LINE_CHARS: Final = 64 * KIB
"""characters: Of a line on a plugin's standard error. The rest is dropped, which a note in the line
says."""
PLUGIN_MANIFEST_BYTES: Final = 256 * KIB
"""bytes: Of one `manifest.json`: room for commands with their manuals."""
PLUGIN_DIRECTORY_ENTRIES: Final = 4096
"""entries: Of one plugin directory, and of the whole directory that is trusted for a project."""
PLUGIN_TRUSTED_BYTES: Final = 256 * MIB
"""bytes: Of a project's plugins. All are read to compare them with what was trusted: 0.6 s."""
PLUGIN_LEAVING_SECONDS: Final = 1
"""seconds: For running calls in a plugin of the Python SDK to finish after its host
disconnected."""
PLUGIN_TASKS_AT_ONCE: Final = 8
"""tasks: Of one `telex plugin task` that run at the same time."""
PLUGIN_TOOLS: Final = 256
"""tools: Of one plugin. A language model gets the description of each with every request."""
PLUGIN_CHECK_SECONDS: Final = 5
"""seconds: The plugin's time for each answer in `telex plugin check`."""
