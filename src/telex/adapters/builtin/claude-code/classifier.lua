-- The classifier: returns the state of a moment. Used by `classify`, the intents and the waits.
--
-- It keeps one value between calls: the conversation before the last input. Until the conversation
-- changes, the screen still shows the moment before the input: the end of the last turn, or the dialog
-- that was just answered.

local checks = require("checks")
local hash = require("hash")
local metadata = require("metadata")
local rules = require("rules")
local screen = require("screen")

local classifier = {}

local baseline = nil

local function read(moment)
  return screen.read(moment.screen or "", rules.is_marker)
end

function classifier.scene(moment)
  return read(moment)
end

-- Remember this moment as the one before the next input.
function classifier.remember(moment)
  baseline = hash.fnv1a(screen.conversation(read(moment)))
end

function classifier.baseline()
  return baseline
end

local function with_baseline(moment)
  if moment.baseline ~= nil or baseline == nil then
    return moment
  end
  return setmetatable({ baseline = baseline }, { __index = moment })
end

-- The rule's evidence, and the rows of its anchors, counted from one.
local function evidence(rule, found)
  local seen = {}
  for name, at in pairs(found) do
    seen[#seen + 1] = string.format("%s on row %d", name, at)
  end
  table.sort(seen)
  return #seen == 0 and rule.evidence or rule.evidence .. " (" .. table.concat(seen, ", ") .. ")"
end

local function confidence(rule, moment)
  local settled = rule.settled_confidence and checks.settled(nil, moment)
  return settled and rule.settled_confidence or rule.confidence
end

-- The result of `classify`, and the scene it was read from.
function classifier.look(moment)
  local scene = read(moment)
  local rule, found, wordings = rules.decide(scene, with_baseline(moment))
  if not rule then
    return {
      state = "unknown",
      confidence = 0.2,
      rule = "none",
      evidence = "no rule matches this screen",
      metadata = metadata.extract(scene),
    },
      scene
  end
  return {
    state = rule.state,
    confidence = confidence(rule, moment),
    rule = rule.rule,
    evidence = evidence(rule, found),
    metadata = metadata.extract(scene, rule, found, wordings),
  },
    scene
end

return classifier
