-- The screen as a scene: rows, the input box, the menu, and the rows of this turn.
--
-- If the input box is shown, no dialog is shown: a dialog replaces it. Everything before the last typed
-- text is history and decides nothing. Every rule relies on these two facts.

local rows = require("rows")

local screen = {}

local DIGITS = "^(%d%d?)[.)]%s+(.+)$"

local function split(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do
    lines[#lines + 1] = rows.read(line)
  end
  return lines
end

-- The rule or frame top that closes a box upwards from the row at `bottom`.
local function box_top(all, bottom, opener)
  for at = bottom - 1, 1, -1 do
    if all[at].role == opener then
      return at
    end
  end
  return nil
end

local function is_prompt(row)
  if row.framed then
    return rows.starts(row.text, ">") or row.text == "❯"
  end
  return row.role == "prompt" or row.role == "echo"
end

local SPEAKS = { echo = true, bullet = true, prompt = true }

-- `number, label, pointed` of a row `❯ 1. Label`, `  2. Label` or `3) Label`.
local function option(row)
  local text, pointed = row.text, false
  if rows.starts(text, "❯") then
    text, pointed = rows.trimmed(text:sub(#"❯" + 1)), true
  end
  local number, label = text:match(DIGITS)
  if not number then
    return nil
  end
  local gap = label:find("%s%s")
  label = gap and label:sub(1, gap - 1) or label
  if rows.ends(label, " ✔") then
    label = rows.trimmed(label:sub(1, -#"✔" - 1))
  end
  return tonumber(number), label, pointed
end

-- Below the box there are only rows of its status. If other text is below it, the box is a remainder of an
-- older screen, or a quotation.
local function is_last(all, bottom)
  for at = bottom + 1, #all do
    local _, _, pointed = option(all[at])
    if SPEAKS[all[at].role] or pointed then
      return false
    end
  end
  return true
end

-- A long draft is shown in part: the rule above it has the number of hidden rows.
local function is_cut(row)
  return row.role == "rule" and row.text:find("↑ %d+ more ") ~= nil
end

-- The last pair of rules, or frame, whose first row inside is a prompt.
local function find_box(all)
  for bottom = #all, 3, -1 do
    local closes = all[bottom].role
    local opener = closes == "rule" and "rule" or closes == "frame_bottom" and "frame_top"
    local top = opener and box_top(all, bottom, opener)
    if top and top + 1 < bottom and (is_prompt(all[top + 1]) or is_cut(all[top])) then
      return is_last(all, bottom) and { top = top, bottom = bottom } or nil
    end
  end
  return nil
end

-- Options have consecutive numbers; between them are blank rows and explanations. A row that begins left
-- of a menu is not part of its dialog, so the menu is then not the last part of the screen.
local function find_menu(all)
  local menu = nil
  for at, row in ipairs(all) do
    local number, label, pointed = option(row)
    if number then
      local last = menu and menu.options[#menu.options]
      if not last or number ~= last.number + 1 then
        menu = { options = {}, left = math.huge }
      end
      menu.left = math.min(menu.left, row.framed and 0 or row.indent)
      menu.options[#menu.options + 1] = { number = number, label = label, row = at }
      menu.pointed = pointed and #menu.options or menu.pointed
    elseif SPEAKS[row.role] or (menu and row.role == "text" and row.indent < menu.left) then
      menu = nil
    end
  end
  return menu and menu.pointed and #menu.options > 1 and menu or nil
end

local function menu_rows(menu)
  local found = {}
  for _, each in ipairs(menu and menu.options or {}) do
    found[each.row] = each
  end
  return found
end

local function last_echo(all, above, of_menu)
  for at = above, 1, -1 do
    if all[at].role == "echo" and not of_menu[at] then
      return at
    end
  end
  return 0
end

local function last_filled(all, above)
  for at = above, 1, -1 do
    if all[at].role ~= "blank" then
      return at
    end
  end
  return 0
end

local function last_marker(all, first, last, is_marker)
  for at = last, first, -1 do
    if all[at].indent == 0 and is_marker(all[at]) then
      return at
    end
  end
  return nil
end

-- A prompt without a box around it, as the last row of the screen.
local function is_bare_prompt(row)
  return row.role == "prompt" or row.role == "echo" or row.text == ">" or rows.ends(row.text, " >")
end

-- A scene: `rows`, `last` (the last row that is not blank), `box` {top, bottom}, `bare` (the row of
-- a prompt without a box), `menu` {options, pointed}, `options` (by row), `floor` (the last row of the
-- conversation), `echo` (the row of the last typed text, or 0), `marker` (the row that ends this turn).
-- `is_marker(row)` returns whether a row of the first column ends a turn.
function screen.read(text, is_marker)
  local all = split(text)
  local scene = { rows = all, box = find_box(all), last = last_filled(all, #all) }
  scene.menu = not scene.box and find_menu(all) or nil
  scene.options = menu_rows(scene.menu)
  local alone = not scene.box and all[scene.last]
  if alone and not scene.options[scene.last] and is_bare_prompt(alone) then
    scene.bare = scene.last
  end
  scene.floor = scene.box and scene.box.top - 1 or scene.bare and scene.bare - 1 or #all
  scene.echo = last_echo(all, scene.floor, scene.options)
  scene.marker = last_marker(all, scene.echo + 1, scene.floor, is_marker)
  return scene
end

function screen.texts(scene)
  local texts = {}
  for _, row in ipairs(scene.rows) do
    texts[#texts + 1] = row.text
  end
  return texts
end

-- The text in the box, draft or suggestion, without the sign before it; nil without a box.
function screen.box_text(scene)
  if not scene.box then
    return nil
  end
  local texts = {}
  for at = scene.box.top + 1, scene.box.bottom - 1 do
    local row = scene.rows[at]
    texts[#texts + 1] = at == scene.box.top + 1 and row.said_text or row.text
  end
  texts[1] = texts[1]:gsub("^>%s*", "")
  return table.concat(texts, "\n")
end

-- The draft in the box, empty if there is none; nil if the cursor is outside of the box. If the cursor is
-- at the beginning of the box, the text behind it is a suggestion and no draft.
function screen.draft(scene, cursor)
  local box = scene.box
  local row = cursor and cursor.row + 1
  if not (box and row) or row <= box.top or row >= box.bottom then
    return nil
  end
  local first = scene.rows[box.top + 1]
  local home = first.framed and 4 or first.indent + 2
  if row == box.top + 1 and cursor.col <= home and not is_cut(scene.rows[box.top]) then
    return ""
  end
  return screen.box_text(scene)
end

-- Hints are at the right edge above the box, and change with the typed text.
local HINT_INDENT = 20

function screen.is_hint(row)
  return row.role == "text" and row.indent >= HINT_INDENT
end

-- The conversation above the box as one text, to check later whether a prompt changed it.
function screen.conversation(scene)
  local lines = {}
  for at = 1, scene.floor do
    if scene.rows[at].role ~= "blank" and not screen.is_hint(scene.rows[at]) then
      lines[#lines + 1] = scene.rows[at].text
    end
  end
  return table.concat(lines, "\n")
end

return screen
