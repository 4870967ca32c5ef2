-- Converts names of keys as people write them (`Ctrl-C`, `page-up`, `Return`) to the host's names.
--
-- Only names of more than one character are keys. Anything else is text to type.

local keys = {}

local NAMES = {}
for name in
  ("enter escape tab backspace delete space insert up down right left home end page_up page_down "
    .. "f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12"):gmatch("%S+")
do
  NAMES[name] = name
  NAMES[name:gsub("_", "")] = name
end

local ALIASES = {
  ["return"] = "enter",
  esc = "escape",
  bs = "backspace",
  del = "delete",
  ins = "insert",
  pgup = "page_up",
  pgdn = "page_down",
  backtab = "shift_tab",
}
local HELD = {
  ctrl = "ctrl",
  control = "ctrl",
  c = "ctrl",
  alt = "alt",
  meta = "alt",
  option = "alt",
  m = "alt",
  shift = "shift",
  s = "shift",
}

-- The host's name of a key, or nil if the words name no key.
function keys.named(words)
  local rest, held = words:lower():gsub("[-+]", "_"), ""
  while true do
    local modifier, key = rest:match("^(%a+)_(.+)$")
    if not (modifier and HELD[modifier]) then
      break
    end
    held, rest = held .. HELD[modifier] .. "_", key
  end
  local name = NAMES[rest] or ALIASES[rest] or (held ~= "" and rest:match("^[%w]$"))
  return name and held .. name or nil
end

return keys
