"""The limits of `agent`, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

from telex.wire.limits import KIB, MIB

AGENT_FILE_BYTES: Final = 10 * MIB
"""bytes: A file that a tool reads whole, to number its lines and compute its hash."""
AGENT_READ_BYTES: Final = 64 * KIB
"""bytes: Text in one tool result, chosen for the context window of a model. The rest can be read
page by page."""
AGENT_READ_LINES: Final = 2000
"""lines: Lines in one result of `read`, unless the call asks for fewer."""
AGENT_LINE_CHARS: Final = 1000
"""characters: One line in a tool result; a minified file is one line."""
AGENT_LINE_PART_CHARS: Final = 100_000
"""characters: Part of one long line that a call of `read_line` can ask for."""
AGENT_DIFF_LINES: Final = 120
"""lines: Lines of the diff that is shown before a file is changed."""
AGENT_LISTED: Final = 1000
"""paths: Paths in one result of `list`, and matches in one result of `search`."""
AGENT_WALKED: Final = 200_000
"""entries: Directory entries visited by one `list`, by one `search` without ripgrep, and in the
search for links before a write that needs no question: a few seconds. A repository has fewer."""
AGENT_TODOS: Final = 200
"""entries: Entries in the todo list of one session."""
AGENT_SHELL_SECONDS: Final = 120
"""seconds: Default timeout of a command."""
AGENT_SHELL_MOST_SECONDS: Final = 300
"""seconds: Longest timeout that a call can ask for."""
AGENT_SHELL_GRACE_SECONDS: Final = 2
"""seconds: Time between SIGTERM and SIGKILL for the processes of a command."""
AGENT_SHELL_OUTPUT_BYTES: Final = 10 * MIB
"""bytes: Output of one command, both streams together; a command that writes more is killed."""
AGENT_EXCERPT_LINES: Final = 160
"""lines: Lines of one output stream in a result: half from its beginning, half from its end."""
AGENT_EXCERPT_BYTES: Final = 64 * KIB
"""bytes: Bytes of one output stream in a result: half from its beginning, half from its end."""
AGENT_COMMAND_PREVIEW_CHARS: Final = 400
"""characters: Beginning of a command that is repeated in its result."""
AGENT_TOOL_RESULT_BYTES: Final = 192 * KIB
"""bytes: Result of any tool, also of a plugin's: more than two excerpts. The whole result is in the
tool output cache."""
AGENT_CACHED_OUTPUTS: Final = 500
"""files: Files in the tool output cache; the oldest are deleted."""
AGENT_CACHED_BYTES: Final = 256 * MIB
"""bytes: Size of the tool output cache; the oldest files are deleted."""
AGENT_SKILLS: Final = 200
"""skills: Skills in one catalogue."""
AGENT_SKILLS_BYTES: Final = 32 * KIB
"""bytes: Names, descriptions and paths in one catalogue of skills."""
AGENT_SKILLS_DIRECTORIES: Final = 2000
"""directories: Directories that are searched for skills; a skill may contain a tree of files."""
AGENT_SKILLS_PLACES: Final = 64
"""catalogues: Catalogues of skills that a runtime caches; the oldest is dropped."""
AGENT_FRONTMATTER_BYTES: Final = 8 * KIB
"""bytes: YAML head of a skill. A name and a description have 1,088 characters at most."""
AGENT_SKILL_FILES: Final = 200
"""files: Files of one skill that the model gets a list of."""
AGENT_SKILL_BYTES: Final = 512 * KIB
"""bytes: A `SKILL.md`. Of a longer text than one tool result the rest is read page by page."""
AGENT_PROMPT_FILES: Final = 200
"""commands: Commands (`.telex/commands/*.md`) in one list."""
AGENT_PROMPT_BYTES: Final = 64 * KIB
"""bytes: The file of a command: it becomes part of an input."""
AGENT_COMMAND_CHARS: Final = 64 * KIB
"""characters: A shell command that is parsed to decide about its permission; a longer one asks."""
AGENT_COMMAND_WORDS: Final = 500
"""words: Words of a parsed shell command, each of which may be a path; a command with more asks."""
AGENT_COMMAND_DEPTH: Final = 8
"""levels: Nested `$(…)` in a parsed shell command; a command with more asks."""
AGENT_COMMAND_PLACES: Final = 8
"""directories: Directories that a command with `cd` may be in at its end; a command with more
asks."""
AGENT_BOUND_PATHS: Final = 10_000
"""paths: Paths that one command names when the person is asked about it; they are read again before
it runs, which takes half a second. A command with more is refused."""
AGENT_GLOB_NAMES: Final = 500
"""names: Names that the `*` and `?` of a command may match; a command with more asks."""
AGENT_LINK_NAMES: Final = 20_000
"""names: Path components that are resolved in long links to judge one command: a quarter of a
second. With more, the target of a path counts as unknown."""
AGENT_GIT_CONFIG_BYTES: Final = MIB
"""bytes: A git configuration that is read before git runs without a question: thousands of
branches. A longer one asks."""
AGENT_GIT_INDEX_BYTES: Final = 64 * MIB
"""bytes: A git index that is searched for submodules: half a million files. A longer one asks."""
AGENT_GIT_REPOSITORIES: Final = 64
"""repositories: Repositories that git may read from one repository, through submodules; more
ask."""
AGENT_TEXT_NAMES: Final = 2000
"""names: Names in the text of a command that are checked as paths; a command with more asks."""
AGENT_EVENT_BYTES: Final = 8 * MIB
"""bytes: One event with its meta, or one input, question or answer in the agent's store: with the
message around it, it must fit LINE_BYTES."""
STORE_COMMIT_WRITES: Final = 1024
"""writes: Writes to the agent's store that share one commit. Further writes wait for the next
commit, so that the first do not wait for all."""
STORE_BUSY_SECONDS: Final = 5
"""seconds: Wait for another process to release the agent's store, before the writer gets an
error."""
STORE_PAGE_BYTES: Final = 1 * MIB
"""bytes: Events read from the agent's store at a time; the last event may exceed it."""
STORE_LOG_BYTES: Final = 64 * MIB
"""bytes: SQLite's write-ahead log that is kept for the next writes; a longer one is truncated."""
STORE_LINE_BYTES: Final = 64 * MIB
"""bytes: One line of an exported session: a run's input, its text and its meta."""
STORE_IMPORT_LINES: Final = 2000
"""lines: Lines of an import in one commit: about 30 ms, so that runs of other processes hardly wait
for it."""
STORE_IMPORT_BYTES: Final = 1 * MIB
"""bytes: Bytes of an import in one commit; the last line may exceed it."""
STORE_OWED_SECONDS: Final = 2
"""seconds: Time between two tries to store the end of a run that could not be written."""
STORE_PROBLEMS: Final = 100
"""problems: Problems that one `telex agent verify` reports."""
AGENT_RUNS: Final = 32
"""runs: Active runs in one runtime; a session has at most one."""
AGENT_EVENTS_AHEAD: Final = 64
"""events: Events of one run that are being stored while its core continues; at more, the core
waits."""
AGENT_FEED_ITEMS: Final = 1024
"""notices: Notices queued for a UI that reads slowly. At more, the feed reads the events from the
store later."""
AGENT_FEED_RETRY_SECONDS: Final = 1
"""seconds: Time between two tries to read events for a UI from a store that cannot be read."""
AGENT_STEERED: Final = 64
"""messages: Texts of `run.steer` that the core of a run has not read yet; a further one is
refused."""
AGENT_CANCEL_SECONDS: Final = 15
"""seconds: Time for a core to stop after a cancel: more than the processes of a command have. After
it the run ends without waiting for the core, and actions of the core are refused."""
AGENT_CLIENT_MESSAGES: Final = 1024
"""messages: Of one run that a client has received and its program has not taken. Later ones are
dropped, and events among them are requested again (`run.attach`) once the program has caught up."""
AGENT_CLIENT_INITIALIZE_SECONDS: Final = 60
"""seconds: Until a runtime that a client started or connected to answers `initialize`: a busy
machine needs seconds to start Python, and a server of another protocol never answers."""
AGENT_CLIENT_UNATTENDED_SECONDS: Final = 1
"""seconds: For which a question waits in the blocking client while no thread waits for its run;
then it is answered in the callback thread. A program needs less between `run_start` and `run.wait`,
and its own thread is the one that Ctrl-C interrupts."""
AGENT_CLIENT_CALLBACK_CANCEL_SECONDS: Final = 5
"""seconds: For which closing a client waits for async functions that answer questions and were
cancelled: time to close a dialog. A function that ignores its cancellation must not block the
program for ever."""
AGENT_CLIENT_RECONNECT_SECONDS: Final = 30
"""seconds: For which a client dials again after its connection was lost, by default: longer than a
server needs to restart."""
MODEL_ANSWER_CHARS: Final = 16 * MIB
"""characters: One answer of a model: texts, reasoning and arguments. A million tokens are about a
quarter."""
MODEL_ANSWER_PARTS: Final = 1000
"""parts: Texts, reasonings and tool calls in one answer of a model."""
MODEL_STREAM_BYTES: Final = 512 * MIB
"""bytes: The stream of one answer. A piece of one character takes about 250 bytes of it."""
MODEL_EVENT_BYTES: Final = 32 * MIB
"""bytes: One event in the stream of an answer. The last one of `/responses` repeats the whole
answer."""
MODEL_OUTPUT_TOKENS: Final = 8192
"""tokens: Longest answer that is asked for in the dialect `messages`, which needs a number, if
neither the request nor the configuration has one."""
MODEL_ERROR_BYTES: Final = 64 * KIB
"""bytes: The body of a response that is an error. Proxies send whole pages."""
MODEL_ATTEMPTS: Final = 5
"""attempts: Attempts of one call of a model. With the waits between them this is about half a
minute."""
MODEL_RETRY_AFTER_SECONDS: Final = 120
"""seconds: Longest wait that a provider can ask for by `Retry-After`; a longer one ends the
call."""
MODEL_CONNECT_SECONDS: Final = 10
"""seconds: Time for a connection to the server of a model."""
MODEL_FIRST_SECONDS: Final = 600
"""seconds: Default time until the first piece of an answer. A local model reads a long prompt
first, and a hosted one may reason in silence."""
MODEL_SILENCE_SECONDS: Final = 300
"""seconds: Default time between two pieces of an answer. A model that reasons may be silent for
minutes after its first event."""
MODEL_END_SECONDS: Final = 1
"""seconds: Time for a server to end its stream after a whole answer. Then the connection is closed,
and the next call opens another."""
MODEL_PROBE_SECONDS: Final = 1
"""seconds: Time for a local server to say which models it has."""
MODEL_KEY_SECONDS: Final = 60
"""seconds: Time for a command that prints a key; a password manager may ask the person first."""
MODEL_KEY_BYTES: Final = 16 * KIB
"""bytes: One key. The longest in use are tokens of about 4 KiB."""
MODEL_KEY_CACHE_SECONDS: Final = 300
"""seconds: How long the key that a command printed is used. A step of a run calls the model every
few seconds; tokens that expire live for an hour."""
MODEL_LISTED: Final = 1000
"""models: Models that a server may list; OpenRouter has about 400."""
MODEL_LIST_BYTES: Final = 8 * MIB
"""bytes: The list of the models of a server. OpenRouter's is 1 MB."""
AGENT_UNDO_BYTES: Final = 256 * MIB
"""bytes: Old contents of files that agents changed, kept for `history.undo`, all sessions together:
thousands of source files. The oldest are deleted."""
AGENT_IMAGE_BYTES: Final = 5 * MIB
"""bytes: One image of an input or of a tool. Anthropic takes no larger one; in base64 it fits
AGENT_EVENT_BYTES."""
AGENT_SCREENSHOT_BYTES: Final = 1 * MIB
"""bytes: An image of a tool that its event carries in base64; a larger one is read by
`artifact.read`. Events are stored and replayed whole."""
AGENT_INPUT_IMAGES: Final = 10
"""images: Images in one input. Each costs about 1,600 tokens in every later call; all together must
fit LINE_BYTES."""
AGENT_IMAGES_BYTES: Final = 512 * MIB
"""bytes: Images of all sessions together: about a thousand screenshots. The oldest are deleted, and
a model gets a text in their place."""
AGENT_CLIPBOARD_BYTES: Final = 1 * MIB
"""bytes: A text of the clipboard that a model reads; of a longer one people copy the wrong
thing."""
AGENT_INSTRUCTION_BYTES: Final = 64 * KIB
"""bytes: Text of the AGENTS.md files of a project that a model gets with each call; the rest is
cut."""
AGENT_MODEL_STEPS: Final = 200
"""calls: Calls of a model in one run, unless --max-steps says otherwise: a model that calls tools
without an end must not spend money without an end."""
AGENT_SUMMARY_FILES: Final = 30
"""files: Names of files that a summary of a conversation repeats."""
AGENT_SUMMARY_RESULT_BYTES: Final = 4 * KIB
"""bytes: Of one tool call or result that the call gets which summarizes a conversation."""
MCP_TOOLS: Final = 256
"""tools: Tools of one MCP server; GitHub's has about 100. The rest is left out."""
MCP_LIST_PAGES: Final = 100
"""pages: Pages of one list of tools, so that a list without an end ends."""
MCP_SCHEMA_BYTES: Final = 32 * KIB
"""bytes: JSON Schema of one tool of an MCP server, about 8,000 tokens. A larger one is replaced by
`any object`."""
MCP_SCHEMA_DEPTH: Final = 32
"""levels: Nesting of such a schema; providers refuse deeper ones."""
MCP_SCHEMA_ITEMS: Final = 500
"""elements: One list in such a schema. The meta-schema compares all elements of some lists."""
MCP_SCHEMA_ODD_ITEMS: Final = 64
"""elements: One list in such a schema that is neither of texts only nor of numbers only, whose
elements are compared each with each."""
MCP_DESCRIPTION_CHARS: Final = 4096
"""characters: Description of one tool of an MCP server."""
MCP_LIST_BYTES: Final = 1 * MIB
"""bytes: Descriptions and schemas of all tools of one MCP server. The rest is left out."""
MCP_RESULT_CHARS: Final = 4 * MIB
"""characters: Text of one result of an MCP server; of a long one a model gets an excerpt, and the
rest is in the cache of outputs."""
MCP_BLOCKS: Final = 1000
"""blocks: Blocks of one result of an MCP server that are read."""
MCP_STRUCTURED_BYTES: Final = 64 * KIB
"""bytes: Structured content of a result that its event carries; of a larger one the text
remains."""
MCP_UNASKED_MESSAGES: Final = 20_000
"""messages: Messages and other lines of an MCP server since its start or the last call of a tool; a
server that sends more is stopped."""
MCP_UNASKED_BYTES: Final = 64 * MIB
"""bytes: Their size, also of one answer over HTTP."""
MCP_BUFFERED_BYTES: Final = 1 * MIB
"""bytes: Messages of an MCP server that wait to be read; meanwhile its writes block."""
MCP_LOG_BYTES: Final = 1 * MIB
"""bytes: The log of one MCP server. A full one becomes NAME.log.1, in place of the one before."""
MCP_EXIT_SECONDS: Final = 2
"""seconds: Time for an MCP server to exit after its standard input closed, and again after
SIGTERM."""
MCP_CLOSE_SECONDS: Final = 5
"""seconds: Time for the end of a session over HTTP, before its connections are cut."""
MCP_LISTED_SECONDS: Final = 10
"""seconds: How long the first step of a run waits for MCP servers that start. Tools of a slower one
are offered from a later step on."""
MCP_FAILURES: Final = 5
"""failures: Failures of an MCP server within MCP_FAILURE_SECONDS, after which it is not started
again until they are old."""
MCP_FAILURE_SECONDS: Final = 180
"""seconds: The time in which failures of an MCP server count."""
MCP_BACKOFF_SECONDS: Final = 1
"""seconds: Wait before an MCP server is started again; it doubles with each recent failure."""
MCP_LOGIN_SECONDS: Final = 600
"""seconds: Time for the person to agree in the browser."""
AGENT_FILLED_CHARS: Final = 4 * MIB
"""characters: Arguments in all their places in a command. A pasted log fits, a thousand of them do
not."""
AGENT_ADAPTER_PROGRAMS: Final = 16
"""programs: TUIs of one adapter that are used as a model: one for each thread, until the agent
ends."""
AGENT_SECRETS_MASKED: Final = 16
"""texts: Passwords that the person typed for programs of one terminal, and that are masked in what
the model sees of it."""
AGENT_LEASE_SECONDS: Final = 600
"""seconds: How long a call waits while a person holds its terminal. After that the model is told
who does."""
