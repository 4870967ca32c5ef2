-- The environment of a plugin in Lua, and the guards that limit a call.
--
-- `lua_state` runs this file once, before any plugin, with all of Lua available. The file returns two
-- functions (`begin` and `invoke`) and keeps everything else in locals. A plugin's environment is built
-- below from a list of names, so a name that is not on the list does not exist, also in later versions
-- of Lua.
--
-- This file calls every function that a plugin could replace by a local name. It sees no Python value.

local assert, error, getmetatable, ipairs, load, next, pairs, pcall, rawequal, rawget, rawlen, rawset, select,
  setmetatable, tonumber, tostring, type, xpcall =
  assert, error, getmetatable, ipairs, load, next, pairs, pcall, rawequal, rawget, rawlen, rawset, select,
  setmetatable, tonumber, tostring, type, xpcall
local create, resume, close = coroutine.create, coroutine.resume, coroutine.close
local gsub, format, unpack = string.gsub, string.format, table.unpack
local randomseed, sethook = math.randomseed, debug.sethook

-- lupa makes a traceback if it finds `debug`, by running code on the plugin's errors. The value is not
-- nil, because lupa looks the name up when memory may be short, and an existing name needs no memory.
debug = false

local EVERY = 10000
local INSTRUCTIONS, MODULES = ... -- the budget of a call; the host's modules, source by name

-- The end of a call. After its budget or its memory is spent, or after a refusal, every guarded
-- function throws again, so that a plugin cannot continue by `pcall` in a loop.

local left = 0    -- instructions left of the budget
local over = nil  -- why this call has ended: "budget", "memory", "refused"
local refusal     -- code and message, if `over` is "refused"
local OVER = {}   -- the error value thrown then; `over` has the reason

local function charge(instructions)
  left = left - instructions
  if left <= 0 then
    over = over or "budget"
    error(OVER, 0)
  end
end

local function tick()
  charge(EVERY)
end

-- Lua's own memory error is exactly this string. Errors of a plugin have a position before the text.
local function settle(ok, ...)
  if not ok and not over and rawequal((...), "not enough memory") then
    over = "memory"
  end
  if over then
    error(OVER, 0)
  end
  return ok, ...
end

local function guarded_pcall(...)
  return settle(pcall(...))
end

local function guarded_xpcall(f, handler, ...)
  if type(handler) ~= "function" then
    error("bad argument #2 to 'xpcall' (function expected)", 2)
  end
  return settle(xpcall(f, function(e)
    if over then
      return e
    end
    return handler(e)
  end, ...))
end

-- A hook counts the instructions of one coroutine, so each coroutine gets the hook.
local function guarded_create(f)
  if type(f) ~= "function" then
    error("bad argument #1 to 'create' (function expected)", 2)
  end
  charge(1000) -- for the instructions before the hook first counts
  local thread = create(f)
  sethook(thread, tick, "", EVERY)
  return thread
end

local function guarded_resume(...)
  return settle(resume(...))
end

local function guarded_close(...)
  return settle(close(...))
end

local function unwrapped(thread, ok, ...)
  if ok then
    return ...
  end
  close(thread)
  error((...), 0)
end

local function guarded_wrap(f)
  local thread = guarded_create(f)
  return function(...)
    return unwrapped(thread, guarded_resume(thread, ...))
  end
end

-- A finalizer would run outside of a call, whenever the collector runs.
local function guarded_setmetatable(t, meta)
  if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
    error("finalizers (__gc) are not available to plugins", 2)
  end
  return setmetatable(t, meta)
end

local function copy(from, names)
  local to = {}
  for _, name in ipairs(names) do
    to[name] = from[name]
  end
  return to
end

local STRING = { "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize", "rep",
  "reverse", "sub", "unpack", "upper" }
local TABLE = { "concat", "insert", "move", "pack", "remove", "sort", "unpack" }
local MATH = { "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max",
  "maxinteger", "min", "mininteger", "modf", "pi", "rad", "random", "randomseed", "sin", "sqrt", "tan", "tointeger",
  "type", "ult" }
local UTF8 = { "char", "charpattern", "codepoint", "codes", "len", "offset" }

-- `("x"):upper()` finds the allowed functions of `string` and nothing else. The metatable of strings
-- is hidden.
local strings = copy(string, STRING)
local of_strings = getmetatable("")
of_strings.__index = strings
of_strings.__metatable = false

local function library()
  return {
    _VERSION = _VERSION, assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next,
    pairs = pairs, rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = rawset, select = select,
    tonumber = tonumber, tostring = tostring, type = type,
    pcall = guarded_pcall, xpcall = guarded_xpcall, setmetatable = guarded_setmetatable,
    string = strings, table = copy(table, TABLE), math = copy(math, MATH), utf8 = copy(utf8, UTF8),
    coroutine = {
      create = guarded_create, resume = guarded_resume, wrap = guarded_wrap, close = guarded_close,
      isyieldable = coroutine.isyieldable, running = coroutine.running, status = coroutine.status,
      yield = coroutine.yield,
    },
  }
end

-- The host's functions. A function that the manifest does not permit does not exist.

local function valued(kind)
  return function(value)
    return { type = kind, value = value }
  end
end

local function plain(kind)
  return function()
    return { type = kind }
  end
end

local function actions(may)
  local action = {}
  if may["input.write"] then
    for _, kind in ipairs { "text", "paste", "bracketed_paste", "key" } do
      action[kind] = valued(kind)
    end
    action.interrupt, action.eof = plain "interrupt", plain "eof"
    function action.stream_text(text, options)
      local value = { text = text }
      for _, name in ipairs { "chunk_chars", "delay_ms" } do
        value[name] = options and options[name]
      end
      return { type = "stream_text", value = value }
    end
    function action.mark_transcript(label)
      return { type = "mark_transcript", value = { label = label } }
    end
  end
  if may["session.kill"] then
    action.kill, action.signal = plain "kill", valued "signal"
  end
  if may["session.resize"] then
    function action.resize(rows, cols)
      return { type = "resize", value = { rows = rows, cols = cols } }
    end
  end
  return action
end

local function matchers(may, plugin)
  local matcher = {}
  if not may["matcher.wait"] then
    return matcher
  end
  for _, kind in ipairs { "contains_text", "screen_regex", "transcript_contains", "transcript_regex", "text_absent",
    "title", "exit_code", "any", "all" } do
    matcher[kind] = valued(kind)
  end
  matcher.process_exited, matcher.none = plain "process_exited", valued "not"
  function matcher.input_wanted(...)
    return { type = "input_wanted", value = { ... } }
  end
  function matcher.screen_stable(stability)
    return { type = "screen_stable", value = type(stability) == "table" and stability or { min_ms = stability } }
  end
  function matcher.cursor_at(row, col)
    return { type = "cursor_at", value = { row = row, col = col } }
  end
  function matcher.lua(predicate, params)
    return { type = "lua", value = { plugin = plugin, predicate = predicate, params = params } }
  end
  return matcher
end

local function refuse(code, message)
  if type(code) ~= "string" or (message ~= nil and type(message) ~= "string") then
    error("telex.refuse takes a code and a message, both strings", 2)
  end
  over, refusal = over or "refused", { code, message or code }
  error(OVER, 0)
end

-- `require` finds the plugin's own sources and the host's modules only.

local function requirer(files, env)
  local loaded, loading = {}, {}

  local function run(path)
    local source = rawget(files, path) or rawget(MODULES, path)
    if not source then
      error(format("the plugin has no file '%s'", path), 0)
    end
    local chunk, problem = load(source, "@" .. path, "t", env)
    if not chunk then
      error(problem, 0)
    end
    loading[path] = true
    local value = chunk()
    loading[path] = nil
    loaded[path] = { value == nil or value }
    return value
  end

  local function require(name)
    if type(name) ~= "string" then
      error("require takes the name of a module", 2)
    end
    local path = gsub(name, "%.", "/")
    for _, candidate in ipairs { path .. ".lua", path .. "/init.lua" } do
      if loaded[candidate] then
        return loaded[candidate][1]
      elseif loading[candidate] then
        error(format("%s requires itself, directly or through others", candidate), 2)
      elseif rawget(files, candidate) or rawget(MODULES, candidate) then
        run(candidate)
        return loaded[candidate][1]
      end
    end
    error(format("there is no module '%s': the plugin has neither %s.lua nor %s/init.lua", name, path, path), 2)
  end

  return require, run
end

-- Calls.

-- The text of an error. Its metatable belongs to the plugin and is not used.
local function error_text(e)
  local kind = type(e)
  if kind == "string" then
    return (gsub(e, "^telex:%d+: ", "")) -- a line number of this file does not help an author
  elseif kind == "number" then
    return format("%s", e)
  end
  return "an error that is no string but a " .. kind
end

local function outcome(ok, value)
  if over == "refused" then
    return false, "refused", refusal[2], refusal[1]
  elseif over then
    return false, over
  elseif ok then
    return true, value
  elseif rawequal(value, "not enough memory") then
    return false, "memory"
  end
  return false, "threw", error_text(value)
end

local exports

local function guarded(f, ...)
  left, over, refusal = INSTRUCTIONS, nil, nil
  return outcome(pcall(f, ...))
end

-- Load the plugin `plugin` for version `version` of telex, with the permissions `may`, its source
-- `files`, the path of the first file to run, and a random seed. Returns the names of its functions.
local function begin(plugin, version, may, files, entrypoint, seed)
  randomseed(seed)
  local env = library()
  env._G = env
  env.telex = {
    plugin = plugin, version = version, refuse = refuse,
    action = actions(may), matcher = matchers(may, plugin),
  }
  env.ptywright = env.telex -- the name that existing plugins use
  local run
  env.require, run = requirer(files, env)
  sethook(tick, "", EVERY)
  local ok, value, problem, code = guarded(run, entrypoint)
  if not ok then
    return ok, value, problem, code
  elseif type(value) ~= "table" then
    return false, "load", format("%s answered a %s where a table of functions is wanted", entrypoint, type(value))
  end
  exports = value
  local names = {}
  for name, f in next, exports do
    if type(name) == "string" and type(f) == "function" then
      names[#names + 1] = name
    end
  end
  return true, names
end

-- Call a function. `call` has its name and its arguments, `n` values in all.
local function invoke(call, n)
  local f = rawget(exports, call[1])
  if type(f) ~= "function" then
    return false, "no_function"
  end
  return guarded(f, unpack(call, 2, n))
end

return begin, invoke
