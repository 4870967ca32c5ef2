-- What can be waited for: matchers for the host, and the predicates they ask.
--
-- A predicate runs elsewhere, with no memory of this adapter. So a matcher gives it what it needs:
-- the last intent, and what the conversation looked like before something was typed. Each matcher
-- names the quiet it wants besides, as the host looks again when that is over.

local checks = require("checks")
local classifier = require("classifier")

local matcher = telex.matcher

local matchers, predicates = {}, {}

local DIALOGS = {
  "waiting_for_login",
  "waiting_for_trust",
  "waiting_for_model_select",
  "waiting_for_enter_plan_mode",
  "waiting_for_plan_approval",
  "waiting_for_permission",
  "waiting_for_external_editor",
}
local READY = { "ready", "waiting_for_user_input", "completed_turn" }

-- States in which the program is at it, or cannot be told.
local UNDER_WAY = { thinking = true, cancelling = true, unknown = true }

local function threshold(params)
  local given = params.completed_turn_stable_ms
  return type(given) == "number" and given or 300
end

-- What a predicate of ours needs to see the moment as this adapter does.
local function known(params, ctx, more)
  local told = {
    completed_turn_stable_ms = threshold(params),
    last_intent = ctx and ctx.last_intent,
    baseline = classifier.baseline(),
  }
  for name, value in pairs(more or {}) do
    told[name] = value
  end
  return told
end

local function still(milliseconds)
  return matcher.screen_stable({ min_ms = milliseconds, since = "change" })
end

-- The predicate says so of a screen that stands still, or the program ends. It is asked twice: a
-- turn whose end is not shown is over only after a long silence.
local function settled(predicate, params, told)
  local asks = matcher.lua(predicate, told)
  return matcher.any({
    matcher.process_exited(),
    matcher.all({ still(threshold(params)), asks }),
    matcher.all({ still(checks.QUIET * threshold(params)), asks }),
  })
end

-- The end of a turn, or anything that needs a person.
function matchers.wait_turn_matcher(params, ctx)
  return settled("turn_over", params, known(params, ctx))
end

function matchers.wait_ready_matcher(params, ctx)
  return settled("in_state", params, known(params, ctx, { states = READY, welcome = true }))
end

function matchers.wait_dialog_matcher(params, ctx)
  return settled("in_state", params, known(params, ctx, { states = DIALOGS }))
end

-- This one is also asked of a screen that moves: thinking and cancelling never stand still.
function matchers.wait_state_matcher(params, ctx)
  local states = params.states
  if type(states) ~= "table" or #states == 0 then
    telex.refuse("bad_params", "states has to be a list of names of states, with one at least")
  end
  for _, state in ipairs(states) do
    if type(state) ~= "string" then
      telex.refuse("bad_params", "states has to be a list of names of states")
    end
  end
  local told = known(params, ctx, { states = states })
  return matcher.any({ matcher.lua("in_state", told), settled("in_state", params, told) })
end

-- The moment of a predicate, with what the matcher knew.
local function moment(input)
  local params = input.params or {}
  local told = {
    last_intent = params.last_intent,
    baseline = params.baseline,
    completed_turn_stable_ms = params.completed_turn_stable_ms,
  }
  return setmetatable(told, { __index = input })
end

local function answer(matched, seen)
  if not matched then
    return false
  end
  local evidence = { state = seen.state, rule = seen.rule }
  return { matched = true, evidence = evidence, capture = seen.state }
end

-- What the screen means now. It is nil while the screen is still the one that was answered: a slow
-- program shows a dialog for a while after its answer. After a long silence it is the next one.
local function look(input)
  local now = moment(input)
  local seen, scene = classifier.look(now)
  local old = checks.untouched(scene, now) and not checks.quiet(scene, now)
  return not old and seen or nil
end

-- Whether nothing more comes of what was typed by itself. A blank screen is no answer yet.
function predicates.turn_over(input)
  local seen = look(input)
  local over = seen and not UNDER_WAY[seen.state] and seen.rule ~= "starting.blank"
  return answer(over, seen)
end

-- Whether the state is one of `params.states`; with `params.welcome`, the welcome counts too.
function predicates.in_state(input)
  local seen, params = look(input), input.params or {}
  local matched = seen and params.welcome and seen.rule == "starting.welcome"
  for _, state in ipairs(params.states or {}) do
    matched = matched or seen and state == seen.state
  end
  return answer(matched, seen)
end

return { matchers = matchers, predicates = predicates }
