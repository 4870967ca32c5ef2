-- OSC 133 in a transcript: the shell's own marks of its prompt and its commands.
--
-- `A`: a prompt begins. `P;k=s`: a continuation prompt begins. `B`: typed text follows. `C`: output
-- follows. `D;code`: the command ended. `B` alone is weak, because line editors print the prompt again
-- when they redraw. OSC 7 names the directory.

local view = require("telex.view")

local marks = {}

local COMMAND_BYTES = 4096

local function ended(text, place)
  local two = text:sub(place, place + 1)
  return two:sub(1, 1) == "\7" or two == "\27\\"
end

local function decoded(url)
  local path = url:match("^file://[^/]*(/.*)$")
  return path and path:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
end

-- A path is returned only if it is UTF-8 text.
local function directory(url)
  local path = decoded(url)
  return path and utf8.len(path) and path or nil
end

local function is_continuation(options)
  return options:find("k=[sc]") ~= nil
end

local Reader = {}
Reader.__index = Reader

-- The text typed since the prompt, without the continuation prompts between its lines.
function Reader:typed(stop)
  local lines = {}
  for _, piece in ipairs(self.pieces) do
    lines[#lines + 1] = self.text:sub(piece[1], math.min(piece[2] or stop, piece[1] + COMMAND_BYTES))
  end
  return view.trim(view.plain(table.concat(lines)))
end

function Reader:prompt_begins(place, after, secondary)
  if secondary then
    local piece = self.pieces[#self.pieces]
    if piece and not piece[2] then piece[2] = place - 1 end
  else
    self.pieces, self.begun = {}, self.begun + 1
  end
  self.secondary, self.prompt_from = secondary, after
end

function Reader:input_begins(place, after)
  if self.prompt_from then self.prompt = view.plain(self.text:sub(self.prompt_from, place - 1)) end
  if not self.secondary then self.pieces = {} end
  self.pieces[#self.pieces + 1] = { after }
  self.prompt_from = nil
end

function Reader:output_begins(place)
  -- Several commands pasted at once have one mark each, but were typed as one text.
  if #self.pieces > 0 then self.command = self:typed(place - 1) end
  self.pieces = {}
end

function Reader:mark(place, payload, after)
  local kind, options = payload:match("^(%a);?(.*)$")
  if kind == "A" or kind == "P" then
    self:prompt_begins(place, after, is_continuation(options))
  elseif kind == "B" then
    self:input_begins(place, after)
  elseif kind == "C" then
    self:output_begins(place)
  elseif kind == "D" then
    self.exit_code = math.tointeger(tonumber(options:match("^%d+")))
    self.finished = self.finished + 1
  else
    return
  end
  self.last, self.last_at = kind, after
end

-- Read all marks of a text. `last` is the last mark's letter, nil if there is none.
function marks.read(text)
  local reader = setmetatable({ text = text, pieces = {}, begun = 0, finished = 0 }, Reader)
  -- Find each start of a mark by a plain search: a pattern would be tried at every character.
  local place = text:find("\27]", 1, true)
  while place do
    local number, payload, stop = text:match("^(%d+);([^\7\27]*)()", place + 2)
    if number and ended(text, stop) then
      local after = stop + (text:sub(stop, stop) == "\7" and 1 or 2)
      if number == "133" then reader:mark(place, payload, after) end
      if number == "7" then reader.cwd = directory(payload) or reader.cwd end
    end
    place = text:find("\27]", place + 2, true)
  end
  return reader
end

return marks
