-- A shell: bash, zsh, and similar ones.
--
-- There are two ways to classify. By OSC 133, if the shell marks its prompt (`marks`): the last mark
-- decides. Otherwise by structure, with at least two of these signs: a row that looks like a prompt, the
-- cursor right behind it, a line editor that reads (it enables bracketed paste), a stable screen. A
-- screen without either is `unknown`.

local view = require("telex.view")
local marks = require("marks")
local looks = require("looks")

local shell = { describe = require("catalogue") }

local SUBMITTED = "submitted"
-- The marker that is set before input that a turn waits for. A wait only reads output after the marker,
-- so that the old prompt, which is still on the screen, is not taken for the new one.

local function answer(state, confidence, rule, evidence)
  return { state = state, confidence = confidence, rule = rule, evidence = evidence }
end

-- By marks.

local function asks_password(ctx, seen)
  -- With echo on, no program asks for a secret, whatever the text says. (nil: unknown.)
  local hidden = ctx.echo ~= true
  local asked = hidden and seen.last ~= "B" and not seen.editing and looks.password(seen.ending)
  if not asked then return nil end
  local sure = seen.ending.here and (seen.last == "C" and 0.95 or 0.85) or 0.6
  if not view.still(ctx) then sure = 0.6 end
  return answer("password_prompt", sure, "password_prompt",
    ("The last row asks for a secret (%s), with the cursor right behind it."):format(asked))
end

local function nested_prompt(seen)
  -- A shell within the shell (ssh, a container) that prints no marks.
  local reads = seen.editing and seen.edited_at > seen.last_at
  if not (reads and seen.ending.here and looks.shell_prompt(seen.ending)) then return nil end
  seen.prompt_here = seen.ending.before
  return answer("prompt", 0.65, "nested_prompt",
    "A command runs, and its line editor reads at a row that looks like a shell's prompt.")
end

local function by_output(ctx, seen)
  if ctx.alternate_screen then
    return answer("running", 0.95, "osc133_running", "OSC 133;C came last, and the alternate screen is active.")
  end
  return nested_prompt(seen)
    or answer("running", 0.95, "osc133_running", "OSC 133;C came last: the output of a command.")
end

local function by_input(seen)
  if seen.editing == false and seen.edited_at > seen.last_at then
    return answer("running", 0.85, "editor_left", "The line editor ended after the prompt, and has not started again.")
  end
  if seen.secondary then
    return answer("continuation", 0.97, "osc133_continuation", "OSC 133;P;k=s and B came last: the command is not complete.")
  end
  if looks.continuation(seen.ending) and seen.text:find("\n", seen.last_at, true) then
    return answer("continuation", 0.85, "continuation_row", "OSC 133;B came last, and a row below it asks for more.")
  end
  return answer("prompt", 0.97, "osc133_prompt", "OSC 133;B came last: the shell reads a command.")
end

local function by_marks(ctx, seen)
  if seen.last == "C" then return by_output(ctx, seen) end
  if seen.last == "B" then return by_input(seen) end
  if seen.last == "P" or seen.last == "A" then
    -- A mark does not change the screen, so the screen may be stable before the prompt is drawn.
    if not view.still(ctx) or not view.plain(seen.text:sub(seen.last_at)):find("%S") then
      return answer("running", 0.5, "osc133_drawing", "OSC 133;A came last: the prompt is being drawn.")
    end
    local state = seen.secondary and "continuation" or "prompt"
    return answer(state, 0.8, "osc133_" .. state, "OSC 133;A came last, and the screen is stable.")
  end
  return answer("running", 0.6, "osc133_finished", "OSC 133;D came last: a command ended, and the prompt is not drawn yet.")
end

-- By structure.

local function by_row(ctx, seen, state, what)
  local still, ending = view.still(ctx), seen.ending
  if ending.here == false then return nil end
  local signals = (ending.here and 1 or 0) + (seen.editing and 1 or 0) + (still and 1 or 0)
  if signals == 0 or not (still or seen.editing) then
    return answer("running", 0.4, "not_still_yet", ("The last row looks like %s, and the screen still changes."):format(what))
  end
  local sure = seen.editing and 0.85 or 0.6
  return answer(state, sure, state .. "_row", ("The last row looks like %s%s%s%s."):format(what,
    ending.here and ", the cursor stands right behind it" or "",
    seen.editing and ", a line editor reads" or "", still and ", the screen stands still" or ""))
end

local function by_editor(seen)
  if not (seen.editing and seen.ending.here) then return nil end
  local prompt, typed = looks.typed(seen.ending)
  if typed then
    seen.prompt_here, seen.typed_here = prompt, typed
    return answer("prompt", 0.75, "prompt_typed", "A line editor reads at a row that begins like a prompt, with more text behind it.")
  end
  return answer("prompt", 0.6, "editor_reads", "A line editor reads, at an unknown form of prompt.")
end

local function by_structure(ctx, seen)
  if ctx.alternate_screen then
    return answer("running", 0.75, "full_screen", "A program uses the alternate screen.")
  end
  if seen.editing == false then
    return answer("running", 0.75, "editor_left", "The line editor ended, and has not started again.")
  end
  if looks.continuation(seen.ending) then return by_row(ctx, seen, "continuation", "a continuation prompt") end
  if looks.prompt(seen.ending) then return by_row(ctx, seen, "prompt", "a prompt") end
  return by_editor(seen)
end

local function by_intent(ctx)
  if ctx.last_intent ~= "command_submitted" then return nil end
  return answer("running", 0.6, "submitted", "A command was submitted, and no prompt is shown yet.")
end

-- Classification: marks first, then structure.

local function look(ctx)
  local seen = marks.read(ctx.transcript)
  seen.editing, seen.edited_at = view.editing(ctx.transcript)
  seen.ending = view.ending(ctx)
  return seen
end

local function metadata(seen, state)
  local facts = { exit_code = seen.exit_code, command = seen.command, cwd = seen.cwd }
  if state == "prompt" or state == "continuation" then
    facts.prompt = view.trim(seen.prompt_here or seen.last and seen.prompt or seen.ending.before)
    local typed = seen.last == "B" and seen:typed(#seen.text) or seen.typed_here
    if typed and typed ~= "" then facts.typed = typed end
  end
  return next(facts) and facts or nil
end

local function decide(ctx, seen)
  if ctx.process_exited then
    return answer("exited", 1, "exited", ("The shell exited with code %s."):format(ctx.exit_code or "unknown"))
  end
  if not seen.last and not ctx.screen:find("%S") then
    return answer("starting", 0.5, "blank", "Nothing was printed yet.")
  end
  return asks_password(ctx, seen)
    or seen.last and by_marks(ctx, seen)
    or by_structure(ctx, seen)
    or by_intent(ctx)
    or answer("unknown", 0.2, "nothing_matched", "No mark, no prompt at the cursor, no line editor.")
end

function shell.classify(ctx)
  local seen = look(ctx)
  local decided = decide(ctx, seen)
  decided.metadata = metadata(seen, decided.state)
  return decided
end

-- Intents.

local function submit(last_intent, ...)
  return { actions = { telex.action.mark_transcript(SUBMITTED), ... }, last_intent = last_intent }
end

local function check_prompt(ctx)
  local now = shell.classify(ctx)
  if now.state ~= "prompt" then
    telex.refuse("not_at_prompt", ("The shell is not at its prompt but in state `%s`: %s Wait for the prompt, or pass `force`.")
      :format(now.state, now.evidence))
  end
  if now.metadata and now.metadata.typed then
    telex.refuse("line_not_empty", "The prompt already has typed text. Interrupt first, or pass `force`.")
  end
end

-- Paste a command with tabs or newlines: a line editor completes at a typed tab and submits at a newline.
local function typing(command, ctx)
  if command:find("[^%C\n\t]") then
    telex.refuse("bad_params", "`command` contains control characters other than newline and tab.")
  end
  if command:find("%c") and view.editing(ctx.transcript) then return telex.action.bracketed_paste(command) end
  return telex.action.text(command)
end

function shell.run(params, ctx)
  local command = view.text(params, "command")
  if not params.force then check_prompt(ctx) end
  return submit("command_submitted", typing(command, ctx), telex.action.key("enter"))
end

function shell.answer_password(params, ctx)
  local password = view.text(params, "password")
  local now = shell.classify(ctx)
  if now.state ~= "password_prompt" then
    telex.refuse("no_password_prompt", ("No program asks for a password: the shell is in state `%s`."):format(now.state))
  end
  if password:find("%c") then telex.refuse("bad_params", "`password` contains control characters.") end
  return submit("password_answered", telex.action.text(password), telex.action.key("enter"))
end

function shell.interrupt()
  return submit("interrupted", telex.action.interrupt())
end

function shell.eof()
  return submit("eof_sent", telex.action.eof())
end

local function by_hand(typed, action)
  return view.sends(typed) and submit(nil, action) or { actions = { action } }
end

function shell.type(params)
  local text = view.text(params, "text")
  return by_hand(text, telex.action.text(text))
end

function shell.key(params)
  local key = view.text(params, "key")
  return by_hand(key, telex.action.key(key))
end

function shell.clear()
  return { actions = { telex.action.key("ctrl_l") } }
end

-- Waits.

-- Whether a state was reached after the last input, and is not left over from before it.
local function is_new(input, now)
  local since = view.since(input, SUBMITTED)
  if not since then return true end
  if now.state == "password_prompt" then return view.plain(since):find("%S") ~= nil end
  if now.rule == "osc133_prompt" then
    local read = marks.read(since)
    return read.begun + read.finished > 0
  end
  return since:find("\n", 1, true) ~= nil
end

local function reached(input, states)
  local now = shell.classify(input)
  if not (states[now.state] and is_new(input, now)) then return false end
  return { matched = true, evidence = { state = now.state, rule = now.rule, evidence = now.evidence } }
end

-- Whether the shell marked its new prompt: then no stable screen is needed.
function shell.prompt_is_marked(input)
  local since = view.since(input, SUBMITTED) or input.transcript
  local read = marks.read(since)
  if read.last ~= "B" or read.secondary or read.begun + read.finished == 0 then return false end
  return reached(input, { prompt = true })
end

function shell.prompt_is_seen(input)
  return reached(input, { prompt = true })
end

function shell.person_is_needed(input)
  return reached(input, { prompt = true, continuation = true, password_prompt = true })
end

function shell.output_contains(input)
  local since = view.since(input, SUBMITTED)
  -- The first line is the echo of the typed command.
  local output = view.plain(since and (since:match("\n(.*)$") or "") or input.transcript)
  if not output:find(input.params.text, 1, true) then return false end
  return { matched = true, capture = input.params.text }
end

local function prompt_or(predicate, params)
  local m, still = telex.matcher, params.completed_turn_stable_ms
  local asked = { stable_ms = still }
  return m.any {
    m.process_exited(),
    m.lua("prompt_is_marked", asked),
    m.all { m.screen_stable { min_ms = still, since = "change" }, m.lua(predicate, asked) },
  }
end

function shell.wait_turn_matcher(params)
  return prompt_or("person_is_needed", params)
end

function shell.wait_prompt_matcher(params)
  return prompt_or("prompt_is_seen", params)
end

function shell.wait_output_matcher(params)
  if params.regex then return telex.matcher.transcript_regex(view.text(params, "regex")) end
  return telex.matcher.lua("output_contains", { text = view.text(params, "text") })
end

return shell
