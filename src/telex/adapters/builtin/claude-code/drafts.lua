-- The draft: text in the input box that was not sent. This file pastes, sends and clears it.
--
-- The program takes an Enter that follows a paste too soon as part of the paste, or drops it. So a
-- prompt is pasted, Enter is pressed when the paste is shown, and again while the draft is still shown.
-- Each step is a plan with a `next`, which checks the screen again. The number of presses is limited; a
-- text that could not be sent stays as a draft, and the state reports it.
--
-- The cursor shows whether the box has a draft: with a suggestion, which looks like a draft without its
-- colours, the cursor stays at the beginning. If the cursor is unknown, the text decides.

local classifier = require("classifier")
local dialogs = require("dialogs")
local hash = require("hash")
local screen = require("screen")

local action, matcher = telex.action, telex.matcher

local drafts = {}

drafts.PENDING = "prompt_pending"

local MOST_PRESSES = 5
local MOST_CLEARINGS = 12
local MOST_LOOKS = 8
local STARTS_WITHIN = 20000
local SHOWS_WITHIN = 10000
local SETTLES_WITHIN = 3000
local SETTLED = 20
local RETRY = 300
local HEAD = 24

-- The last text that was pasted to be sent, without blanks and hashed, and whether a file was attached.
-- If the adapter's worker was replaced, the host's last intent still has this information.
local ours, attached = nil, false

local function squeezed(text)
  local plain = text:gsub("\u{a0}", " "):gsub("%s+", "")
  return plain
end

local function still(milliseconds)
  return matcher.screen_stable({ min_ms = milliseconds, since = "change" })
end

-- Facts about a text without the text itself, for the predicates, which run in another worker.
local function facts(order)
  local text = squeezed(order.text)
  return { whole = hash.fnv1a(text), head = text:sub(1, HEAD), before = order.before }
end

-- Whether the box, or without a box the screen, has this text. Used if the cursor is unknown.
local function has_text(scene, known)
  local text = squeezed(screen.box_text(scene) or table.concat(screen.texts(scene)))
  if not scene.box then
    return known.head ~= "" and text:find(known.head, 1, true) ~= nil
  end
  return hash.fnv1a(text) == known.whole
    or text:find("[Pastedtext#", 1, true) ~= nil
    or (known.head ~= "" and text:sub(1, #known.head) == known.head)
end

-- "shows" or "empty" for the box; nil if there is no box and the text is not on the screen.
local function look(scene, moment, known)
  local draft = screen.draft(scene, moment.screen_cursor)
  if draft == nil then
    return has_text(scene, known) and "shows" or scene.box and "empty" or nil
  elseif draft == "" then
    return "empty"
  end
  return hash.fnv1a(squeezed(draft)) ~= known.before and "shows" or "empty"
end

-- Predicates: the draft is shown, or the box is empty again.
drafts.predicates = {}

function drafts.predicates.draft_shows(input)
  return look(classifier.scene(input), input, input.params) == "shows"
end

-- Whether the program shows an input box, or a dialog in its place: then the wait ends.
function drafts.predicates.input_shows(input)
  local seen, scene = classifier.look(input)
  return scene.box ~= nil or scene.bare ~= nil or dialogs.NAMES[seen.state] ~= nil
end

function drafts.predicates.draft_gone(input)
  return look(classifier.scene(input), input, input.params) == "empty"
end

-- A plan that continues with `intent` when the matcher matches, or after `within`.
local function going_on(actions, order, intent, when, within, last_intent)
  return {
    actions = actions,
    last_intent = last_intent,
    next = { intent = intent, when = when, within_ms = within, params = { order = order } },
  }
end

-- The predicate on a stable screen, because a screen that is being redrawn may lack the draft. While the
-- program works, the screen is never stable.
local function settled(predicate, order)
  local asks = matcher.lua(predicate, facts(order))
  return order.at_work and asks or matcher.all({ still(SETTLED), asks })
end

local function pasted(order, ctx)
  local draft = screen.draft(classifier.scene(ctx), ctx.screen_cursor)
  order.before = draft and draft ~= "" and hash.fnv1a(squeezed(draft)) or nil
  order.presses, order.looks = 0, 0
  ours = not order.leaves and hash.fnv1a(squeezed(order.text)) or ours
  local last_intent = order.intent == "prompt_submitted" and drafts.PENDING or nil
  local paste = { action.bracketed_paste(order.text) }
  return going_on(paste, order, "submit_draft", settled("draft_shows", order), SHOWS_WITHIN, last_intent)
end

local function clearing(order, scene)
  local keys = {}
  for _ = 1, math.min(2 * (scene.box.bottom - scene.box.top) + 2, 200) do
    keys[#keys + 1] = action.key("ctrl_u")
  end
  order.clearings = (order.clearings or 0) + 1
  return going_on(keys, order, "clear_draft", settled("draft_gone", order), SETTLES_WITHIN)
end

local function is_ours(scene)
  return ours ~= nil and hash.fnv1a(squeezed(screen.box_text(scene))) == ours
end

-- The text in the box that was not sent; nil if there is no such text.
local function unsent(scene, ctx)
  local draft = scene.box and screen.draft(scene, ctx.screen_cursor)
  if scene.box and draft == nil and is_ours(scene) then
    draft = screen.box_text(scene)
  end
  return draft and draft ~= "" and draft or nil
end

-- Paste a text into the box and, unless the order `leaves` it there, send it. `order` has `text`,
-- `intent` (the last intent after it was sent), `force` and `retry_ms`.
function drafts.begin(order, ctx)
  classifier.remember(ctx)
  local seen, scene = classifier.look(ctx)
  local draft = unsent(scene, ctx)
  if order.force and not scene.box then -- paste into whatever is shown instead
    local typed = { action.bracketed_paste(order.text), not order.leaves and action.key("enter") or nil }
    return { actions = typed, last_intent = order.intent }
  end
  if not (scene.box or scene.bare) then -- text typed before the program reads is lost, or echoed
    local when = settled("input_shows", order)
    return going_on({}, order, "begin_draft", when, STARTS_WITHIN)
  end
  order.at_work = seen.state == "thinking"
  attached = attached and draft ~= nil
  if not draft or attached then
    return pasted(order, ctx)
  elseif order.force or ctx.last_intent == drafts.PENDING or is_ours(scene) then
    return clearing(order, scene)
  end
  local message = "the input box has a draft that was not sent: %q; send it with the key enter, "
    .. "clear it, or send this with force, which clears it"
  telex.refuse("unsent_draft", message:format(draft:sub(1, 80)))
end

drafts.steps = {}

local function order_of(params)
  local order = params.order
  if type(order) ~= "table" or type(order.text) ~= "string" then
    telex.refuse("bad_params", "this function is a step of another intent and cannot be called directly")
  end
  return order
end

function drafts.steps.begin_draft(params, ctx)
  local order, scene = order_of(params), classifier.scene(ctx)
  dialogs.expect_none(order, ctx)
  if not (scene.box or scene.bare) then
    local message = "there is no input box on the screen; wait for the state ready, "
      .. "or send this with force, which types it all the same"
    telex.refuse("no_input", message)
  end
  return drafts.begin(order, ctx)
end

function drafts.steps.clear_draft(params, ctx)
  local order, scene = order_of(params), classifier.scene(ctx)
  if not unsent(scene, ctx) then
    return pasted(order, ctx)
  elseif order.clearings < MOST_CLEARINGS then
    return clearing(order, scene)
  end
  telex.refuse("unsent_draft", "the draft in the input box cannot be cleared; nothing was pasted")
end

-- The wait after a press: the box is empty on a stable screen, or the draft is still shown after a time
-- that grows with each press.
local function taken(order)
  local wait = (order.retry_ms or RETRY) << (order.presses - 1)
  return matcher.any({
    settled("draft_gone", order),
    matcher.all({ still(wait), matcher.lua("draft_shows", facts(order)) }),
  })
end

-- The states of a screen that is being redrawn.
local HALF_DRAWN = { unknown = true, starting = true }

function drafts.steps.submit_draft(params, ctx)
  local order = order_of(params)
  local seen, scene = classifier.look(ctx)
  local now = look(scene, ctx, facts(order))
  if order.leaves then
    attached = true
    return { actions = {} }
  elseif now == "shows" and order.presses < (scene.box and MOST_PRESSES or 1) then
    order.presses = order.presses + 1
    local press = { action.key("enter") }
    return going_on(press, order, "submit_draft", taken(order), SETTLES_WITHIN)
  elseif now == "shows" and scene.box then
    return { actions = {} }
  elseif order.presses == 0 and now == "empty" then
    telex.refuse("draft_not_shown", "the program did not show the pasted text; Enter was not pressed")
  elseif now == nil and HALF_DRAWN[seen.state] and order.looks < MOST_LOOKS then
    -- No box, and nothing in its place: the screen is being redrawn.
    order.looks = order.looks + 1
    return going_on({}, order, "submit_draft", settled("draft_shows", order), 500)
  end
  ours, attached = nil, false
  return { actions = {}, last_intent = order.intent }
end

return drafts
