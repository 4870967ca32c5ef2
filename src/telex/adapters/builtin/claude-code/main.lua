-- claude-code: what a screen of Claude Code means, and how to answer it.
--
-- Here is only what the host calls. `classify` asks the rules (rules.lua) of the anchors
-- (anchors.lua); intents.lua says what to type, drafts.lua how a text is sent; waits.lua what to wait for; catalogue.lua describes
-- them. Tried on the fixtures beside it: `telex adapter test`.

local classifier = require("classifier")
local drafts = require("drafts")
local intents = require("intents")
local waits = require("waits")

local plugin = {}

function plugin.classify(ctx)
  local answer = classifier.look(ctx)
  return answer
end

function plugin.describe()
  return require("catalogue")
end

local groups = { intents, waits.matchers, waits.predicates, drafts.steps, drafts.predicates }
for _, group in ipairs(groups) do
  for name, exported in pairs(group) do
    plugin[name] = exported
  end
end

return plugin
