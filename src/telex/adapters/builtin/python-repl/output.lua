-- The output of the interpreter between the echo of the code and the next prompt.

local view = require("telex.view")

local output = {}

local RESULT_CHARS = 4096
local MESSAGE_LINES = 20

-- The file in the first frame of a traceback that reached the prompt. A traceback that a program only
-- prints begins in another file.
local FROM_PROMPT = { "<stdin>", "<python%-input%-%d+>", "<console>", "<string>", "<input>" }
local HEADER = "^[%^C]*Traceback %(most recent call last%):"
local GROUP = "^  %+ Exception Group Traceback %(most recent call last%):"

local function from_prompt(line)
  for _, name in ipairs(FROM_PROMPT) do
    if line and line:find('^  File "' .. name .. '", line %d+') then return true end
  end
  return false
end

-- Since 3.13 the interpreter redraws its line at each key. The line ends, and the output begins, where
-- bracketed paste is disabled.
local function between_editors(text)
  local begin = text:match("^.*\27%[%?2004l()")
  if not begin then return nil end
  local back = text:find("\27[?2004h", begin, true)
  return view.plain(text:sub(begin, back and back - 1))
end

-- The basic interpreter echoes one line, and the last line, without a newline, is the prompt.
local function between_lines(text, whole)
  local lines = view.plain(text)
  if whole then lines = lines:match("\n(.*)$") or "" end
  return lines:match("^(.*)\n[^\n]*$") or ""
end

-- The last characters up to the limit, and whether there were more.
local function bounded(text)
  local start = utf8.offset(text, -RESULT_CHARS)
  if not start or start == 1 then return text, false end
  return text:sub(start), true
end

-- The output since a marker, without echo and prompt, and whether some of it is missing; nil if there is
-- no marker.
function output.since(ctx, label)
  local text, whole = view.since(ctx, label)
  if not text then return nil end
  local printed = between_editors(text) or between_lines(text, whole)
  local shown, cut = bounded((printed:gsub("\n$", "")))
  return shown, cut or not whole
end

local function exception(line)
  local name, message = line:match("^([%a_][%w_%.]*): (.*)$")
  return name or line:match("^([%a_][%w_%.]*):?$"), message or ""
end

-- The exception below the frames that begin at a line. Its message may have several lines.
local function below(lines, at)
  while lines[at] and (lines[at]:find("^%s") or lines[at] == "") do at = at + 1 end
  local name, message = exception(lines[at] or "")
  if not name then return nil end
  local rest = { message, table.unpack(lines, at + 1, math.min(#lines, at + MESSAGE_LINES)) }
  return { type = name, message = view.trim(table.concat(rest, "\n")) }
end

-- An exception group, without the bars at its left and without its inner exceptions.
local function group(lines, at)
  local bare = {}
  while lines[at] and lines[at]:find("^  | ") do
    bare[#bare + 1], at = lines[at]:sub(5), at + 1
  end
  return bare
end

-- The exception that reached the prompt: of the last traceback that begins at the prompt, or a syntax
-- error, which has frames and no header, or an interrupt at the prompt, which has neither.
function output.error(text)
  local lines = view.rows(text)
  for at = #lines, 1, -1 do
    if lines[at]:find(HEADER) and from_prompt(lines[at + 1]) then return below(lines, at + 1) end
    if lines[at]:find(GROUP) then
      local bare = group(lines, at + 1)
      return from_prompt(bare[1]) and below(bare, 1) or nil
    end
  end
  if from_prompt(lines[1]) then return below(lines, 1) end
  if view.trim(text) == "KeyboardInterrupt" then return { type = "KeyboardInterrupt", message = "" } end
  return nil
end

return output
