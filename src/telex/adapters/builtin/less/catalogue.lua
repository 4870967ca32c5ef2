-- Intents, wait matchers and states of this plugin, as `plugin.describe` returns them.

local FORCE = { type = "boolean", description = "Send it in any state." }

local function text(description)
  return { type = "string", description = description }
end

local function whole(description, most)
  return { type = "integer", minimum = 0, maximum = most, description = description }
end

local function flag(description)
  return { type = "boolean", description = description }
end

local function moving(name, description)
  return { name = name, description = description, params_schema = { type = "object", properties = { force = FORCE } } }
end

local INTENTS = {
  {
    name = "search",
    description = "Search for a pattern (a regular expression). Refused, as every intent but cancel, with not_viewing while less waits for other input.",
    params_schema = {
      type = "object",
      properties = {
        pattern = text("What to look for."),
        backward = flag("Towards the beginning."),
        literal = flag("The pattern is plain text."),
        force = FORCE,
      },
      required = { "pattern" },
    },
  },
  moving("next_match", "To the next match, in the direction of the search."),
  moving("previous_match", "To the match before."),
  moving("page_down", "One page on."),
  moving("page_up", "One page back."),
  moving("top", "To the first line."),
  moving("bottom", "To the last line."),
  {
    name = "go_to",
    description = "To a line, or to a percentage of the file: one of them.",
    params_schema = {
      type = "object",
      properties = { line = whole("Counted from 1.", 1000000000), percent = whole("0 to 100.", 100), force = FORCE },
    },
  },
  moving("quit", "End less, also from its help."),
  { name = "cancel", description = "Abort a typed search or command, or the wait for data (Ctrl-C)." },
}

local WAIT_MATCHERS = {
  { name = "wait_turn_matcher", description = "Until less waits for a command after the last input, or reports that it found nothing, or exited." },
  { name = "wait_end_matcher", description = "Until the end of the file is on the screen, or less exited." },
  {
    name = "wait_text_matcher",
    description = "Until a text is on the screen, or the screen matches an RE2 pattern.",
    params_schema = { type = "object", properties = { text = text("The text."), regex = text("The pattern.") } },
  },
}

local PLACE = "metadata: file, first_line, last_line, total_lines, percent, file_number, files, next_file, as far as the prompt shows them."

-- `input` is what the program waits for in this state; without it, other sources decide.
local STATES = {
  { name = "viewing", input = "pager", description = "A page of the file. " .. PLACE },
  { name = "at_end", input = "pager", description = "(END): the last page. " .. PLACE },
  { name = "searching", input = "pager", description = "A pattern is being typed. metadata: typed." },
  { name = "command", input = "pager", description = "A command, a number or an option is being typed." },
  { name = "help", input = "pager", description = "The summary of commands." },
  { name = "pattern_not_found", input = "pager", description = "The last search found nothing more." },
  { name = "message", input = "pager", description = "less shows a message, and waits for RETURN. metadata: message." },
  { name = "busy", input = "busy", description = "less waits for data, or searches." },
  { name = "exited", input = "exited", description = "less ended." },
  { name = "unknown", description = "The screen does not show less, or not yet." },
}

return function()
  return { intents = INTENTS, wait_matchers = WAIT_MATCHERS, states = STATES }
end
