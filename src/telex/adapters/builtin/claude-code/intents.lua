-- The intents: each returns the keys and texts to type.
--
-- An intent gets its parameters and the context before it types. An intent that answers a dialog checks
-- that this dialog is shown; an intent that types a text checks that no dialog would receive it.

local classifier = require("classifier")
local dialogs = require("dialogs")
local drafts = require("drafts")
local keys = require("keys")

local action = telex.action

local intents = {}

local ANSWERABLE = {
  "waiting_for_permission",
  "waiting_for_plan_approval",
  "waiting_for_enter_plan_mode",
  "waiting_for_model_select",
}
local DISMISSABLE = {
  "waiting_for_permission",
  "waiting_for_plan_approval",
  "waiting_for_enter_plan_mode",
  "waiting_for_model_select",
  "usage_screen",
  "local_ui_screen",
}
local WITH_OPTIONS = {
  "waiting_for_permission",
  "waiting_for_plan_approval",
  "waiting_for_enter_plan_mode",
  "waiting_for_model_select",
  "waiting_for_trust",
  "waiting_for_login",
  "waiting_for_user_input",
}
local TRUST = { "waiting_for_trust" }
local WELCOME = { "starting", "waiting_for_login", "unknown" }

local function plan(actions, last_intent)
  return { actions = actions, last_intent = last_intent }
end

-- A plan after which the screen will change: remembers the old screen for waits.
local function moving_plan(ctx, actions, last_intent)
  classifier.remember(ctx)
  return plan(actions, last_intent)
end

-- Return a parameter that must be a text and not empty.
local function text_of(params, name)
  local value = params[name]
  if type(value) ~= "string" or not value:find("%S") then
    telex.refuse("bad_params", name .. " must be a text that is not empty")
  end
  return value
end

-- The text for the input box, and the last intent after it was sent.
local function ordered(params, ctx, text, intent)
  local retry = params.retry_ms
  if retry ~= nil and (math.type(retry) ~= "integer" or retry < 1 or retry > 2000) then
    telex.refuse("bad_params", "retry_ms must be a whole number from 1 to 2000")
  end
  dialogs.expect_none(params, ctx)
  return { text = text, intent = intent, force = params.force == true, retry_ms = retry }
end

function intents.send_prompt(params, ctx)
  local prompt = text_of(params, "prompt")
  return drafts.begin(ordered(params, ctx, prompt, "prompt_submitted"), ctx)
end

function intents.steer(params, ctx)
  local prompt = text_of(params, "prompt")
  return drafts.begin(ordered(params, ctx, prompt), ctx)
end

-- A slash command is not a turn: its output must not be taken for the answer to a prompt.
function intents.slash_command(params, ctx)
  local command = text_of(params, params.command ~= nil and "command" or "name")
  local slashed = command:sub(1, 1) == "/" and command or "/" .. command
  return drafts.begin(ordered(params, ctx, slashed, ""), ctx)
end

function intents.attach_file(params, ctx)
  local path = text_of(params, "path")
  local order = ordered(params, ctx, path)
  order.leaves = true
  return drafts.begin(order, ctx)
end

-- Enter selects the highlighted option. Refuse if that option is a denial.
function intents.approve(params, ctx)
  local scene = dialogs.expect(ANSWERABLE, params, ctx)
  local pointed = scene.menu and scene.menu.options[scene.menu.pointed].label
  if pointed and pointed:lower():find("^no%f[%A]") then
    local message = "the dialog highlights %q; use choose_option"
    telex.refuse("not_selected", message:format(pointed))
  end
  return moving_plan(ctx, { action.key("enter") })
end

-- Escape ends the turn of the dialog. There is no answer to wait for, so the prompt is forgotten.
function intents.deny(params, ctx)
  dialogs.expect(DISMISSABLE, params, ctx)
  return moving_plan(ctx, { action.key("escape") }, "")
end

local function listed(options)
  local lines = {}
  for _, option in ipairs(options) do
    lines[#lines + 1] = string.format("%d. %s", option.number, option.label)
  end
  return table.concat(lines, "; ")
end

-- Options whose label is this text, or else begins with it, in upper or lower case.
local function labelled(options, words)
  local wanted, exact, near = words:lower(), {}, {}
  for _, option in ipairs(options) do
    local label = option.label:lower()
    if label == wanted then
      exact[#exact + 1] = option
    elseif label:sub(1, #wanted) == wanted then
      near[#near + 1] = option
    end
  end
  return #exact > 0 and exact or near
end

local function numbered(options, number)
  for _, option in ipairs(options) do
    if option.number == number then
      return { option }
    end
  end
  return {}
end

-- The requested option: a number or a label, not both.
local function wanted_option(params)
  local index, option = params.index, params.option
  if (index == nil) == (option == nil) then
    telex.refuse("bad_params", "pass either index or option")
  elseif index ~= nil and math.type(index) ~= "integer" then
    telex.refuse("bad_params", "index must be a whole number")
  elseif option ~= nil and (type(option) ~= "string" or not option:find("%S")) then
    telex.refuse("bad_params", "option must be a number or a label, as text")
  end
  return index or (option:match("^%d+$") and math.tointeger(tonumber(option))) or option
end

function intents.choose_option(params, ctx)
  local wanted = wanted_option(params)
  local scene = dialogs.expect(WITH_OPTIONS, params, ctx)
  if not scene.menu then
    telex.refuse("no_dialog", "the screen shows no options to choose from")
  end
  local options = scene.menu.options
  local found = type(wanted) == "string" and labelled(options, wanted) or numbered(options, wanted)
  if #found ~= 1 then
    local many = #found > 1 and "more than one option begins with %s" or "no option is %s"
    local message = many .. "; there are: %s"
    telex.refuse("unknown_option", message:format(tostring(wanted), listed(options)))
  end
  return moving_plan(ctx, { action.text(tostring(found[1].number)), action.key("enter") })
end

function intents.cancel()
  return plan({ action.key("escape") }, "cancelling")
end

function intents.force_cancel()
  return plan({ action.key("escape"), action.key("escape") }, "cancelling")
end

function intents.key(params)
  local words = params.key
  if type(words) ~= "string" or words == "" then
    telex.refuse("bad_params", "key must be the name of a key or a text to type")
  end
  local name = keys.named(words)
  return plan({ name and action.key(name) or action.text(words) })
end

function intents.approve_trust(params, ctx)
  dialogs.expect(TRUST, params, ctx)
  return moving_plan(ctx, { action.text("1"), action.key("enter") })
end

function intents.deny_trust(params, ctx)
  dialogs.expect(TRUST, params, ctx)
  return moving_plan(ctx, { action.text("2"), action.key("enter") })
end

-- The panel of a first start may have no other known text than the welcome.
function intents.dismiss_welcome(params, ctx)
  local scene = dialogs.expect(WELCOME, params, ctx)
  if scene.menu or not ctx.screen:lower():find("welcome", 1, true) then
    telex.refuse("no_dialog", "the screen shows no welcome that Enter would dismiss")
  end
  return moving_plan(ctx, { action.key("enter") })
end

function intents.expand()
  return plan({ action.key("ctrl_o") })
end

function intents.model_effort_left()
  return plan({ action.key("left") })
end

function intents.model_effort_right()
  return plan({ action.key("right") })
end

return intents
