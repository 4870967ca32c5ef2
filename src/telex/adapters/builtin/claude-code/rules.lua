-- The rule engine: finds the first rule of anchors.lua whose anchors all match.
--
-- Anchors are searched from the bottom of the screen, where the live part is; a found anchor limits the
-- search for the next one. Rows are searched one by one, with plain searches or patterns that are
-- anchored to the row, so that no screen makes the search slow.

local anchors = require("anchors")
local checks = require("checks")
local rows = require("rows")

local rules = {}

local MOST_CANDIDATES = 32

-- Functions that return whether a text has a wording.
local matches = {}

function matches.part(text, wording)
  return text:find(wording, 1, true) ~= nil
end

matches.start = rows.starts

function matches.whole(text, wording)
  return text == wording
end

-- A pattern may have a meaning, for the metadata.
function matches.pattern(text, wording)
  return text:find(wording.pattern or wording) ~= nil
end

-- A pattern that matches the whole text, or is followed by a character that separates sentences.
local PARTS = { "", " ·", " ∙", " -", " —", " (", ":", ".", ",", ";" }

function matches.banner(text, wording)
  local _, stop = text:find(wording.pattern)
  local rest = stop and text:sub(stop + 1)
  for _, part in ipairs(PARTS) do
    if rest == part or part ~= "" and rest and rows.starts(rest, part) then
      return true
    end
  end
  return false
end

-- A text whose first character is in a range, followed by a space.
function matches.glyph(text, range)
  local sign = text:match("^(" .. utf8.charpattern .. ") ")
  local code = sign and utf8.codepoint(sign)
  return code ~= nil and code >= range[1] and code <= range[2]
end

-- The parts of a row that can be read; nil if the row has no such part.
local texts = {}

function texts.lower(row)
  return row.lower
end

function texts.said(row)
  return row.said
end

function texts.bullet(row)
  return row.role == "bullet" and row.said or nil
end

function texts.report(row)
  return row.said or row.lower
end

function texts.label(_, scene, at)
  local option = scene.options[at]
  return option and rows.folded(option.label) or nil
end

-- The ranges of rows, as first and last row.
local ranges = {}

function ranges.screen(scene)
  return 1, #scene.rows
end

function ranges.last(scene)
  return scene.last, scene.last
end

function ranges.echo(scene)
  return scene.echo, scene.echo
end

function ranges.turn(scene)
  return scene.echo + 1, scene.floor
end

function ranges.tail(scene)
  return (scene.marker or scene.echo) + 1, scene.floor
end

function ranges.status(scene)
  return scene.box and scene.box.bottom + 1 or 1, scene.box and #scene.rows or 0
end

function ranges.menu(scene)
  local options = scene.menu and scene.menu.options
  return options and options[1].row or 1, options and options[#options].row or 0
end

function ranges.below_menu(scene)
  local options = scene.menu and scene.menu.options
  return options and options[#options].row + 1 or 1, options and #scene.rows or 0
end

-- The wording of an anchor that a text has.
local function wording_in(text, anchor)
  local match = matches[anchor.match or "part"]
  for _, wording in ipairs(anchor.any) do
    if match(text, wording) then
      return wording
    end
  end
  return nil
end

-- The rows that have an anchor's text, the lowest first.
local function candidates(anchor, scene)
  local first, last = ranges[anchor.of or "screen"](scene)
  local read, found = texts[anchor.text or "lower"], {}
  for at = last, math.max(first, 1), -1 do
    local row = scene.rows[at]
    local text = row and read(row, scene, at)
    local placed = row and (anchor.column == nil or row.indent == anchor.column)
    local wording = text and placed and wording_in(text, anchor)
    if wording then
      found[#found + 1] = { at = at, wording = wording }
      if #found == MOST_CANDIDATES then
        break
      end
    end
  end
  return found
end

local function fits(anchor, at, found)
  local above = found[anchor.below]
  if above and (at <= above or at - above > (anchor.within or math.huge)) then
    return false
  end
  return found[anchor.same] == nil or found[anchor.same] == at
end

-- Whether the anchors from the `index`th on can be placed, given the rows of those before. The rows stay
-- in `search.found`, and the wordings in `search.wordings`.
local function place(search, index)
  local anchor = search.anchors[index]
  if not anchor then
    return true
  elseif anchor.check then
    local holds = checks[anchor.check](search.scene, search.moment, search.found, anchor)
    return holds and place(search, index + 1)
  elseif anchor.absent then
    return #search.candidates[index] == 0 and place(search, index + 1)
  end
  for _, candidate in ipairs(search.candidates[index]) do
    if fits(anchor, candidate.at, search.found) then
      search.found[anchor.name] = candidate.at
      search.wordings[anchor.name] = candidate.wording
      if place(search, index + 1) then
        return true
      end
      search.found[anchor.name] = nil
    end
  end
  return false
end

-- The row and the wording of each anchor, or nil if one anchor was not found.
local function sought(list, scene, moment)
  local search = { anchors = list, scene = scene, moment = moment, found = {}, wordings = {} }
  search.candidates = {}
  for index, anchor in ipairs(list) do
    if not anchor.check then
      search.candidates[index] = candidates(anchor, scene)
      if #search.candidates[index] == 0 and not anchor.absent then
        return nil
      end
    end
  end
  return place(search, 1) and search or nil
end

function rules.is_marker(row)
  for _, pattern in ipairs(anchors.marker) do
    if row.text:find(pattern) and not rows.ends(row.text, "…") then
      return true
    end
  end
  return false
end

-- The first rule that matches, the rows of its anchors, and their wordings; nil if none matches.
function rules.decide(scene, moment)
  local dialog_may_be = sought(anchors.dialog, scene, moment) ~= nil
  for _, rule in ipairs(anchors.rules) do
    if #rule.anchors > 0 and (dialog_may_be or not rule.dialog) then
      local search = sought(rule.anchors, scene, moment)
      if search then
        return rule, search.found, search.wordings
      end
    end
  end
  return nil, {}, {}
end

return rules
