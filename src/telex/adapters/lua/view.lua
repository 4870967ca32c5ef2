-- `require("telex.view")`: functions that cut the context of a plugin into the pieces that rules need.
-- Not for one program. Runs in the plugin's own environment, like one of its files.

local view = {}

local STABLE_MS = 300

-- Cells: a cursor position counts cells, and a wide character takes two cells.
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

-- Cut a row at the cursor. The left part is padded with blanks up to the cursor: a screen's rows have
-- no trailing blanks, but a cursor behind a prompt shows that there are some.
function view.cut(row, col)
  local at = 0
  for place, code in utf8.codes(row) do
    if at >= col then return row:sub(1, place - 1), row:sub(place) end
    at = at + cells(code)
  end
  return row .. (" "):rep(col - at), ""
end

-- The last row that has text, where a program waits if it waits. `here` is whether the cursor is on
-- this row, nil if the cursor is unknown. `before` and `after` are the parts of the row on either side
-- of the cursor; the whole row and "" if the cursor is elsewhere or unknown.
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

-- Whether the screen has been unchanged for long enough to trust it.
function view.still(ctx)
  local params = ctx.params or {}
  return (ctx.stable_ms or 0) >= (params.stable_ms or ctx.completed_turn_stable_ms or STABLE_MS)
end

-- The output after a marker; nil if there is no such marker. The second result is whether the output
-- is complete: a plugin sees only the end of a long transcript.
function view.since(ctx, label)
  local place = ctx.markers and ctx.markers[label]
  if not place then return nil, false end
  local wanted = ctx.cursor - place
  if wanted <= 0 then return "", true end
  local start = utf8.offset(ctx.transcript, -wanted)
  if not start then return ctx.transcript, false end
  return ctx.transcript:sub(start), true
end

-- Apply backspaces: line editors and pagers correct their output with them.
local function apply_backspaces(text)
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

-- The plain text of a piece of transcript: no escape sequences, no controls but newline and tab.
function view.plain(text)
  text = text:gsub("\27[%]PX^_][^\7\27]*\7?", ""):gsub("\27%[[\32-\63]*[\64-\126]", "")
  text = text:gsub("\27[\32-\47]*[\48-\126]", "")
  if text:find("\b", 1, true) then text = apply_backspaces(text) end
  return (text:gsub("[^%C\t\n]", ""))
end

-- Whether a line editor reads now, judged by its bracketed paste mode: true, false, or nil if the text
-- never sets the mode. The second result is the position after the last change.
function view.editing(text)
  local enabled, where
  local _, stop = text:find("\27[?2004", 1, true)
  while stop do
    local mode = text:sub(stop + 1, stop + 1)
    if mode == "h" or mode == "l" then enabled, where = mode == "h", stop + 2 end
    _, stop = text:find("\27[?2004", stop + 1, true)
  end
  return enabled, where or 0
end

-- The text without trailing blanks. A pattern would take quadratic time for a long run of blanks, and a
-- program may print such a run.
function view.right_trim(text)
  local stop = #text
  while stop > 0 and text:find("^%s", stop) do stop = stop - 1 end
  return text:sub(1, stop)
end

function view.trim(text)
  return view.right_trim(text:match("^%s*(.*)$"))
end

-- Whether a key or a typed text submits a line. A turn waits for output after such a key.
local SENDS = { enter = true, ["return"] = true, ctrl_c = true, ctrl_d = true }

function view.sends(typed)
  return SENDS[typed] or typed:find("[\r\n\3\4]") ~= nil
end

-- Return a parameter that must be a text; refuse anything else.
function view.text(params, name)
  local value = params[name]
  if type(value) ~= "string" then
    telex.refuse("bad_params", ("`%s` must be a text, and is %s."):format(name, type(value)))
  end
  return value
end

return view
