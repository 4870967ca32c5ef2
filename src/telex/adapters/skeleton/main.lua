-- @NAME@: what the screen of a program means, and how to drive it.
--
-- It begins as a plugin for anything with a prompt, such as bash. Make it yours: look at the program
-- with `telex adapter try`, keep its screens with `telex adapter record`, change the rules below
-- until `telex adapter test` is content.

local plugin = {}

-- Every rule asks for two things that do not depend on each other. One alone is seen sooner or later
-- where it means nothing: in a manual page, in a log, in a file that quotes the program.

local function last_line(screen)
  return screen:match("([^\n]*)$")
end

local function row_of_last_line(screen)
  local _, newlines = screen:gsub("\n", "")
  return newlines
end

-- Whether the cursor waits right behind the last line: the program reads what is typed there.
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

-- The one function that every plugin has: which state is this? When no rule holds it says so.
function plugin.classify(ctx)
  if ctx.process_exited then
    return { state = "exited", confidence = 1, rule = "process", evidence = "the program has ended" }
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
  return { state = "unknown", confidence = 0, rule = "none", evidence = "no rule holds" }
end

-- An intent: what somebody wants, as what has to be typed. It is asked before anything is done, so
-- this is the place to say no.
function plugin.run(params, ctx)
  if type(params.command) ~= "string" then
    telex.refuse("no_command", "run needs a command, as in { command = 'ls' }")
  end
  if not is_ready(ctx) then
    telex.refuse("not_ready", "there is no prompt to type at")
  end
  return {
    actions = { telex.action.text(params.command), telex.action.key("enter") },
    last_intent = "run",
  }
end

-- When is a turn over? When the prompt is back and the screen stands still, or the program has ended.
function plugin.wait_turn_matcher(params)
  return telex.matcher.any({
    telex.matcher.all({
      telex.matcher.lua("at_prompt"),
      telex.matcher.screen_stable(params.completed_turn_stable_ms),
    }),
    telex.matcher.process_exited(),
  })
end

-- A predicate: yes or no about one moment, for any matcher of the kind `lua`.
function plugin.at_prompt(input)
  return { matched = is_ready(input), evidence = last_line(input.screen) }
end

-- What others are told that the plugin can do.
function plugin.describe()
  return {
    intents = { { name = "run", params = { command = "what to type at the prompt" } } },
    wait_matchers = { { name = "wait_turn_matcher" } },
    states = { "ready", "question", "busy", "exited", "unknown" },
  }
end

return plugin
