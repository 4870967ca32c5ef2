-- What the rules look for, as data. These are the files to read when a new version draws otherwise.
--
-- `rules` are asked in order and the first that holds decides. A rule holds if all its anchors do.
-- An anchor is a text to be found on a row, in one of several wordings (`any`), or a `check` of the
-- scene (checks.lua). Of a text, `of` says on which rows to look (by default all), `text` what of a
-- row to read, `match` how, `below`, `within` and `same` where, seen from an anchor before it,
-- `column` whether at the first column only, `absent` that it must not be there: see rules.lua.
-- `tells` names the metadata of the rule (metadata.lua). All wordings are in lower case.
--
-- A rule needs two anchors or more, for an answer may quote any one of them; a `dialog` has one
-- more, below. Each anchor and each wording is needed by a fixture: tests take them away in turn.

local errors = require("anchors.errors")
local turns = require("anchors.turns")

local anchors = {}

-- The end of a turn: `✻ Brewed for 12s`. The verbs change with every version, not their shape.
anchors.marker = { "^✻ %S+ed for %d" }

-- What every rule with `dialog` needs besides: dialogs stand in the place of the input box.
anchors.dialog = { { name = "no_box", check = "no_box" } }

anchors.rules = {}
for _, group in ipairs({
  errors.starting,
  turns.starting,
  require("anchors.dialogs"),
  require("anchors.panels"),
  turns.working,
  errors.turns,
  turns.resting,
}) do
  table.move(group, 1, #group, #anchors.rules + 1, anchors.rules)
end

return anchors
