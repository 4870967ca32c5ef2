-- What this plugin offers, as `plugin.describe` tells it.

local FORCE = { type = "boolean", description = "Send it whatever the state." }

local function needs(properties, ...)
  return { type = "object", properties = properties, required = { ... } }
end

local function text(description)
  return { type = "string", description = description }
end

local INTENTS = {
  {
    name = "evaluate",
    description = "Evaluate code and show its value, as if typed. Code of several lines goes in as one call, so that blank lines "
      .. "in it do no harm. At a debugger's prompt, one line for it. Refused with not_at_prompt or line_not_empty.",
    params_schema = needs({ code = text("Python, of one or more lines."), force = FORCE }, "code"),
  },
  {
    name = "answer",
    description = "Answer what the code asks by input(); refused with no_input_asked.",
    params_schema = needs({ text = text("One line."), force = FORCE }, "text"),
  },
  { name = "interrupt", description = "Press Ctrl-C: KeyboardInterrupt, or the typed line dropped." },
  { name = "exit", description = "End the interpreter (Ctrl-D at its prompt).", params_schema = { type = "object", properties = { force = FORCE } } },
  { name = "type", description = "Type characters, without Enter.", params_schema = needs({ text = text("The characters.") }, "text") },
  { name = "key", description = "Press a key, like enter, up, ctrl_a.", params_schema = needs({ key = text("Its name.") }, "key") },
}

local WAIT_MATCHERS = {
  {
    name = "wait_turn_matcher",
    description = "Until a prompt is back after what was last sent, or a person is needed (input, an unfinished line), or it ended.",
  },
  { name = "wait_prompt_matcher", description = "Until `>>>` or a debugger's prompt is back after what was last sent, or it ended." },
  {
    name = "wait_output_matcher",
    description = "Until the code has printed a text (its echo does not count), or the transcript matches an RE2 pattern.",
    params_schema = {
      type = "object",
      properties = { text = text("The text."), regex = text("A pattern, looked for in the whole transcript.") },
    },
  },
}

local STATES = {
  { name = "starting", description = "Nothing was printed yet." },
  {
    name = "prompt",
    description = "`>>>`: code can be evaluated. metadata: prompt, typed, result (what the last code printed), result_truncated, error {type, message}.",
  },
  { name = "continuation", description = "`...`: the statement is not complete." },
  { name = "running", description = "Code runs." },
  { name = "input", description = "Code seems to ask for a line (input). metadata: asked." },
  { name = "debugger", description = "(Pdb): the debugger asks. metadata: as for prompt." },
  { name = "exited", description = "The interpreter ended." },
  { name = "unknown", description = "None of these can be told." },
}

return function()
  return { intents = INTENTS, wait_matchers = WAIT_MATCHERS, states = STATES }
end
