-- What this plugin offers, as `plugin.describe` tells it.

local FORCE = { type = "boolean", description = "Send it though the shell is not at an empty prompt." }

local function needs(properties, ...)
  return { type = "object", properties = properties, required = { ... } }
end

local function text(description)
  return { type = "string", description = description }
end

local INTENTS = {
  {
    name = "run",
    description = "Type a command and press Enter. Several lines are pasted as one where the shell's line editor can. "
      .. "Refused with not_at_prompt or line_not_empty. The shell is interactive: `!` means history there.",
    params_schema = needs({ command = text("The command, of one or more lines."), force = FORCE }, "command"),
  },
  {
    name = "answer_password",
    description = "Type a password and press Enter; refused with no_password_prompt unless something asks for one. "
      .. "It is told to nobody: not in states, not in evidence.",
    params_schema = needs({ password = text("The password.") }, "password"),
  },
  { name = "interrupt", description = "Press Ctrl-C: ends the command that runs, or drops the line that is typed." },
  { name = "eof", description = "Press Ctrl-D: the end of the input, or of the shell." },
  {
    name = "type",
    description = "Type characters, without Enter.",
    params_schema = needs({ text = text("The characters.") }, "text"),
  },
  {
    name = "key",
    description = "Press a key, like enter, tab, up, ctrl_r.",
    params_schema = needs({ key = text("The name of the key.") }, "key"),
  },
  { name = "clear", description = "Clear the screen (Ctrl-L); what is typed stays." },
}

local WAIT_MATCHERS = {
  {
    name = "wait_turn_matcher",
    description = "Until the prompt is back after what was last sent, or a person is needed (a password, an unfinished command), or the shell ended.",
  },
  { name = "wait_prompt_matcher", description = "Until the prompt is back after what was last sent, or the shell ended." },
  {
    name = "wait_output_matcher",
    description = "Until the last command has printed a text (its echo does not count), or the transcript matches an RE2 pattern.",
    params_schema = {
      type = "object",
      properties = { text = text("The text."), regex = text("A pattern, looked for in the whole transcript.") },
    },
  },
}

local STATES = {
  { name = "starting", description = "Nothing was printed yet." },
  { name = "prompt", description = "A command can be run. metadata: prompt, typed (what stands there already), exit_code, command, cwd." },
  { name = "running", description = "A command runs. metadata: command." },
  { name = "continuation", description = "The command is not complete: a quote or a block is open." },
  { name = "password_prompt", description = "Something asks for a secret, which answer_password gives." },
  { name = "exited", description = "The shell ended." },
  { name = "unknown", description = "None of these can be told." },
}

return function()
  return { intents = INTENTS, wait_matchers = WAIT_MATCHERS, states = STATES }
end
