-- claude-code: names the state of a screen of Claude Code, and drives the program.
--
-- This file has only the functions that the host calls. `classify` uses the rules (rules.lua) with the
-- anchors (anchors.lua). intents.lua returns what to type, drafts.lua sends texts, waits.lua has the wait
-- matchers, catalogue.lua describes all of them. The fixtures test it: `telex adapter test`.

local classifier = require("classifier")
local drafts = require("drafts")
local metadata = require("metadata")
local intents = require("intents")
local waits = require("waits")

local plugin = {}

function plugin.classify(ctx)
  local answer, scene = classifier.look(ctx)
  local said, dialog = metadata.said(scene), metadata.dialog(scene)
  if #said > 0 or dialog then
    answer.metadata = answer.metadata or {}
    answer.metadata.said, answer.metadata.dialog = #said > 0 and said or nil, dialog
  end
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
