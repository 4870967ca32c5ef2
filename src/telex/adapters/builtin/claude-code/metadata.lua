-- The metadata of a state: the permission that is requested, the options, the plan, figures.
--
-- `metadata.extract(scene, rule, found, wordings)` returns a table. A fact that is not on the screen is
-- absent; without any fact the result is nil.

local hash = require("hash")
local links = require("links")
local rows = require("rows")
local screen = require("screen")

local metadata = {}

local extractors = {}

local MODES = { bypass = "bypass permissions on", auto = "auto mode on", plan = "plan mode on" }

-- The model and the permission mode, from the rows below the input box.
local function status(scene, facts)
  for at = scene.box and scene.box.bottom + 1 or #scene.rows + 1, #scene.rows do
    local row = scene.rows[at]
    for name in row.text:gmatch("%[([^%[%]]+)%]") do
      facts.model = name
    end
    for mode, wording in pairs(MODES) do
      if row.lower:find(wording, 1, true) then
        facts.permission_mode = mode
      end
    end
  end
end

local function labels(scene)
  local facts = {}
  for _, option in ipairs(scene.menu and scene.menu.options or {}) do
    facts[#facts + 1] = option.label
  end
  return #facts > 0 and facts or nil
end

function extractors.options(scene, facts)
  facts.options = labels(scene)
  if facts.options and not facts.dialog_id then
    facts.dialog_id = hash.fnv1a("menu:" .. table.concat(facts.options, "\n"))
  end
end

function extractors.login(scene, facts)
  local url = links.login(scene)
  facts.login = url and { url = url }
end

-- The row of a dialog's question, or else the first row of its options.
local function question_row(scene, found)
  return found.question or scene.menu and scene.menu.options[1].row or scene.last
end

-- The path is alone on a row, above the options.
function extractors.trust(scene, facts, found)
  local path = nil
  for at = 1, (found.answer or #scene.rows + 1) - 1 do
    local text = scene.rows[at].text
    if not path and (text:find("^/") or text:find("^~") or text:find("^%a:\\")) then
      path = text
    end
  end
  facts.trust = path and { path = path }
  facts.dialog_id = hash.fnv1a("trust:" .. (path or ""))
end

local EDGES = { rule = true, frame_top = true }

-- The first row of the dialog that the row at `at` belongs to.
local function dialog_top(scene, at)
  for above = at - 1, 1, -1 do
    if EDGES[scene.rows[above].role] then
      return above + 1
    end
  end
  return scene.echo + 1
end

local function next_filled(scene, from, below)
  for at = from, below - 1 do
    if scene.rows[at].text ~= "" then
      return at
    end
  end
  return nil
end

local KINDS = { "command", "tool", "file" }

local function tool_of(title)
  for _, kind in ipairs(KINDS) do
    local name = title:match("^(.-)%s+" .. kind .. "$")
    if name then
      return name
    end
  end
  return title
end

-- `tool, summary` of a dialog with a menu: its first two rows.
local function asked_by_menu(scene, found)
  local question = question_row(scene, found)
  local top = next_filled(scene, dialog_top(scene, question), question)
  local second = top and next_filled(scene, top + 1, question)
  return top and tool_of(scene.rows[top].text), second and scene.rows[second].text
end

local function asked_by_keys(scene, found)
  return scene.rows[found.allow].text:match("^%a+%s+(.-)%s+[Cc]ommand:%s*(.*)$")
end

local function asked_by_call(scene, found)
  return scene.rows[found.call].said_text:match("^([^(]-)%s*%((.*)%)$")
end

function extractors.permission(scene, facts, found)
  local ask = found.allow and asked_by_keys or found.call and asked_by_call or asked_by_menu
  local tool, summary = ask(scene, found)
  facts.permission = { tool = tool, summary = summary, options = labels(scene) }
  facts.options = labels(scene)
  facts.dialog_id = hash.fnv1a("perm:" .. (tool or "") .. ":" .. (summary or ""))
end

-- The rows first..last as a text, without blank rows around it.
local function body(scene, first, last)
  local lines = {}
  for at = first, last do
    lines[#lines + 1] = scene.rows[at].text
  end
  return (table.concat(lines, "\n"):gsub("^\n+", ""):gsub("\n+$", ""))
end

local function is_dashed(row)
  return rows.starts(row.text, "╌╌╌")
end

-- The first row of a plan whose first row may be a heading.
local function below_heading(scene, first)
  local at = next_filled(scene, first, #scene.rows + 1)
  local heads = at and (scene.rows[at].lower == "plan" or scene.rows[at].lower:find("^plan[: ]"))
  return heads and at + 1 or first
end

-- First and last row of the plan: between dashed rules if there are any, else between the row above it
-- (its heading, the question, or the edge of the dialog) and the question or the menu.
local function plan_rows(scene, found)
  local question = question_row(scene, found)
  local top = dialog_top(scene, question)
  local bottom = scene.menu and scene.menu.options[1].row - 1 or question - 1
  local dashes = {}
  for at = top, bottom do
    if is_dashed(scene.rows[at]) then
      dashes[#dashes + 1] = at
    end
  end
  if #dashes > 1 then
    return dashes[1] + 1, dashes[#dashes] - 1
  elseif found.heading then
    return found.heading + 1, question - 1
  elseif body(scene, top, question - 1) ~= "" then
    return below_heading(scene, top), question - 1
  end
  return below_heading(scene, question + 1), bottom
end

function extractors.plan(scene, facts, found)
  local first, last = plan_rows(scene, found)
  local plan = body(scene, first, last)
  facts.plan = plan ~= "" and plan or nil
  facts.dialog_id = hash.fnv1a("plan:" .. plan)
end

-- A percentage is on the row of its heading or below it.
function extractors.usage(scene, facts)
  local usage, heading = {}, nil
  for _, row in ipairs(scene.rows) do
    local text = row.said or row.lower
    if rows.starts(text, "current session") then
      heading = "session_percent"
    elseif rows.starts(text, "current week") then
      local whole = not text:find("(", 1, true) or text:find("all models", 1, true)
      heading = whole and "week_percent" or nil
    end
    local share = text:match("(%d+)%% used")
    if share and heading and not usage[heading] then
      usage[heading] = tonumber(share)
    end
    usage.cost = usage.cost or tonumber(text:match("^%a+ cost:%s*%$(%d+%.?%d*)"))
  end
  facts.usage = next(usage) and usage or nil
end

local SECONDS = { s = 1, m = 60, h = 3600 }
local AGAIN = { "retry in ", "retry after ", "try again in ", "retrying in " }

-- Seconds until a retry makes sense, as the text says.
local function retry_after(text)
  for _, words in ipairs(AGAIN) do
    local _, stop = text:find(words, 1, true)
    local number, unit = text:match("^(%d+)%s*(%a?)", (stop or #text) + 1)
    if number then
      return tonumber(number) * (SECONDS[unit] or 1)
    end
  end
  return nil
end

local DRAFT_CHARS = 200

-- The text in the box, or its beginning.
function extractors.draft(scene, facts)
  local text = screen.box_text(scene) or ""
  local stop = utf8.len(text) and utf8.offset(text, DRAFT_CHARS + 1)
  facts.draft = stop and text:sub(1, stop - 1) or text
end

function extractors.error(scene, facts, found, wordings)
  local text = rows.folded(body(scene, found.words or 1, scene.floor)):gsub("\n", " ")
  local kind = wordings.words and wordings.words.kind
  facts.error = { kind = kind, retry_after_s = retry_after(text) }
  facts.error_text = found.words and (scene.rows[found.words].said_text or scene.rows[found.words].text)
end

local function indented(row, left)
  return string.rep(" ", math.max(0, row.indent - left)) .. row.text
end

-- The text of the lines, without blank lines around it; nil if there is none.
local function joined(lines)
  local text = table.concat(lines, "\n"):gsub("^\n+", ""):gsub("%s+$", "")
  return text ~= "" and text or nil
end

-- The edge between the conversation of this turn and a dialog with a menu; nil without such a dialog.
local function dialog_edge(scene)
  for at = scene.echo + 1, scene.menu and scene.menu.options[1].row or 0 do
    if EDGES[scene.rows[at].role] then
      return at
    end
  end
  return scene.menu and scene.echo or nil
end

-- The whole text of a dialog with a menu, for a person who has to answer it.
function metadata.dialog(scene)
  local edge, lines = dialog_edge(scene), {}
  for at = edge and edge + 1 or math.huge, scene.last do
    lines[#lines + 1] = indented(scene.rows[at], 1)
  end
  return joined(lines)
end

-- What the program said since the last typed text: a list of `{text}`, and of `{tool, summary, result}`
-- for calls of tools. If the typed text has scrolled off the screen, the first one has `cut`.
function metadata.said(scene)
  local said, lines = {}, nil
  local function begin(words)
    local tool, summary = words:match("^(%u[%w_-]*)%s*%((.*)%)$")
    lines = { tool and "" or words }
    said[#said + 1] = { tool = tool, summary = summary, lines = lines }
  end
  local edge = dialog_edge(scene) or scene.floor + 1
  for at = scene.echo + 1, math.min(edge, scene.marker or math.huge) - 1 do
    local row = scene.rows[at]
    if row.role == "bullet" then
      begin(row.said_text)
    elseif row.role == "result" then
      if lines then
        lines[#lines + 1] = row.said_text
      else
        begin(row.said_text)
      end
    elseif row.role == "text" and row.indent == 0 then
      lines = nil
    elseif not lines and scene.echo == 0 and #said == 0 and row.text ~= "" then
      begin(indented(row, 2))
      said[1].cut = true
    elseif lines then -- the rows of a result begin behind its sign
      lines[#lines + 1] = indented(row, said[#said].tool and 5 or 2)
    end
  end
  local list = {}
  for _, one in ipairs(said) do
    local text = joined(one.lines)
    list[#list + 1] = {
      text = not one.tool and (text or "") or nil,
      tool = one.tool,
      summary = one.summary,
      result = one.tool and text,
      cut = one.cut,
    }
  end
  return list
end

function metadata.extract(scene, rule, found, wordings)
  local facts = {}
  status(scene, facts)
  for _, name in ipairs(rule and rule.metadata or {}) do
    extractors[name](scene, facts, found, wordings)
  end
  return next(facts) and facts or nil
end

return metadata
