-- Structural anchors: conditions on the scene that a wording cannot express.
--
-- `checks.NAME(scene, moment, found, anchor)` returns a boolean. It gets the scene of screen.lua, the
-- context of the plugin, the rows of the anchors found so far, and the anchor itself with its `value`.

local hash = require("hash")
local links = require("links")
local rows = require("rows")
local screen = require("screen")

local checks = {}

-- A turn may end without the row that marks its end. Then only time shows it: while the program works,
-- its spinner moves several times a second, so this many times the usual threshold is a long silence.
checks.QUIET = 10

local function threshold(moment)
  return moment.completed_turn_stable_ms or 300
end

function checks.settled(_, moment)
  return (moment.stable_ms or 0) >= threshold(moment)
end

function checks.moving(_, moment)
  return not checks.settled(nil, moment)
end

function checks.quiet(_, moment)
  return (moment.stable_ms or 0) >= checks.QUIET * threshold(moment)
end

function checks.exited(_, moment)
  return moment.process_exited == true
end

function checks.intent(_, moment, _, anchor)
  return moment.last_intent == anchor.value
end

function checks.no_intent(_, moment)
  return moment.last_intent == nil
end

-- The conversation has not changed since the prompt: the screen still shows the moment before it.
function checks.untouched(scene, moment)
  return moment.baseline ~= nil and moment.baseline == hash.fnv1a(screen.conversation(scene))
end

-- The box has a text that was not sent; if the cursor is unknown, the text that was pasted last.
function checks.draft(scene, moment)
  local draft = screen.draft(scene, moment.screen_cursor)
  return draft ~= nil and draft ~= ""
end

function checks.blank(scene)
  return scene.last == 0
end

function checks.no_box(scene)
  return scene.box == nil
end

function checks.box(scene)
  return scene.box ~= nil
end

function checks.bare_prompt(scene)
  return scene.bare ~= nil
end

function checks.input(scene)
  return scene.box ~= nil or scene.bare ~= nil
end

function checks.box_with_status(scene)
  return scene.box ~= nil and scene.last > scene.box.bottom
end

function checks.menu(scene)
  return scene.menu ~= nil
end

function checks.no_menu(scene)
  return scene.menu == nil
end

-- The menu begins below the row of the anchor named by `value`, at most `within` rows below.
function checks.menu_below(scene, _, found, anchor)
  local first = scene.menu and scene.menu.options[1].row
  local question = found[anchor.value] or 0
  return first ~= nil and first > question and first - question <= (anchor.within or math.huge)
end

function checks.heading_above(scene, _, found, anchor)
  for at = 1, (found[anchor.value] or 1) - 1 do
    if scene.rows[at].role == "text" then
      return true
    end
  end
  return false
end

function checks.login_link(scene)
  return links.login(scene) ~= nil
end

function checks.no_echo(scene)
  return scene.echo == 0
end

local SPEAKS = { bullet = true, echo = true }

function checks.nothing_spoken_below(scene, _, found, anchor)
  for at = (found[anchor.value] or 0) + 1, scene.floor do
    if SPEAKS[scene.rows[at].role] then
      return false
    end
  end
  return true
end

-- Below the error there are only indented rows, which belong to it.
function checks.only_indented_below(scene, _, found, anchor)
  for at = (found[anchor.value] or 0) + 1, scene.floor do
    local row = scene.rows[at]
    if row.role ~= "blank" and row.role ~= "rule" and row.indent == 0 then
      return false
    end
  end
  return true
end

local function is_chrome(row)
  local empty = row.role == "blank" or row.role == "rule" or row.role == "prompt"
  return empty or screen.is_hint(row) or rows.starts(row.text, "⏵⏵") or row.text:find("^%[[^%[%]]+%]$") ~= nil
end

-- Below the anchor there are only rows that belong to it, the end of the turn, and the program's frame.
function checks.only_chrome_below(scene, _, found, anchor)
  for at = (found[anchor.value] or 0) + 1, scene.floor do
    local row = scene.rows[at]
    if at ~= scene.marker and row.indent == 0 and not is_chrome(row) then
      return false
    end
  end
  return true
end

function checks.no_marker(scene)
  return scene.marker == nil
end

-- This turn has an end marker, and an answer before it.
function checks.answer_and_marker(scene)
  for at = scene.echo + 1, (scene.marker or 0) - 1 do
    local role = scene.rows[at].role
    if role ~= "blank" and role ~= "rule" then
      return true
    end
  end
  return false
end

function checks.only_chrome_below_marker(scene)
  for at = (scene.marker or 0) + 1, scene.floor do
    if not is_chrome(scene.rows[at]) then
      return false
    end
  end
  return true
end

return checks
