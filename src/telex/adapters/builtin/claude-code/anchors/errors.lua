-- What the program says when a turn fails: each wording, and the kind of error it means.
--
-- It stands at the beginning of a row of the program's own, or behind its `⎿` or bullet, and it is
-- the last thing said in this turn: errors that a tool met and the work went past are not the
-- program's. Banners are the program's words and nobody else's: below them the turn may have its
-- end as if it had gone well, and what follows the words parts them from an answer that has them.

local KINDS = {
  {
    "quota",
    "you've used your pro plan",
    "you've used your max plan",
    "you've reached your usage limit",
    "you've used %d+%% of",
    "you're close to",
  },
  {
    "connection",
    "connection error",
    "connection issue",
    "could not connect",
    "network error",
    "request timed out",
  },
  {
    "auth",
    "authentication failed",
    "unauthorized",
    "oauth failed",
    "oauth token revoked",
  },
  { "api", "request failed" },
  { "unknown", "error:", "please retry", "press r to retry" },
}

local BANNERS = {
  {
    "rate_limit",
    "5%-hour limit reached",
    "rate limit reached",
    "%a* ?session limit reached",
    "%a* ?weekly limit reached",
    "%a* ?usage limit reached",
    "you've hit your %a+ limit",
    "api error: .*rate limit",
  },
  {
    "quota",
    "you've hit your limit",
    "you've hit your monthly spend limit",
    "you're out of extra usage",
    "you're out of usage credits",
    "your org%a* is out of usage credits",
    "credit balance is too low",
    "extra usage is required for [%w ]*%w",
    "api error: extra usage is required for [%w ]*%w",
  },
  { "connection", "unable to connect to api", "api error: .*connection error" },
  { "auth", "invalid api key", "not logged in", "please run /login" },
  { "api", "api error", "prompt is too long", "context limit reached" },
}

-- As patterns with their kind. A wording ends where a word does: `connection errors` is none.
local function wordings(kinds)
  local all = {}
  for _, group in ipairs(kinds) do
    for index = 2, #group do
      local ending = group[index]:find("%a$") and "%f[%A]" or ""
      all[#all + 1] = { pattern = "^" .. group[index] .. ending, kind = group[1] }
    end
  end
  return all
end

local errors = {}

-- It says so and ends: what is on its last screen is no conversation.
errors.starting = {
  {
    rule = "error.no_service",
    state = "error",
    confidence = 0.80,
    tells = { "error" },
    evidence = "the program could not connect when it started, and says to what",
    anchors = {
      {
        name = "words",
        match = "pattern",
        any = { { pattern = "^unable to connect to anthropic services$", kind = "connection" } },
      },
      { name = "what", match = "start", below = "words", any = { "failed to connect to " } },
      { name = "no_box", check = "no_box" },
    },
  },
}

errors.turns = {
  {
    rule = "error.last_said",
    state = "error",
    confidence = 0.72,
    tells = { "error" },
    evidence = "this turn ends with what the program says of an error",
    anchors = {
      { name = "words", of = "turn", text = "said", match = "pattern", any = wordings(KINDS) },
      { name = "last_said", check = "only_indented_below", value = "words" },
    },
  },
  {
    rule = "error.banner",
    state = "error",
    confidence = 0.74,
    tells = { "error" },
    evidence = "a banner of the program is the last thing said, above the end of the turn",
    anchors = {
      { name = "words", of = "turn", text = "said", match = "banner", any = wordings(BANNERS) },
      { name = "last_said", check = "only_chrome_below", value = "words" },
    },
  },
}

return errors
