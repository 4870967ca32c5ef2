-- Converts code into the one line that is typed.
--
-- The prompt reads lines, and a block ends at its first blank line: a function with a blank line would be
-- split, a function without a blank line after it would never be complete, and text typed ahead is echoed
-- out of order. So code of several lines, and a block of one line, is sent as one call that executes the
-- statements one by one, like the prompt: expressions are shown, names are defined in the session, and an
-- exception names its line in "<input>".

local source = {}

local HEAD = [[exec("import ast\nfor n in ast.parse(s,'<input>').body:]]
  .. [[exec(compile(ast.Interactive([n]),'<input>','single'),g)",{"g":globals(),"s":"]]
local TAIL = '"})'

local BLOCKS = {}
for word in ("if for while def class with try async match"):gmatch("%S+") do BLOCKS[word] = true end

local ESCAPES = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

local function escaped(char)
  return ESCAPES[char] or ("\\x%02x"):format(char:byte())
end

local function needs_call(code)
  return code:find("%c") or code:find("^%s*@") or BLOCKS[code:match("^%s*(%a+)")]
end

function source.line(code)
  if not needs_call(code) then return code end
  return HEAD .. code:gsub('[%c\\"]', escaped) .. TAIL
end

return source
