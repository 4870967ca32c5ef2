-- The wait matchers, and the predicates they use.
--
-- A predicate runs in another worker, without the memory of this adapter. So a matcher passes what the
-- predicate needs: the last intent, and the conversation before the last input. Each matcher also names
-- the stable time it needs, because the host checks again after this time.

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

-- States in which the program works, or its state is unknown.
local UNDER_WAY = { thinking = true, cancelling = true, unknown = true }

local function threshold(params)
  local given = params.completed_turn_stable_ms
  return type(given) == "number" and given or 300
end

-- The parameters with which a predicate classifies a moment as this adapter does.
local function known(params, ctx, more)
  local passed = {
    completed_turn_stable_ms = threshold(params),
    last_intent = ctx and ctx.last_intent,
    baseline = classifier.baseline(),
  }
  for name, value in pairs(more or {}) do
    passed[name] = value
  end
  return passed
end

local function still(milliseconds)
  return matcher.screen_stable({ min_ms = milliseconds, since = "change" })
end

-- The predicate matches on a stable screen, or the program exits. There are two stable times: a turn
-- without an end marker is complete only after a long silence.
local function settled(predicate, params, passed)
  local asks = matcher.lua(predicate, passed)
  return matcher.any({
    matcher.process_exited(),
    matcher.all({ still(threshold(params)), asks }),
    matcher.all({ still(checks.QUIET * threshold(params)), asks }),
  })
end

-- The end of a turn, or a state that needs a person.
function matchers.wait_turn_matcher(params, ctx)
  return settled("turn_over", params, known(params, ctx))
end

function matchers.wait_ready_matcher(params, ctx)
  return settled("in_state", params, known(params, ctx, { states = READY, welcome = true }))
end

function matchers.wait_dialog_matcher(params, ctx)
  return settled("in_state", params, known(params, ctx, { states = DIALOGS }))
end

-- This matcher needs no stable screen: in the states thinking and cancelling the screen always changes.
function matchers.wait_state_matcher(params, ctx)
  local states = params.states
  if type(states) ~= "table" or #states == 0 then
    telex.refuse("bad_params", "states must be a list of at least one name of a state")
  end
  for _, state in ipairs(states) do
    if type(state) ~= "string" then
      telex.refuse("bad_params", "states must be a list of names of states")
    end
  end
  local passed = known(params, ctx, { states = states })
  return matcher.any({ matcher.lua("in_state", passed), settled("in_state", params, passed) })
end

-- The moment of a predicate, with the parameters of the matcher.
local function moment(input)
  local params = input.params or {}
  local passed = {
    last_intent = params.last_intent,
    baseline = params.baseline,
    completed_turn_stable_ms = params.completed_turn_stable_ms,
  }
  return setmetatable(passed, { __index = input })
end

local function answer(matched, seen)
  if not matched then
    return false
  end
  local evidence = { state = seen.state, rule = seen.rule }
  return { matched = true, evidence = evidence, capture = seen.state }
end

-- The state of the screen. It is nil while the screen still shows the dialog that was answered: a slow
-- program shows it for a while after the answer. After a long silence it counts as a new dialog.
local function look(input)
  local now = moment(input)
  local seen, scene = classifier.look(now)
  local old = checks.untouched(scene, now) and not checks.quiet(scene, now)
  return not old and seen or nil
end

-- Whether the turn is complete or needs a person. A blank screen is no answer yet.
function predicates.turn_over(input)
  local seen = look(input)
  local over = seen and not UNDER_WAY[seen.state] and seen.rule ~= "starting.blank"
  return answer(over, seen)
end

-- Whether the state is one of `params.states`; with `params.welcome`, also the welcome.
function predicates.in_state(input)
  local seen, params = look(input), input.params or {}
  local matched = seen and params.welcome and seen.rule == "starting.welcome"
  for _, state in ipairs(params.states or {}) do
    matched = matched or seen and state == seen.state
  end
  return answer(matched, seen)
end

return { matchers = matchers, predicates = predicates }
