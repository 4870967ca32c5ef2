-- Checks before an intent types: the expected dialog is shown, or no dialog.
--
-- Enter that is pressed a moment too late answers another question than the intended one. So every intent
-- that answers a dialog checks first, and refuses with a code.

local classifier = require("classifier")

local dialogs = {}

-- The name of each state in a message.
dialogs.NAMES = {
  waiting_for_login = "a login",
  waiting_for_trust = "the question whether to trust the folder",
  waiting_for_model_select = "the model picker",
  waiting_for_enter_plan_mode = "the question whether to enter plan mode",
  waiting_for_plan_approval = "a plan to approve",
  waiting_for_permission = "a permission to give",
  waiting_for_external_editor = "an external editor",
  usage_screen = "the usage panel",
  local_ui_screen = "a panel",
}

local function is_one_of(state, states)
  for _, each in ipairs(states) do
    if state == each then
      return true
    end
  end
  return false
end

local function check_id(params, seen)
  if params.dialog_id == nil then
    return
  end
  local now = seen.metadata and seen.metadata.dialog_id
  if params.dialog_id ~= now then
    local instead = now and "dialog " .. now or "a dialog without an id"
    local message = string.format(
      "dialog %s is not on the screen any more, but %s; read the state again",
      tostring(params.dialog_id),
      instead
    )
    telex.refuse("stale_dialog", message)
  end
end

-- Return the scene if its state is one of these; refuse otherwise.
function dialogs.expect(states, params, ctx)
  local seen, scene = classifier.look(ctx)
  if not is_one_of(seen.state, states) then
    local message = "the screen shows no dialog that this intent answers; its state is " .. seen.state
    telex.refuse("no_dialog", message)
  end
  check_id(params, seen)
  return scene
end

-- Refuse if the screen shows a dialog that would take typed text as an answer.
function dialogs.expect_none(params, ctx)
  local seen = classifier.look(ctx)
  local name = dialogs.NAMES[seen.state]
  -- The usage report in the conversation does not replace the input box.
  if name and seen.rule ~= "usage.report" and not params.force then
    local message = name .. " is on the screen and would get what is typed; answer it first, "
      .. "or send this with force"
    telex.refuse("dialog_open", message)
  end
end

return dialogs
