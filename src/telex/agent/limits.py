"""The maximums of `agent`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB, limit

AGENT_FILE_BYTES: Final = limit(
    "AGENT_FILE_BYTES",
    10 * MIB,
    "bytes",
    "One file that a tool reads whole, to number its lines and to know its hash.",
)
AGENT_READ_BYTES: Final = limit(
    "AGENT_READ_BYTES",
    64 * KIB,
    "bytes",
    "Of text in one answer of a tool: what a context window bears. The rest is asked for in turn.",
)
AGENT_READ_LINES: Final = limit(
    "AGENT_READ_LINES", 2000, "lines", "In one answer of `read`, unless fewer are asked for."
)
AGENT_LINE_CHARS: Final = limit(
    "AGENT_LINE_CHARS",
    1000,
    "characters",
    "Of one line in a tool's answer; a minified file is one line.",
)
AGENT_LINE_PART_CHARS: Final = limit(
    "AGENT_LINE_PART_CHARS",
    100_000,
    "characters",
    "Of one long line, where a part of it is asked for.",
)
AGENT_DIFF_LINES: Final = limit(
    "AGENT_DIFF_LINES", 120, "lines", "Of the difference shown before a file is changed."
)
AGENT_LISTED: Final = limit(
    "AGENT_LISTED", 1000, "paths", "In one answer of `list`, and matches in one of `search`."
)
AGENT_WALKED: Final = limit(
    "AGENT_WALKED",
    200_000,
    "entries",
    "Looked at by one `list` or `search` of our own, and for links before a write goes without a "
    "question: a few seconds; a repository has fewer.",
)
AGENT_TODOS: Final = limit("AGENT_TODOS", 200, "entries", "In one thread's list of things to do.")
AGENT_SHELL_SECONDS: Final = limit(
    "AGENT_SHELL_SECONDS", 120, "seconds", "For a command, unless another time is asked for."
)
AGENT_SHELL_MOST_SECONDS: Final = limit(
    "AGENT_SHELL_MOST_SECONDS", 300, "seconds", "The longest time that can be asked for."
)
AGENT_SHELL_GRACE_SECONDS: Final = limit(
    "AGENT_SHELL_GRACE_SECONDS",
    2,
    "seconds",
    "Between asking a command's processes to end and ending them.",
)
AGENT_SHELL_OUTPUT_BYTES: Final = limit(
    "AGENT_SHELL_OUTPUT_BYTES",
    10 * MIB,
    "bytes",
    "Of a command's output, both streams together; a command that writes more is ended.",
)
AGENT_EXCERPT_LINES: Final = limit(
    "AGENT_EXCERPT_LINES",
    160,
    "lines",
    "Of one output stream in an answer: half from its beginning, half from its end.",
)
AGENT_EXCERPT_BYTES: Final = limit(
    "AGENT_EXCERPT_BYTES", 64 * KIB, "bytes", "Of one output stream in an answer, in the same way."
)
AGENT_COMMAND_PREVIEW_CHARS: Final = limit(
    "AGENT_COMMAND_PREVIEW_CHARS", 400, "characters", "Of a command, repeated beside its result."
)
AGENT_TOOL_RESULT_BYTES: Final = limit(
    "AGENT_TOOL_RESULT_BYTES",
    192 * KIB,
    "bytes",
    "Of any tool's answer, a plugin's too: more than two excerpts. The whole is in the cache.",
)
AGENT_CACHED_OUTPUTS: Final = limit(
    "AGENT_CACHED_OUTPUTS", 500, "files", "Of tool output kept; the oldest leave."
)
AGENT_CACHED_BYTES: Final = limit(
    "AGENT_CACHED_BYTES", 256 * MIB, "bytes", "Of tool output kept; the oldest leave."
)
AGENT_SKILLS: Final = limit("AGENT_SKILLS", 200, "skills", "In one catalogue.")
AGENT_SKILLS_BYTES: Final = limit(
    "AGENT_SKILLS_BYTES", 32 * KIB, "bytes", "Of names, descriptions and paths in one catalogue."
)
AGENT_SKILLS_DIRECTORIES: Final = limit(
    "AGENT_SKILLS_DIRECTORIES",
    2000,
    "directories",
    "Looked into for skills; a skill may bring a tree of its own.",
)
AGENT_SKILLS_PLACES: Final = limit(
    "AGENT_SKILLS_PLACES", 64, "catalogues", "Kept by a runtime; the one looked for first leaves."
)
AGENT_FRONTMATTER_BYTES: Final = limit(
    "AGENT_FRONTMATTER_BYTES",
    8 * KIB,
    "bytes",
    "Of a skill's YAML. A name and a description have 1,088 characters at most.",
)
AGENT_COMMAND_CHARS: Final = limit(
    "AGENT_COMMAND_CHARS",
    64 * KIB,
    "characters",
    "Of a shell command that is read to be judged; a longer one asks.",
)
AGENT_COMMAND_WORDS: Final = limit(
    "AGENT_COMMAND_WORDS", 500, "words", "In such a command; each of them may be a path."
)
AGENT_COMMAND_DEPTH: Final = limit(
    "AGENT_COMMAND_DEPTH", 8, "levels", "Of `$(…)` in each other in such a command."
)
AGENT_COMMAND_PLACES: Final = limit(
    "AGENT_COMMAND_PLACES", 8, "directories", "That a command with `cd` may be in by its end."
)
AGENT_BOUND_PATHS: Final = limit(
    "AGENT_BOUND_PATHS",
    10_000,
    "paths",
    "Named by one command that a person is asked about, and looked at again before it runs: half a "
    "second; a command with more is refused.",
)
AGENT_GLOB_NAMES: Final = limit(
    "AGENT_GLOB_NAMES", 500, "names", "That `*` and `?` may stand for; one with more asks."
)
AGENT_LINK_NAMES: Final = limit(
    "AGENT_LINK_NAMES",
    20_000,
    "names",
    "Followed in long links to judge one command, a quarter of a second; where there are more, "
    "nobody can say where a path leads.",
)
AGENT_GIT_CONFIG_BYTES: Final = limit(
    "AGENT_GIT_CONFIG_BYTES",
    MIB,
    "bytes",
    "Of a git configuration that is read before git runs unasked: thousands of branches. A longer "
    "one asks.",
)
AGENT_GIT_INDEX_BYTES: Final = limit(
    "AGENT_GIT_INDEX_BYTES",
    64 * MIB,
    "bytes",
    "Of a git index that is searched for submodules: half a million files. A longer one asks.",
)
AGENT_GIT_REPOSITORIES: Final = limit(
    "AGENT_GIT_REPOSITORIES",
    64,
    "repositories",
    "That git may look into from one, by submodules; one with more asks.",
)
AGENT_TEXT_NAMES: Final = limit(
    "AGENT_TEXT_NAMES",
    2000,
    "names",
    "That the text of a command may hold, looked at as paths; one with more asks.",
)
AGENT_EVENT_BYTES: Final = limit(
    "AGENT_EVENT_BYTES",
    8 * MIB,
    "bytes",
    "One event with its meta, or one input, question or answer that the agent's store keeps: with "
    "what is put around it, it must fit LINE_BYTES.",
)
STORE_COMMIT_WRITES: Final = limit(
    "STORE_COMMIT_WRITES",
    1024,
    "writes",
    "To the agent's store that share one commit. More wait for the next, so that the first of them "
    "do not wait for all.",
)
STORE_BUSY_SECONDS: Final = limit(
    "STORE_BUSY_SECONDS",
    5,
    "seconds",
    "For another process to let go of the agent's store, before whoever writes is told.",
)
STORE_PAGE_BYTES: Final = limit(
    "STORE_PAGE_BYTES",
    1 * MIB,
    "bytes",
    "Of events read from the agent's store at a time, and the last of them beyond that.",
)
STORE_LOG_BYTES: Final = limit(
    "STORE_LOG_BYTES",
    64 * MIB,
    "bytes",
    "Of SQLite's write-ahead log that are kept for the next writes; after more it is cut.",
)
STORE_LINE_BYTES: Final = limit(
    "STORE_LINE_BYTES",
    64 * MIB,
    "bytes",
    "One line of an exported session: a run's input, its text and its meta.",
)
STORE_IMPORT_LINES: Final = limit(
    "STORE_IMPORT_LINES",
    2000,
    "lines",
    "Of an import in one commit: some 30 ms, so that runs of other processes hardly wait for it.",
)
STORE_IMPORT_BYTES: Final = limit(
    "STORE_IMPORT_BYTES", 1 * MIB, "bytes", "Of lines in one such commit, and the last beyond that."
)
STORE_OWED_SECONDS: Final = limit(
    "STORE_OWED_SECONDS",
    2,
    "seconds",
    "Between two tries to store the end of a run that the disk would not keep.",
)
STORE_PROBLEMS: Final = limit(
    "STORE_PROBLEMS", 100, "problems", "Told by one `telex agent verify`."
)
AGENT_RUNS: Final = limit(
    "AGENT_RUNS", 32, "runs", "Going on at once in one runtime; a session has one of them."
)
AGENT_EVENTS_AHEAD: Final = limit(
    "AGENT_EVENTS_AHEAD",
    64,
    "events",
    "Of one run on their way to the disk, while its core goes on; with more, it waits.",
)
AGENT_FEED_ITEMS: Final = limit(
    "AGENT_FEED_ITEMS",
    1024,
    "notices",
    "Kept for a UI that reads slowly. Beyond it, events are read from the store when it does.",
)
AGENT_FEED_RETRY_SECONDS: Final = limit(
    "AGENT_FEED_RETRY_SECONDS",
    1,
    "seconds",
    "Before what a UI has not heard yet is read again from a store that could not be read.",
)
AGENT_STEERED: Final = limit(
    "AGENT_STEERED", 64, "messages", "Said to a run that its core has not looked at yet."
)
AGENT_CANCEL_SECONDS: Final = limit(
    "AGENT_CANCEL_SECONDS",
    15,
    "seconds",
    "Until a core that does not stop is left behind: more than a command's processes have to end. "
    "Whatever it does then is refused.",
)
