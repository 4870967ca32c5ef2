-- Intents, wait matchers and states of this plugin, as `plugin.describe` returns them.

local FORCE = { type = "boolean", description = "Send it in any state." }

local function needs(properties, ...)
  return { type = "object", properties = properties, required = { ... } }
end

local function text(description)
  return { type = "string", description = description }
end

local INTENTS = {
  {
    name = "evaluate",
    description = "Evaluate code and show its value, as if typed. Code of several lines is sent as one call, so that it may "
      .. "contain blank lines. At a debugger's prompt, one line only. Refused with not_at_prompt or line_not_empty.",
    params_schema = needs({ code = text("Python, of one or more lines."), force = FORCE }, "code"),
  },
  {
    name = "answer",
    description = "Answer a call of input() in the code; refused with no_input_asked.",
    params_schema = needs({ text = text("One line."), force = FORCE }, "text"),
  },
  { name = "interrupt", description = "Press Ctrl-C: raises KeyboardInterrupt, or discards the typed line." },
  { name = "exit", description = "End the interpreter (Ctrl-D at its prompt).", params_schema = { type = "object", properties = { force = FORCE } } },
  { name = "type", description = "Type characters, without Enter.", params_schema = needs({ text = text("The characters.") }, "text") },
  { name = "key", description = "Press a key, like enter, up, ctrl_a.", params_schema = needs({ key = text("Its name.") }, "key") },
}

local WAIT_MATCHERS = {
  {
    name = "wait_turn_matcher",
    description = "Until a prompt is shown again after the last input, or input is needed (input(), the rest of a statement), or the interpreter exited.",
  },
  { name = "wait_prompt_matcher", description = "Until `>>>` or a debugger's prompt is shown again after the last input, or the interpreter exited." },
  {
    name = "wait_output_matcher",
    description = "Until the code has printed a text (its echo does not count), or the transcript matches an RE2 pattern.",
    params_schema = {
      type = "object",
      properties = { text = text("The text."), regex = text("A pattern, searched in the whole transcript.") },
    },
  },
}

-- `input` is what the program waits for in this state; without it, other sources decide.
local STATES = {
  { name = "starting", input = "busy", description = "Nothing was printed yet." },
  {
    name = "prompt", input = "line",
    description = "`>>>`: code can be evaluated. metadata: prompt, typed, result (the output of the last code), result_truncated, error {type, message}.",
  },
  { name = "continuation", input = "line", description = "`...`: the statement is not complete." },
  { name = "running", description = "Code runs." },
  { name = "input", input = "line", description = "Code seems to call input(). metadata: asked." },
  { name = "debugger", input = "line", description = "(Pdb): the debugger asks. metadata: as for prompt." },
  { name = "exited", input = "exited", description = "The interpreter ended." },
  { name = "unknown", description = "None of these states can be recognised." },
}

return function()
  return { intents = INTENTS, wait_matchers = WAIT_MATCHERS, states = STATES }
end
