-- An entrypoint for claude-code that removes its anchors, one at a time, and returns what changes.
--
-- test_claude_code.py loads it instead of main.lua, in one worker for all anchors.

local anchors, screen, plugin = require("anchors"), require("screen"), require("main")

local contexts, scenes, before, taken = {}, {}, {}, nil

-- Screens are read once: of all anchors only the marker affects it.
local read = screen.read
function screen.read(text, is_marker)
  scenes[text] = scenes[text] or read(text, is_marker)
  return scenes[text]
end

local function paths()
  local found, seen = {}, {}
  local function all(list, path, deeper)
    if seen[list] then
      return
    end
    seen[list] = true
    for index, member in ipairs(list) do
      local here = table.move(path, 1, #path, 1, {})
      here[#here + 1] = index
      found[#found + 1] = here
      if deeper and member.any then
        local any = table.move(here, 1, #here, 1, {})
        any[#any + 1] = "any"
        all(member.any, any, false)
      end
    end
  end
  all(anchors.marker, { "marker" }, false)
  all(anchors.dialog, { "dialog" }, true)
  for index, rule in ipairs(anchors.rules) do
    all(rule.anchors, { "rules", index, "anchors" }, true)
  end
  return found
end

local function find(path)
  local list = anchors
  for index = 1, #path - 1 do
    list = list[path[index]]
  end
  return list, path[#path]
end

local function name(path)
  local rule = path[1] == "rules" and anchors.rules[path[2]]
  local anchor = rule and rule.anchors[path[4]]
  local told = rule and rule.rule .. "/" .. anchor.name or path[1] .. "/" .. path[2]
  local wording = anchor and path[6] and anchor.any[path[6]]
  if type(wording) == "table" then
    wording = wording.pattern or wording[1]
  end
  return wording and told .. "/" .. wording or told
end

local function told(value)
  if type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  for key, member in pairs(value) do
    parts[#parts + 1] = tostring(key) .. "=" .. told(member)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local wrapper = {}

function wrapper.add(name, ctx)
  contexts[#contexts + 1] = { name = name, ctx = ctx }
  before[name] = told(plugin.classify(ctx))
end

function wrapper.anchors()
  local found = paths()
  for index, path in ipairs(found) do
    found[index] = { path = path, name = name(path) }
  end
  return found
end

function wrapper.take(path)
  local list, index = find(path)
  taken = { list = list, index = index, member = table.remove(list, index) }
  scenes = path[1] == "marker" and {} or scenes
end

function wrapper.put_back()
  table.insert(taken.list, taken.index, taken.member)
  scenes = taken.list == anchors.marker and {} or scenes
end

-- Results that differ from before, of some fixtures from the `first` on.
function wrapper.changed(first, count)
  local changed = {}
  for index = first, math.min(first + count - 1, #contexts) do
    local fixture = contexts[index]
    local answer = plugin.classify(fixture.ctx)
    if told(answer) ~= before[fixture.name] then
      changed[fixture.name] = answer
    end
  end
  return changed
end

return wrapper
