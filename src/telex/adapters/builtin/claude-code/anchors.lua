-- The anchors of the rules, as data. Read these files first when a new version draws a different screen.
--
-- `rules` are tried in order, and the first rule that matches decides. A rule matches if all its anchors
-- match. An anchor is a text on a row, in one of several wordings (`any`), or a `check` of the scene
-- (checks.lua). For a text, `of` is the set of rows (by default all), `text` the part of a row, `match`
-- the kind of comparison, `below`, `within` and `same` the place relative to an earlier anchor, `column`
-- limits it to the first column, and `absent` means that the text must be missing: see rules.lua.
-- `metadata` names the metadata of the rule (metadata.lua). All wordings are in lower case.
--
-- A rule needs at least two anchors, because an answer may quote any single one; a rule with `dialog`
-- has one more, below. A fixture needs each anchor and each wording: tests remove them one by one.

local errors = require("anchors.errors")
local turns = require("anchors.turns")

local anchors = {}

-- The end of a turn: `✻ Brewed for 12s`. The verbs change with every version, their form does not.
anchors.marker = { "^✻ %S+ed for %d" }

-- An additional anchor of every rule with `dialog`: a dialog replaces the input box.
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
