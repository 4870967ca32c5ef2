-- `require("telex.view")`: what a plugin is shown, cut into the pieces that rules ask for. Knows no
-- program. Run in the plugin's own environment, like a file of its own.

local view = {}

local STABLE_MS = 300

-- Cells: a cursor counts cells, and a wide character takes two of them.
local WIDE = {
  { 0x1100, 0x115F }, { 0x2E80, 0xA4CF }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF },
  { 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 }, { 0xFFE0, 0xFFE6 }, { 0x1F300, 0x1FAFF },
  { 0x20000, 0x3FFFD },
}
local NONE = { { 0x0300, 0x036F }, { 0x200B, 0x200F }, { 0xFE00, 0xFE0F } }

local function within(code, ranges)
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then return true end
  end
  return false
end

local function cells(code)
  if code < 0x300 then return 1 end
  return within(code, NONE) and 0 or within(code, WIDE) and 2 or 1
end

-- The rows of a screen, from 1.
function view.rows(screen)
  local rows = {}
  for row in (screen .. "\n"):gmatch("([^\n]*)\n") do rows[#rows + 1] = row end
  return rows
end

-- A row, cut where the cursor stands. What is left of the cursor is padded: blanks at the end of a
-- row are not told, but a cursor behind a prompt shows that they are there.
function view.cut(row, col)
  local at = 0
  for place, code in utf8.codes(row) do
    if at >= col then return row:sub(1, place - 1), row:sub(place) end
    at = at + cells(code)
  end
  return row .. (" "):rep(col - at), ""
end

-- Where the program waits, if it does: the last row that has text. `here` says whether the cursor
-- stands on it, nil if nobody knows where the cursor stands; `before` and `after` are the row on
-- either side of it, the whole row and "" if that is not known.
function view.ending(ctx)
  local rows, cursor = view.rows(ctx.screen), ctx.screen_cursor
  local last = #rows
  while last > 0 and not rows[last]:find("%S") do last = last - 1 end
  local row = rows[last] or ""
  local ending = { number = last - 1, row = row, before = row, after = "", rows = rows }
  if cursor then
    ending.here = last > 0 and cursor.row == last - 1
    if ending.here then ending.before, ending.after = view.cut(row, cursor.col) end
  end
  return ending
end

-- Whether the screen has stood still for long enough to believe it.
function view.still(ctx)
  local params = ctx.params or {}
  return (ctx.stable_ms or 0) >= (params.stable_ms or ctx.completed_turn_stable_ms or STABLE_MS)
end

-- What was printed after a marker; nil if there is no such marker. The second answer says whether
-- it is all of it: only so much of a transcript is shown.
function view.since(ctx, label)
  local place = ctx.markers and ctx.markers[label]
  if not place then return nil, false end
  local wanted = ctx.cursor - place
  if wanted <= 0 then return "", true end
  local start = utf8.offset(ctx.transcript, -wanted)
  if not start then return ctx.transcript, false end
  return ctx.transcript:sub(start), true
end

-- Backspaces carried out: line editors and pagers correct themselves with them.
local function rubbed_out(text)
  local kept = {}
  for char in text:gmatch(utf8.charpattern) do
    if char ~= "\b" then
      kept[#kept + 1] = char
    elseif kept[#kept] ~= "\n" then
      kept[#kept] = nil
    end
  end
  return table.concat(kept)
end

-- The words of a piece of transcript: no escape sequences, no controls but newline and tab.
function view.plain(text)
  text = text:gsub("\27[%]PX^_][^\7\27]*\7?", ""):gsub("\27%[[\32-\63]*[\64-\126]", "")
  text = text:gsub("\27[\32-\47]*[\48-\126]", "")
  if text:find("\b", 1, true) then text = rubbed_out(text) end
  return (text:gsub("[^%C\t\n]", ""))
end

-- Whether a line editor reads now, as far as its bracketed paste shows: true, false, or nil if none
-- ever did; and where in the text it said so.
function view.editing(text)
  local said, where
  local _, stop = text:find("\27[?2004", 1, true)
  while stop do
    local mode = text:sub(stop + 1, stop + 1)
    if mode == "h" or mode == "l" then said, where = mode == "h", stop + 2 end
    _, stop = text:find("\27[?2004", stop + 1, true)
  end
  return said, where or 0
end

-- Without the blanks at its end. A pattern for this would look at a long run of blanks once for each
-- of them, and programs print what they like.
function view.right_trim(text)
  local stop = #text
  while stop > 0 and text:find("^%s", stop) do stop = stop - 1 end
  return text:sub(1, stop)
end

function view.trim(text)
  return view.right_trim(text:match("^%s*(.*)$"))
end

-- Whether a key, or a text typed, sends off a line: what a turn waits for comes after it.
local SENDS = { enter = true, ["return"] = true, ctrl_c = true, ctrl_d = true }

function view.sends(typed)
  return SENDS[typed] or typed:find("[\r\n\3\4]") ~= nil
end

-- A parameter that must be a text; anything else is refused with a sentence.
function view.text(params, name)
  local value = params[name]
  if type(value) ~= "string" then
    telex.refuse("bad_params", ("`%s` must be a text, and is %s."):format(name, type(value)))
  end
  return value
end

return view
