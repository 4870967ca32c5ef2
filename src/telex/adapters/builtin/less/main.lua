-- The pager less.
--
-- A file can contain any text, also `(END)`. So a prompt counts only in the place and form of less: on
-- the bottom row of the terminal, with the cursor right behind it, and either on the alternate screen or
-- (less -X does not use it) printed as less prints it, inverse or on a row that was just cleared.

local view = require("telex.view")
local prompts = require("prompts")

local less = { describe = require("catalogue") }

local ASKED = "asked"
-- The marker that is set before a command: a wait only reads output after it.

local SETTLE_MS = 60
-- less draws page and prompt at once, but the screen may be classified between two reads.

local function answer(state, confidence, rule, evidence)
  return { state = state, confidence = confidence, rule = rule, evidence = evidence }
end

-- The bottom row, if less waits there: the cursor on it, behind its text.
local function bottom(ctx)
  local ending = view.ending(ctx)
  local at_bottom = not ctx.size or ending.number == ctx.size.rows - 1
  if not at_bottom or not ending.here or ending.after:find("%S") then return nil end
  return ending.row
end

-- How less printed its bottom row: "inverse", "cleared", or nil.
local function printed(ctx, row)
  local tail = ctx.transcript:sub(-1024)
  if tail:match("^.*\27%[7m([^\27]*)\27%[27m") == row and tail:find("\27%[27m[\27%[K]*$") then return "inverse" end
  if tail:find("\r\27[K" .. row:sub(1, 1), 1, true) then return "cleared" end
  return nil
end

local function by_form(ctx, row)
  for _, form in ipairs(prompts.FORMS) do
    if form.has(row) then
      local how = printed(ctx, row)
      if not (ctx.alternate_screen or how == form.printed) then return nil end
      return answer(form.state, ctx.alternate_screen and 0.92 or 0.75, form.rule,
        ("The bottom row is `%s`, with the cursor behind it, %s."):format(row, ctx.alternate_screen and "on the alternate screen" or how))
    end
  end
  return nil
end

-- Without -M the first prompt is only the name of the file.
local function by_name(ctx, row)
  if not (ctx.alternate_screen and printed(ctx, row) == "inverse") then return nil end
  local state = answer("viewing", 0.7, "name_row", "The bottom row is inverse, with the cursor behind it, on the alternate screen.")
  state.metadata = { file = row }
  return state
end

local PLACED = { viewing = true, at_end = true }

local function decide(ctx)
  if ctx.process_exited then
    return answer("exited", 1, "exited", ("less ended with code %s."):format(ctx.exit_code or "unknown"))
  end
  local row = bottom(ctx)
  local state = row and (by_form(ctx, row) or by_name(ctx, row))
  if not state then
    return answer("unknown", 0.2, "nothing_matched", "The cursor is not behind a prompt of less on the bottom row.")
  end
  if PLACED[state.state] and not state.metadata then state.metadata = prompts.position(row) end
  if state.state == "searching" then state.metadata = { typed = row:match("^&?[/?](.*)$") } end
  if state.state == "message" then state.metadata = { message = view.trim(row:match("^(.-)%s*%(press RETURN%)$")) } end
  return state
end

less.classify = decide

-- Intents.

local READY = { viewing = true, at_end = true, help = true, pattern_not_found = true, message = true }

local function check(params, ctx)
  local now = decide(ctx)
  if not params.force and not READY[now.state] then
    telex.refuse("not_viewing", ("less is in state `%s`: %s Cancel first, or pass `force`."):format(now.state, now.evidence))
  end
  return now
end

-- Press keys at the prompt. While a message waits for RETURN, any other key is the next command.
local function press(params, ctx, last_intent, keys)
  check(params, ctx)
  return { actions = { telex.action.mark_transcript(ASKED), telex.action.text(keys) }, last_intent = last_intent }
end

local function whole_number(params, name, most)
  local value = math.tointeger(params[name])
  if not value or value < 0 or value > most then
    telex.refuse("bad_params", ("`%s` must be a whole number from 0 to %d."):format(name, most))
  end
  return value
end

function less.search(params, ctx)
  local pattern = view.text(params, "pattern")
  if pattern == "" or pattern:find("%c") then
    telex.refuse("bad_params", "`pattern` must be one line that is not empty, without control characters.")
  end
  local how = (params.backward and "?" or "/") .. (params.literal and "\18" or "")
  local plan = press(params, ctx, "searched", how .. pattern)
  plan.actions[#plan.actions + 1] = telex.action.key("enter")
  return plan
end

function less.next_match(params, ctx) return press(params, ctx, "searched", "n") end
function less.previous_match(params, ctx) return press(params, ctx, "searched", "N") end
function less.page_down(params, ctx) return press(params, ctx, "moved", "f") end
function less.page_up(params, ctx) return press(params, ctx, "moved", "b") end
function less.top(params, ctx) return press(params, ctx, "moved", "g") end
function less.bottom(params, ctx) return press(params, ctx, "moved", "G") end

function less.go_to(params, ctx)
  if (params.line == nil) == (params.percent == nil) then
    telex.refuse("bad_params", "Pass either `line` or `percent`.")
  end
  local keys = params.line and whole_number(params, "line", 1000000000) .. "g"
    or whole_number(params, "percent", 100) .. "p"
  return press(params, ctx, "moved", keys)
end

-- In the help, `q` only leaves the help.
function less.quit(params, ctx)
  return press(params, ctx, "quit", check(params, ctx).state == "help" and "qq" or "q")
end

-- Abort a typed search or command, or the wait for data.
function less.cancel()
  return { actions = { telex.action.mark_transcript(ASKED), telex.action.interrupt() }, last_intent = "cancelled" }
end

-- Waits.

local function reached(input, states)
  local now = decide(input)
  if not states[now.state] or view.since(input, ASKED) == "" then return false end
  return { matched = true, evidence = { state = now.state, rule = now.rule, evidence = now.evidence } }
end

function less.is_ready(input)
  return reached(input, READY)
end

function less.is_at_end(input)
  return reached(input, { at_end = true })
end

local function stands(predicate)
  local m = telex.matcher
  return m.any {
    m.process_exited(),
    m.all { m.screen_stable { min_ms = SETTLE_MS, since = "change" }, m.lua(predicate, { stable_ms = SETTLE_MS }) },
  }
end

function less.wait_turn_matcher() return stands("is_ready") end
function less.wait_end_matcher() return stands("is_at_end") end

function less.wait_text_matcher(params)
  if params.regex then return telex.matcher.screen_regex(view.text(params, "regex")) end
  return telex.matcher.contains_text(view.text(params, "text"))
end

return less
