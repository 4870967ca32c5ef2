-- Python's interactive interpreter, both the basic one and the one with its own line editor.
--
-- It prints no marks, so it is classified by structure: the last row begins like a prompt AND the cursor
-- is on this row, behind the prompt. Documentation has many `>>>`, but not with the cursor behind them.

local view = require("telex.view")
local output = require("output")
local source = require("source")

local repl = { describe = require("catalogue") }

local EVALUATED, SUBMITTED = "evaluated", "submitted"
-- Markers: one at the last code, one at the last input that a turn waits for. A wait only reads output
-- after the marker, so that the old prompt is not taken for the new one.

local PROMPTS = {
  { state = "prompt", rule = "prompt_row", form = "^(>>> )(.*)$" },
  { state = "continuation", rule = "continuation_row", form = "^(%.%.%. )(.*)$" },
  { state = "debugger", rule = "debugger_row", form = "^(%(Pdb[%+]*%) )(.*)$" },
  { state = "debugger", rule = "debugger_row", form = "^(ipdb> )(.*)$" },
}

local SETTLE_MS = 50
-- The screen may be classified between two reads of one output. Output that quotes a prompt continues
-- at once.

local function answer(state, confidence, rule, evidence)
  return { state = state, confidence = confidence, rule = rule, evidence = evidence }
end

-- Whether the interpreter has read the submitted line: its echo is complete, or the line editor ended or
-- started again. Nil if nothing was submitted.
local function taken(ctx, label)
  local since = view.since(ctx, label)
  if not since then return nil end
  return (since:find("\n", 1, true) or since:find("\27[?2004", 1, true)) ~= nil
end

local function prompt_of(ending)
  local text = ending.here and ending.before .. ending.after or ending.row .. " "
  for _, prompt in ipairs(PROMPTS) do
    local head, typed = text:match(prompt.form)
    if head then return prompt, head, view.trim(typed) end
  end
  return nil
end

local function by_row(ctx, ending)
  local prompt, head, typed = prompt_of(ending)
  if not prompt or ending.here == false then return nil end
  local still = view.still(ctx)
  if not (still or ending.here) then return nil end
  local sure = ending.here and still and 0.9 or 0.6
  if typed ~= "" then sure = math.min(sure, 0.7) end
  local state = answer(prompt.state, sure, prompt.rule, ("The last row begins with `%s`%s%s."):format(
    view.trim(head), ending.here and ", the cursor stands behind it" or "", still and ", the screen stands still" or ""))
  state.metadata = { prompt = view.trim(head), typed = typed ~= "" and typed or nil }
  return state
end

local function by_waiting(ctx, ending, busy)
  local asks = busy and ending.here and view.still(ctx) and ending.before:find("%S") and not ending.after:find("%S")
  if not asks then return nil end
  local reads = view.editing(ctx.transcript)
  local state = answer("input", reads and 0.8 or 0.6, "input_row",
    "Code runs, and the cursor stays behind text that is no prompt of the interpreter."
    .. (reads and " A line editor reads." or ""))
  state.metadata = { asked = view.trim(ending.before) }
  state.candidates = { { state = "running", confidence = 0.4, evidence = "It may have printed this text and still be running." } }
  return state
end

local function decide(ctx)
  if ctx.process_exited then
    return answer("exited", 1, "exited", ("The interpreter exited with code %s."):format(ctx.exit_code or "unknown"))
  end
  if not ctx.screen:find("%S") then return answer("starting", 0.5, "blank", "Nothing was printed yet.") end
  local busy = taken(ctx, EVALUATED)
  if ctx.alternate_screen then return answer("running", 0.7, "full_screen", "A program uses the alternate screen.") end
  if busy == false then return answer("running", 0.6, "echoing", "Code was sent, and its echo is not complete.") end
  local ending = view.ending(ctx)
  return by_row(ctx, ending)
    or by_waiting(ctx, ending, busy)
    or (busy or ctx.last_intent == "code_submitted")
      and answer("running", 0.75, "no_prompt_back", "Code was sent, and there is no prompt at the cursor.")
    or answer("unknown", 0.2, "nothing_matched", "There is no prompt of the interpreter at the cursor.")
end

local AT_REST = { prompt = true, debugger = true }

function repl.classify(ctx)
  local state = decide(ctx)
  if not AT_REST[state.state] then return state end
  local result, cut = output.since(ctx, EVALUATED)
  if not result then return state end
  state.metadata.result, state.metadata.error = result, output.error(result)
  if cut then state.metadata.result_truncated = true end
  return state
end

-- Intents.

local function submit(last_intent, label, ...)
  local actions = { telex.action.mark_transcript(SUBMITTED) }
  if label then actions[2] = telex.action.mark_transcript(label) end
  for _, action in ipairs { ... } do actions[#actions + 1] = action end
  return { actions = actions, last_intent = last_intent }
end

local function check(ctx, wanted, code)
  local now = repl.classify(ctx)
  if not wanted[now.state] then
    telex.refuse(code, ("The interpreter is in state `%s`: %s Wait, or pass `force`."):format(now.state, now.evidence))
  end
  if wanted.prompt and now.metadata.typed then
    telex.refuse("line_not_empty", "The prompt already has typed text. Interrupt first, or pass `force`.")
  end
  return now.state
end

-- The new interpreter redraws the line at each key, but a paste only once.
local function typing(line, ctx)
  local pasted = #line > 80 and view.editing(ctx.transcript)
  return pasted and telex.action.bracketed_paste(line) or telex.action.text(line)
end

function repl.evaluate(params, ctx)
  local code = view.right_trim((view.text(params, "code"):gsub("\r\n?", "\n")))
  local state = params.force and "prompt" or check(ctx, AT_REST, "not_at_prompt")
  if state == "debugger" and code:find("%c") then
    telex.refuse("one_line_only", "The debugger takes one line at a time.")
  end
  local line = state == "debugger" and code or source.line(code)
  return submit("code_submitted", EVALUATED, typing(line, ctx), telex.action.key("enter"))
end

function repl.answer(params, ctx)
  local text = view.text(params, "text")
  if text:find("%c") then telex.refuse("bad_params", "`text` must be one line, without control characters.") end
  if not params.force then check(ctx, { input = true }, "no_input_asked") end
  return submit("input_answered", nil, telex.action.text(text), telex.action.key("enter"))
end

-- Input that is submitted or discarded at a prompt has its own result.
local function of_its_own(ctx)
  local state = repl.classify(ctx).state
  return (AT_REST[state] or state == "continuation") and EVALUATED or nil
end

function repl.interrupt(_, ctx)
  return submit("interrupted", of_its_own(ctx), telex.action.interrupt())
end

function repl.exit(params, ctx)
  if not params.force then check(ctx, AT_REST, "not_at_prompt") end
  return submit("exit_sent", nil, telex.action.eof())
end

local function by_hand(typed, action, ctx)
  return view.sends(typed) and submit(nil, of_its_own(ctx), action) or { actions = { action } }
end

function repl.type(params, ctx)
  local text = view.text(params, "text")
  return by_hand(text, telex.action.text(text), ctx)
end

function repl.key(params, ctx)
  local key = view.text(params, "key")
  return by_hand(key, telex.action.key(key), ctx)
end

-- Waits.

local function reached(input, states)
  local now = repl.classify(input)
  if not states[now.state] or taken(input, SUBMITTED) == false then return false end
  return { matched = true, evidence = { state = now.state, rule = now.rule, evidence = now.evidence } }
end

function repl.prompt_is_back(input)
  return reached(input, AT_REST)
end

function repl.person_is_needed(input)
  return reached(input, { prompt = true, debugger = true, continuation = true, input = true })
end

function repl.output_contains(input)
  local since = view.since(input, EVALUATED) or input.transcript
  local printed = view.plain(since:match("\n(.*)$") or "")
  if not printed:find(input.params.text, 1, true) then return false end
  return { matched = true, capture = input.params.text }
end

local function stands(min_ms, predicate)
  local m = telex.matcher
  return m.all { m.screen_stable { min_ms = min_ms, since = "change" }, m.lua(predicate, { stable_ms = min_ms }) }
end

function repl.wait_turn_matcher(params)
  local m = telex.matcher
  return m.any {
    m.process_exited(),
    stands(SETTLE_MS, "prompt_is_back"),
    stands(params.completed_turn_stable_ms, "person_is_needed"),
  }
end

function repl.wait_prompt_matcher()
  return telex.matcher.any { telex.matcher.process_exited(), stands(SETTLE_MS, "prompt_is_back") }
end

function repl.wait_output_matcher(params)
  if params.regex then return telex.matcher.transcript_regex(view.text(params, "regex")) end
  return telex.matcher.lua("output_contains", { text = view.text(params, "text") })
end

return repl
