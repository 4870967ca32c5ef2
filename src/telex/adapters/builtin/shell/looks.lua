-- The text of prompts. Each function checks one sign; a state needs several signs.

local view = require("telex.view")

local looks = {}

local ROW_BYTES = 240

-- The characters at the end of a prompt, before a blank. `>` is missing: output uses it for quotes, so
-- it does not identify the prompt of a shell within a shell.
local SHELL_SIGNS = { "%$", "#", "%%", "❯", "➜", "λ" }
local SIGNS = { "%$", "#", "%%", "❯", "➜", "λ", "»", ">" }

-- The names of open constructs in zsh's continuation prompt.
local OPEN = {}
for word in ([[quote dquote bquote cmdsubst mathsubst heredoc heredocd pipe cmdand cmdor errpipe for
  foreach while until repeat select if then else elif elif-then case cond function cursh subsh array
  braceparam always math]]):gmatch("%S+") do OPEN[word] = true end

local SECRETS = { "password", "passphrase", "passwort", "passcode", "verification code", "pin for " }

local function ends_with_sign(text, signs)
  if #text > ROW_BYTES or not text:find(" $") then return false end
  local bare = text:sub(1, -2)
  for _, sign in ipairs(signs) do
    if bare:find(sign .. "$") then return true end
  end
  return false
end

-- A prompt on the right (RPROMPT) is not next to the cursor.
local function nothing_behind(ending)
  return not ending.after:find("%S") or ending.after:find("^%s%s") ~= nil
end

local function up_to_cursor(ending)
  return ending.here and ending.before or ending.row .. " "
end

function looks.prompt(ending)
  return nothing_behind(ending) and ends_with_sign(up_to_cursor(ending), SIGNS)
end

function looks.shell_prompt(ending)
  return nothing_behind(ending) and ends_with_sign(up_to_cursor(ending), SHELL_SIGNS)
end

-- `> ` of bash, `for then> ` of zsh.
function looks.continuation(ending)
  local words = up_to_cursor(ending):match("^([%l %-]*)> $")
  if not words then return false end
  for word in words:gmatch("%S+") do
    if not OPEN[word] then return false end
  end
  return true
end

-- The part of the row that looks like a prompt, and the text typed behind it; nil if there is none.
function looks.typed(ending)
  local row = ending.before .. ending.after
  for _, sign in ipairs(SHELL_SIGNS) do
    local prompt, typed = row:match("^([^\"']-" .. sign .. ") (.+)$")
    if typed then return prompt, view.trim(typed) end
  end
  return nil
end

-- The kind of secret that a row asks for; nil if it asks for none.
function looks.password(ending)
  local text = up_to_cursor(ending)
  if ending.here == false or ending.after:find("%S") or #text > ROW_BYTES then return nil end
  local asked = text:match("^(.*): ?$")
  local lower = asked and asked:lower() or ""
  for _, word in ipairs(SECRETS) do
    if lower:find(word, 1, true) then return view.trim(asked) end
  end
  return nil
end

return looks
