-- Intents, wait matchers and states of this plugin, as `plugin.describe` returns them.

local function text(description)
  return { type = "string", description = description }
end

local function object(properties, required)
  return { type = "object", properties = properties, required = required }
end

local DIALOG_ID = text("the dialog to answer; refused as stale_dialog if another dialog is shown")
local FORCE = {
  type = "boolean",
  description = "type even if a dialog is shown, and clear a draft of another client",
}
local ANSWER = object({ dialog_id = DIALOG_ID })
local NOTHING = { type = "object" }
local RETRY = {
  type = "integer",
  description = "milliseconds after Enter before Enter is pressed again if the draft is still shown",
}
local PROMPT = object(
  { prompt = text("what to say"), force = FORCE, retry_ms = RETRY },
  { "prompt" }
)
local STABLE = {
  type = "integer",
  description = "how long the screen must be stable, in milliseconds",
}
local WAIT = object({ completed_turn_stable_ms = STABLE })

local function entry(name, description, params_schema)
  return { name = name, description = description, params_schema = params_schema }
end

-- `input` is what the program waits for in this state; without it, other sources decide.
local function state(name, input, description)
  return { name = name, input = input, description = description }
end

return {
  intents = {
    entry(
      "send_prompt",
      "Paste a prompt, press Enter when it is shown, and again while it is still shown; a turn begins.",
      PROMPT
    ),
    entry("approve", "Press Enter: accept the dialog.", ANSWER),
    entry("deny", "Press Escape: dismiss the dialog or panel.", ANSWER),
    entry(
      "choose_option",
      "Type the number of an option of the dialog, and press Enter.",
      object({
        index = { type = "integer", description = "the option's number" },
        option = text("the option's number, its label, or the start of its label"),
        dialog_id = DIALOG_ID,
      })
    ),
    entry("cancel", "Press Escape; the state is cancelling until the screen settles.", NOTHING),
    entry("force_cancel", "Press Escape twice, for a tool that is already running.", NOTHING),
    entry("steer", "Paste a prompt into a running turn and press Enter.", PROMPT),
    entry(
      "key",
      "Press a key by its name, like ctrl-c or page_up; any other text is typed.",
      object({ key = text("a key's name, or a text") }, { "key" })
    ),
    entry("approve_trust", "Trust the folder: type 1 and press Enter.", ANSWER),
    entry("deny_trust", "Do not trust the folder: type 2 and press Enter.", ANSWER),
    entry("dismiss_welcome", "Press Enter: leave the welcome of a first start.", NOTHING),
    entry("expand", "Press Ctrl+O: expand or collapse the output of a tool.", NOTHING),
    entry("model_effort_left", "Press Left: less effort, in the model picker.", NOTHING),
    entry("model_effort_right", "Press Right: more effort, in the model picker.", NOTHING),
    entry(
      "slash_command",
      "Paste a slash command and press Enter; no turn begins.",
      object({
        command = text("the command, with or without its slash"),
        name = text("the same, if command is absent"),
        force = FORCE,
      })
    ),
    entry(
      "attach_file",
      "Paste a path into the prompt, and leave it there.",
      object({ path = text("the path of a file"), force = FORCE }, { "path" })
    ),
  },
  wait_matchers = {
    entry("wait_turn_matcher", "The turn is complete, or a person is needed.", WAIT),
    entry("wait_ready_matcher", "A prompt can be sent.", WAIT),
    entry(
      "wait_state_matcher",
      "The state is one of these.",
      object({ states = { type = "array", items = { type = "string" } } }, { "states" })
    ),
    entry("wait_dialog_matcher", "A dialog that needs a person is shown.", WAIT),
  },
  states = {
    state("starting", nil, "The screen is blank, or shows its welcome and nothing was typed yet."),
    state("ready", "line", "The input box is shown and no work is in progress."),
    state("waiting_for_login", "menu", "A person has to log in; metadata.login.url has the address."),
    state("waiting_for_trust", "menu", "Is this folder trusted? metadata.trust.path, options, dialog_id."),
    state("waiting_for_model_select", "menu", "The model picker is shown; metadata.options."),
    state("waiting_for_enter_plan_mode", "menu", "May it enter plan mode? metadata.options."),
    state("waiting_for_plan_approval", "menu", "A plan to approve; metadata.plan, options, dialog_id."),
    state(
      "waiting_for_permission",
      "menu",
      "May a tool be used? metadata.permission has tool, summary, options; dialog_id."
    ),
    state("waiting_for_external_editor", "editor", "An editor was opened and has to be closed."),
    state("usage_screen", "key", "Costs or limits are shown; metadata.usage."),
    state("local_ui_screen", "key", "Another panel is shown that a person closes."),
    state("waiting_for_user_input", "menu", "An unknown prompt or menu is shown."),
    state(
      "unsent_draft",
      "line",
      "The input box has a text that was not sent; metadata.draft. The next prompt replaces it."
    ),
    state("thinking", "busy", "The program works, or a prompt was sent and has no answer yet."),
    state("cancelling", "busy", "A turn was cancelled and the screen is not stable yet."),
    state("completed_turn", "line", "The turn is complete and the input box is shown again."),
    state("error", "line", "The turn failed; metadata.error has kind and perhaps retry_after_s."),
    state("unknown", nil, "No rule matches, or the program has exited."),
  },
}
