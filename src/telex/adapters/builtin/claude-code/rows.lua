-- One row of the screen, read alone: its text without frames, its indentation, its role.
--
-- The program draws its own parts at the first column: typed text, bullets, spinners, rules. Answers,
-- quotations and code are indented. So only rows at the first column get a role, and results right below
-- the row they belong to. This way a quoted screen is not taken for a real one.

local rows = {}

local NBSP, SIDE, RESULT = "\u{a0}", "│", "⎿"
local RESULT_INDENT = 2
local BULLETS = { "⏺", "●" }
local RULES = { "─", "━", "═" }
local NARROWEST_RULE = 10

-- Spaces only, not `%s`: other spaces depend on the locale, byte by byte, and could split characters.
-- The same is true for `string.lower`.
local function trimmed(text)
  return text:match("^ *(.*[^ ])") or ""
end

-- The text in lower case and with plain apostrophes, for comparisons.
local function folded(text)
  local lower = text:gsub("[A-Z]+", string.lower)
  return lower:find("’", 1, true) and lower:gsub("’", "'") or lower
end

local function starts(text, beginning)
  return text:sub(1, #beginning) == beginning
end

local function ends(text, ending)
  return #text >= #ending and text:sub(-#ending) == ending
end

rows.trimmed, rows.folded, rows.starts, rows.ends = trimmed, folded, starts, ends

-- The text between the sides of a frame, and whether there were sides.
local function unframed(text)
  local inner = trimmed(text)
  if #inner > 2 * #SIDE and starts(inner, SIDE) and ends(inner, SIDE) then
    return inner:sub(#SIDE + 1, -#SIDE - 1), true
  end
  return text, false
end

-- A horizontal rule from edge to edge. It may contain a name, such as that of a session, or the number
-- of hidden rows of a long draft: `─── ↑ 17 more ──────`.
local function is_rule(text)
  for _, line in ipairs(RULES) do
    local cut = text:find("^" .. line:rep(3) .. " ↑ %d+ more ")
    if (cut or starts(text, line:rep(NARROWEST_RULE))) and ends(text, line) then
      return true
    end
  end
  return false
end

local function after(text, beginnings)
  for _, beginning in ipairs(beginnings) do
    if starts(text, beginning) then
      return trimmed(text:sub(#beginning + 1))
    end
  end
  return nil
end

-- Text that a person typed: `❯ text`, formerly `> text`. `❯` alone is a prompt that waits.
local function typed(text)
  if starts(text, "❯") then
    return trimmed(text:sub(#"❯" + 1))
  end
  return text:match("^>%s+(.+)$") or (text == ">" and "") or nil
end

-- `role, said`: the role of the row, and its text without the sign of the role.
local function role(text, indent)
  if text == "" then
    return "blank", nil
  elseif indent <= RESULT_INDENT and starts(text, RESULT) then
    return "result", trimmed(text:sub(#RESULT + 1))
  elseif indent > 0 then
    return "text", nil
  elseif is_rule(text) then
    return "rule", nil
  elseif starts(text, "╭") and ends(text, "╮") then
    return "frame_top", nil
  elseif starts(text, "╰") and ends(text, "╯") then
    return "frame_bottom", nil
  end
  local bulleted = after(text, BULLETS)
  if bulleted then
    return "bullet", bulleted
  end
  local words = typed(text)
  if words then
    return words == "" and "prompt" or "echo", words
  end
  return "text", text
end

function rows.read(raw)
  local spaced = raw:find(NBSP, 1, true) and raw:gsub(NBSP, " ") or raw
  local inner, framed = unframed(spaced)
  local text = trimmed(inner)
  local indent = framed and 2 or #spaced:match("^ *")
  local kind, said = role(text, indent)
  local lower = folded(text)
  return {
    text = text,
    lower = lower,
    indent = indent,
    framed = framed,
    role = kind,
    said = said and (said == text and lower or folded(said)),
    said_text = said,
  }
end

return rows
