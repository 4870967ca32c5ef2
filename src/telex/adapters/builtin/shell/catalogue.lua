-- Intents, wait matchers and states of this plugin, as `plugin.describe` returns them.

local FORCE = { type = "boolean", description = "Send it also if the shell is not at an empty prompt." }

local function needs(properties, ...)
  return { type = "object", properties = properties, required = { ... } }
end

local function text(description)
  return { type = "string", description = description }
end

local INTENTS = {
  {
    name = "run",
    description = "Type a command and press Enter. Several lines are pasted at once if the shell's line editor supports it. "
      .. "Refused with not_at_prompt or line_not_empty. The shell is interactive: `!` means history there.",
    params_schema = needs({ command = text("The command, of one or more lines."), force = FORCE }, "command"),
  },
  {
    name = "answer_password",
    description = "Type a password and press Enter; refused with no_password_prompt unless a program asks for one. "
      .. "The password does not appear in states or evidence.",
    params_schema = needs({ password = text("The password.") }, "password"),
  },
  { name = "interrupt", description = "Press Ctrl-C: interrupts the running command, or discards the typed line." },
  { name = "eof", description = "Press Ctrl-D: ends the input of a command, or the shell." },
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
  { name = "clear", description = "Clear the screen (Ctrl-L); the typed line stays." },
}

local WAIT_MATCHERS = {
  {
    name = "wait_turn_matcher",
    description = "Until the prompt is shown again after the last input, or input is needed (a password, the rest of a command), or the shell exited.",
  },
  { name = "wait_prompt_matcher", description = "Until the prompt is shown again after the last input, or the shell exited." },
  {
    name = "wait_output_matcher",
    description = "Until the last command has printed a text (its echo does not count), or the transcript matches an RE2 pattern.",
    params_schema = {
      type = "object",
      properties = { text = text("The text."), regex = text("A pattern, searched in the whole transcript.") },
    },
  },
}

-- `input` is what the program waits for in this state; without it, other sources decide.
local STATES = {
  { name = "starting", input = "busy", description = "Nothing was printed yet." },
  { name = "prompt", input = "shell", description = "A command can be run. metadata: prompt, typed (text already at the prompt), exit_code, command, cwd." },
  { name = "running", description = "A command runs. metadata: command." },
  { name = "continuation", input = "shell", description = "The command is not complete: a quote or a block is open." },
  { name = "password_prompt", input = "password", description = "A program asks for a secret; use answer_password." },
  { name = "exited", input = "exited", description = "The shell ended." },
  { name = "unknown", description = "None of these states can be recognised." },
}

return function()
  return { intents = INTENTS, wait_matchers = WAIT_MATCHERS, states = STATES }
end
