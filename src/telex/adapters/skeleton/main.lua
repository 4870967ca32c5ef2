-- @NAME@: names the state of a program's screen, and drives the program.
--
-- This file works for every program with a prompt, such as bash. Adapt it to your program: watch the
-- program with `telex adapter try`, save its screens with `telex adapter record`, change the rules
-- below until `telex adapter test` passes.

local plugin = {}

-- Every rule checks two independent facts. A single fact sooner or later appears where it means
-- nothing: in a manual page, in a log, in a file that quotes the program.

local function last_line(screen)
  return screen:match("([^\n]*)$")
end

local function row_of_last_line(screen)
  local _, newlines = screen:gsub("\n", "")
  return newlines
end

-- Whether the cursor is right behind the last line: the program reads input there.
local function cursor_waits(seen)
  local cursor, line = seen.screen_cursor, last_line(seen.screen)
  if not cursor or not cursor.visible or line == "" then
    return false
  end
  local behind = cursor.col - (utf8.len(line) or #line)
  return cursor.row == row_of_last_line(seen.screen) and (behind == 0 or behind == 1)
end

local function is_ready(seen)
  return last_line(seen.screen):find("[$#>%%]$") ~= nil and cursor_waits(seen)
end

local function is_question(seen)
  local line = last_line(seen.screen):lower()
  local asks = line:find("[%[%(]y/n[%]%)]%W*$") or line:find("%(yes/no%)%W*$")
  return asks ~= nil and cursor_waits(seen)
end

-- The function that every plugin must have: return the state of the screen. If no rule matches, the
-- state is `unknown`.
function plugin.classify(ctx)
  if ctx.process_exited then
    return { state = "exited", confidence = 1, rule = "process", evidence = "the program has exited" }
  end
  if is_question(ctx) then
    return {
      state = "question",
      confidence = 0.9,
      rule = "question",
      evidence = "the last line offers yes and no, and the cursor waits behind it",
      metadata = { question = last_line(ctx.screen) },
    }
  end
  if is_ready(ctx) then
    return {
      state = "ready",
      confidence = 0.9,
      rule = "prompt",
      evidence = "the last line ends like a prompt, and the cursor waits behind it",
      metadata = { prompt = last_line(ctx.screen) },
    }
  end
  if ctx.stable_ms < ctx.completed_turn_stable_ms and not cursor_waits(ctx) then
    return {
      state = "busy",
      confidence = 0.6,
      rule = "changing",
      evidence = "the screen changed a moment ago, and nothing waits for input",
    }
  end
  return { state = "unknown", confidence = 0, rule = "none", evidence = "no rule matches" }
end

-- An intent: return the actions for a request of the caller. The function is called before the first
-- action, so it can refuse the request.
function plugin.run(params, ctx)
  if type(params.command) ~= "string" then
    telex.refuse("no_command", "run needs a command, as in { command = 'ls' }")
  end
  if not is_ready(ctx) then
    telex.refuse("not_ready", "the program shows no prompt")
  end
  return {
    actions = { telex.action.text(params.command), telex.action.key("enter") },
    last_intent = "run",
  }
end

-- The end of a turn: the prompt is shown again and the screen is stable, or the program has exited.
function plugin.wait_turn_matcher(params)
  return telex.matcher.any({
    telex.matcher.all({
      telex.matcher.lua("at_prompt"),
      telex.matcher.screen_stable(params.completed_turn_stable_ms),
    }),
    telex.matcher.process_exited(),
  })
end

-- A predicate: a condition on one moment, for any matcher of the kind `lua`.
function plugin.at_prompt(input)
  return { matched = is_ready(input), evidence = last_line(input.screen) }
end

-- The list of intents, wait matchers and states, for `plugin.describe`.
function plugin.describe()
  return {
    intents = { { name = "run", params = { command = "the command to type at the prompt" } } },
    wait_matchers = { { name = "wait_turn_matcher" } },
    states = { "ready", "question", "busy", "exited", "unknown" },
  }
end

return plugin
