-- The forms of the bottom row, where less shows its prompt, with the cursor right behind it.

local prompts = {}

local BUSY = { "^Waiting for data", "^Calculating line numbers", "^Searching", "^Filtering" }

local BEHIND_NAME = { "%(file %d+ of %d+%)", "lines %d+%-%d+", "byte %d+", "%(END%)" }

local function file_of(row)
  for _, form in ipairs(BEHIND_NAME) do
    local name = row:match("^(.-) ?" .. form)
    if name then return name ~= "" and name or nil end
  end
  return nil
end

-- `a.txt (file 1 of 2) lines 12-22/100 (END) - Next: b.txt`, or parts of it.
function prompts.position(row)
  local first, last = row:match("lines (%d+)%-(%d+)")
  local number, files = row:match("%(file (%d+) of (%d+)%)")
  local facts = {
    file = file_of(row),
    first_line = math.tointeger(first),
    last_line = math.tointeger(last),
    total_lines = math.tointeger(row:match("lines %d+%-%d+/(%d+)")),
    percent = math.tointeger(row:match(" (%d+)%%$")),
    file_number = math.tointeger(number),
    files = math.tointeger(files),
    next_file = row:match("%(END%) %- Next: (.+)$"),
  }
  return next(facts) and facts or nil
end

local function position_form(row)
  return row == ":" or row:find("lines %d+%-%d+/?%d*%s?%d*%%?$") or row:find("byte %d+/?%d*%s?%d*%%?$")
    or row:find("lines %d+%-%d+.* %d+%%$")
end

local function end_form(row)
  return row:find("%(END%)$") or row:find("%(END%) %- Next: .+$")
end

local function busy_form(row)
  for _, form in ipairs(BUSY) do
    if row:find(form) then return true end
  end
  return false
end

local function not_found_form(row)
  return row:find("^Pattern not found%s+%(press RETURN%)$")
end

local function message_form(row)
  return row:find("%(press RETURN%)$")
end

local function help_form(row)
  return row:find("^HELP %-%- ") and row:find("or q when done$")
end

local function search_form(row)
  return row:find("^[/?]") or row:find("^&/")
end

-- A number, an option, a shell command, the name of a file.
local function command_form(row)
  return row:find("^ :") or row:find("^:%d+$") or row:find("^[%-_!|+]%S*$") or row:find("^Examine: ") or row:find("^Log file: ")
end

-- In the order in which they are tried. `printed` is how less prints such a row.
prompts.FORMS = {
  { state = "pattern_not_found", rule = "not_found_row", has = not_found_form, printed = "inverse" },
  { state = "message", rule = "message_row", has = message_form, printed = "inverse" },
  { state = "help", rule = "help_row", has = help_form, printed = "inverse" },
  { state = "busy", rule = "busy_row", has = busy_form, printed = "inverse" },
  { state = "at_end", rule = "end_row", has = end_form, printed = "inverse" },
  { state = "searching", rule = "search_row", has = search_form, printed = "cleared" },
  { state = "command", rule = "command_row", has = command_form, printed = "cleared" },
  { state = "viewing", rule = "position_row", has = position_form, printed = "inverse" },
}

return prompts
