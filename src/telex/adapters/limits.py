"""The maximums of `adapters`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

PLAN_ACTIONS: Final = 256
"""actions: In one plan of a plugin's intent. Other input waits until the plan is done."""
PLAN_STEPS: Final = 32
"""plans: In a chain of plans that one intent starts, each by the `next` of the one before. Enough
to clear a long draft, paste and press Enter a few times; an endless chain is stopped."""
PLAN_STEP_SECONDS: Final = 30
"""seconds: That a plan waits for its `next`. Also a slow machine has drawn the typed text by
then."""
INTENT_PARAMS_BYTES: Final = 256 * KIB
"""bytes: Of JSON, in the params of one intent or wait. A longer prompt should be a file."""
HOST_MARKS: Final = 16
"""marks: In one result of `classify`; a transcript keeps 64."""
ADAPTERS: Final = 256
"""adapters: Open on one server. Each has a worker process for its plugin."""
INSPECTED_CHARS: Final = 4 * KIB
"""characters: Of the transcript, in `adapter.inspect`."""
MANIFEST_BYTES: Final = 16 * KIB
"""bytes: Of one `manifest.toml`. The standard parser takes 20 s for 64 KiB of `a.a.a.a`."""
LUA_FILES: Final = 256
"""files: Lua files of one plugin. All are read when it is loaded."""
LUA_SOURCE_BYTES: Final = 1 * MIB
"""bytes: Of all Lua files of one plugin: each adapter receives all. A large plugin has 100 KiB."""
LUA_ENTRIES: Final = 4096
"""entries: Files and directories searched for Lua files. A manifest in a home directory fails
soon."""
LUA_DEPTH: Final = 8
"""levels: Directories within directories of one plugin."""
LUA_INSTRUCTIONS: Final = 5_000_000
"""instructions: Of Lua, in one call of a plugin's function: some 40 ms. A classifier takes a few
thousand."""
LUA_MEMORY_BYTES: Final = 32 * MIB
"""bytes: Allocated by one plugin instance: a thousand times as much as a classifier needs."""
LUA_PROCESS_BYTES: Final = 256 * MIB
"""bytes: Address space of a worker beyond its size at the start, in case LUA_MEMORY_BYTES fails."""
LUA_CPU_MS: Final = 250
"""milliseconds: CPU time of one call, enforced by the kernel: pattern matching counts no
instructions."""
LUA_DEADLINE_MS: Final = 800
"""milliseconds: Wall-clock time of one call, for a busy machine. A caller learns of a stuck plugin
within a second."""
LUA_START_MS: Final = 10_000
"""milliseconds: For a worker to start and run the plugin's sources, when many start at the same
time."""
LUA_ANSWER_DEPTH: Final = 32
"""levels: Tables within tables of a result, and of arguments."""
LUA_ANSWER_VALUES: Final = 20_000
"""values: In one result of a plugin's function."""
LUA_ANSWER_BYTES: Final = MIB
"""bytes: Of text in one result. A plan with a large paste fits."""
LUA_PROBLEM_CHARS: Final = 4 * KIB
"""characters: Of an error message that a plugin wrote."""
LUA_RESTING_MS: Final = 5_000
"""milliseconds: The longest time for which calls of a plugin that fails each time are rejected. The
first time is 100."""
