-- The draft: what stands in the input box and was not sent. How it gets there, is sent, and cleared.
--
-- The program takes an Enter that follows a paste too soon for a part of it, or drops it. So a
-- prompt is pasted, Enter is pressed once the paste shows, and again while it still stands there.
-- Each step is a plan that names the next (`next`), which looks at the screen anew; the number of
-- presses is bounded, and what could not be sent is left as a draft, which the state names.
--
-- Whether the box holds a draft is told by its cursor: behind a suggestion, which looks like a
-- draft without its colours, the cursor stays at the beginning. Where it is not known, the text is.

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

-- The last text that was pasted to be sent, squeezed and hashed, and whether a file was attached.
-- The adapter's worker may be replaced: then the host's last intent still says it.
local ours, attached = nil, false

local function squeezed(text)
  local plain = text:gsub("\u{a0}", " "):gsub("%s+", "")
  return plain
end

local function still(milliseconds)
  return matcher.screen_stable({ min_ms = milliseconds, since = "change" })
end

-- What is known of a text without carrying it: for the predicates, which run elsewhere.
local function facts(order)
  local text = squeezed(order.text)
  return { whole = hash.fnv1a(text), head = text:sub(1, HEAD), before = order.before }
end

-- Whether the box, or where there is none the screen, has this text. For when no cursor tells.
local function has_text(scene, told)
  local text = squeezed(screen.box_text(scene) or table.concat(screen.texts(scene)))
  if not scene.box then
    return told.head ~= "" and text:find(told.head, 1, true) ~= nil
  end
  return hash.fnv1a(text) == told.whole
    or text:find("[Pastedtext#", 1, true) ~= nil
    or (told.head ~= "" and text:sub(1, #told.head) == told.head)
end

-- "shows" or "empty" of the box; nil where there is no box and the text is nowhere.
local function look(scene, moment, told)
  local draft = screen.draft(scene, moment.screen_cursor)
  if draft == nil then
    return has_text(scene, told) and "shows" or scene.box and "empty" or nil
  elseif draft == "" then
    return "empty"
  end
  return hash.fnv1a(squeezed(draft)) ~= told.before and "shows" or "empty"
end

-- Predicates: the draft is there, or the box is empty again.
drafts.predicates = {}

function drafts.predicates.draft_shows(input)
  return look(classifier.scene(input), input, input.params) == "shows"
end

-- The program shows an input box, or a dialog in its place: there is nothing more to wait for.
function drafts.predicates.input_shows(input)
  local seen, scene = classifier.look(input)
  return scene.box ~= nil or scene.bare ~= nil or dialogs.NAMES[seen.state] ~= nil
end

function drafts.predicates.draft_gone(input)
  return look(classifier.scene(input), input, input.params) == "empty"
end

-- A plan that goes on with `intent` of ours when the matcher holds, or when its time is over.
local function going_on(actions, order, intent, when, within, last_intent)
  return {
    actions = actions,
    last_intent = last_intent,
    next = { intent = intent, when = when, within_ms = within, params = { order = order } },
  }
end

-- That the draft shows, or is gone, in a picture that stands still: one that is being drawn anew
-- may lack it. While the program is at work none does.
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

-- The text in the box that was not sent; nil if there is none.
local function unsent(scene, ctx)
  local draft = scene.box and screen.draft(scene, ctx.screen_cursor)
  if scene.box and draft == nil and is_ours(scene) then
    draft = screen.box_text(scene)
  end
  return draft and draft ~= "" and draft or nil
end

-- Put a text into the box and, unless it `leaves` it there, send it. `order` has `text`, `intent`
-- (what to remember once it is sent), `force` and `retry_ms`.
function drafts.begin(order, ctx)
  classifier.remember(ctx)
  local seen, scene = classifier.look(ctx)
  local draft = unsent(scene, ctx)
  if order.force and not scene.box then -- into whatever is there instead
    local typed = { action.bracketed_paste(order.text), not order.leaves and action.key("enter") or nil }
    return { actions = typed, last_intent = order.intent }
  end
  if not (scene.box or scene.bare) then -- what is typed before it listens is lost, or echoed
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
  local message = "the input box holds a draft that was not sent: %q; send it with the key enter, "
    .. "clear it, or send this with force, which clears it"
  telex.refuse("unsent_draft", message:format(draft:sub(1, 80)))
end

drafts.steps = {}

local function order_of(params)
  local order = params.order
  if type(order) ~= "table" or type(order.text) ~= "string" then
    telex.refuse("bad_params", "this is a step of another intent and not to be called by itself")
  end
  return order
end

function drafts.steps.begin_draft(params, ctx)
  local order, scene = order_of(params), classifier.scene(ctx)
  dialogs.expect_none(order, ctx)
  if not (scene.box or scene.bare) then
    local message = "there is no input box on the screen; wait until it is ready, "
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

-- After a press: the box is empty in a picture that stands still, or the draft still stands after a
-- while, which is longer each time.
local function taken(order)
  local wait = (order.retry_ms or RETRY) << (order.presses - 1)
  return matcher.any({
    settled("draft_gone", order),
    matcher.all({ still(wait), matcher.lua("draft_shows", facts(order)) }),
  })
end

-- What a screen may be while it is drawn anew.
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
    telex.refuse("draft_not_shown", "the program did not show what was pasted; Enter was not pressed")
  elseif now == nil and HALF_DRAWN[seen.state] and order.looks < MOST_LOOKS then
    -- No box, and nothing that takes its place: the picture is being drawn anew.
    order.looks = order.looks + 1
    return going_on({}, order, "submit_draft", settled("draft_shows", order), 500)
  end
  ours, attached = nil, false
  return { actions = {}, last_intent = order.intent }
end

return drafts
