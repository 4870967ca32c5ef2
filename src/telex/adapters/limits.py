"""The maximums of `adapters`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

PLAN_ACTIONS: Final = limit(
    "PLAN_ACTIONS",
    256,
    "actions",
    "In one plan of a plugin's intent. Nobody else can type meanwhile.",
)
PLAN_STEPS: Final = limit(
    "PLAN_STEPS",
    32,
    "plans",
    "That one intent may lead to, each by the `next` of the one before. Enough to clear a long "
    "draft, paste and press Enter a few times; a plugin that goes on for ever is stopped.",
)
PLAN_STEP_SECONDS: Final = limit(
    "PLAN_STEP_SECONDS",
    30,
    "seconds",
    "That a plan waits for its `next`. On a slow machine too, what was typed is drawn by then.",
)
INTENT_PARAMS_BYTES: Final = limit(
    "INTENT_PARAMS_BYTES",
    256 * KIB,
    "bytes",
    "Of JSON, in the params of one intent or wait: a prompt of a thousand pages is a file.",
)
HOST_MARKS: Final = limit(
    "HOST_MARKS",
    16,
    "marks",
    "That one answer of `classify` may ask for; a transcript keeps 64.",
)
ADAPTERS: Final = limit(
    "ADAPTERS",
    256,
    "adapters",
    "Not closed, on one server. Each has a worker process for its plugin.",
)
INSPECTED_CHARS: Final = limit(
    "INSPECTED_CHARS",
    4 * KIB,
    "characters",
    "Of the transcript, in `adapter.inspect`.",
)
MANIFEST_BYTES: Final = limit(
    "MANIFEST_BYTES",
    16 * KIB,
    "bytes",
    "One `manifest.toml`: it is a page. The standard parser takes 20 s for 64 KiB of `a.a.a.a`.",
)
LUA_FILES: Final = limit(
    "LUA_FILES", 256, "files", "Lua files of one plugin. All are read when it is loaded."
)
LUA_SOURCE_BYTES: Final = limit(
    "LUA_SOURCE_BYTES",
    1 * MIB,
    "bytes",
    "The same by weight: each adapter is given all of them. A large plugin has 100 KiB.",
)
LUA_ENTRIES: Final = limit(
    "LUA_ENTRIES",
    4096,
    "entries",
    "Files and directories looked at for them, so that a manifest in a home is soon refused.",
)
LUA_DEPTH: Final = limit("LUA_DEPTH", 8, "levels", "Directories within directories of one plugin.")
LUA_INSTRUCTIONS: Final = limit(
    "LUA_INSTRUCTIONS",
    5_000_000,
    "instructions",
    "Of Lua, in one call of a plugin's function: some 40 ms. A classifier takes a few thousand.",
)
LUA_MEMORY_BYTES: Final = limit(
    "LUA_MEMORY_BYTES",
    32 * MIB,
    "bytes",
    "What one plugin instance keeps and makes: a thousand times what a classifier needs.",
)
LUA_PROCESS_BYTES: Final = limit(
    "LUA_PROCESS_BYTES",
    256 * MIB,
    "bytes",
    "Address space of its process beyond what it starts with, should the limit above not hold.",
)
LUA_CPU_MS: Final = limit(
    "LUA_CPU_MS",
    250,
    "milliseconds",
    "Processor time of one call. Pattern matching counts no instructions, and the kernel ends it.",
)
LUA_DEADLINE_MS: Final = limit(
    "LUA_DEADLINE_MS",
    800,
    "milliseconds",
    "The same by the clock, on a machine that is busy. A caller hears of a stuck plugin within a "
    "second.",
)
LUA_START_MS: Final = limit(
    "LUA_START_MS",
    10_000,
    "milliseconds",
    "For a plugin's process to be there and its sources to be run, when all start at once.",
)
LUA_ANSWER_DEPTH: Final = limit(
    "LUA_ANSWER_DEPTH", 32, "levels", "Tables within tables of an answer, and of its arguments."
)
LUA_ANSWER_VALUES: Final = limit(
    "LUA_ANSWER_VALUES", 20_000, "values", "In one answer of a plugin's function."
)
LUA_ANSWER_BYTES: Final = limit(
    "LUA_ANSWER_BYTES", MIB, "bytes", "The same by weight: a plan with a large paste fits."
)
LUA_PROBLEM_CHARS: Final = limit(
    "LUA_PROBLEM_CHARS", 4 * KIB, "characters", "Of an error message of a plugin's own."
)
LUA_RESTING_MS: Final = limit(
    "LUA_RESTING_MS",
    5_000,
    "milliseconds",
    "How long a plugin that ends each time waits until it is tried again. It begins with 100.",
)
