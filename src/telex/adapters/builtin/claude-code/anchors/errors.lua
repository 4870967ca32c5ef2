-- The messages of the program when a turn fails: each wording, and its kind of error.
--
-- Such a message is at the beginning of a row of the program, or behind its `⎿` or bullet, and it is the
-- last text of this turn: an error of a tool after which the work continued does not count. A banner is
-- a wording that only the program uses. Below a banner the turn may have its usual end; the text after
-- the wording distinguishes a banner from an answer that contains the wording.

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

-- The wordings as patterns with their kind. A wording ends at a word boundary: `connection errors` does
-- not match.
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

-- The program prints the error and exits: its last screen has no conversation.
errors.starting = {
  {
    rule = "error.no_service",
    state = "error",
    confidence = 0.80,
    metadata = { "error" },
    evidence = "the program could not connect at its start, and names the host",
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
    metadata = { "error" },
    evidence = "this turn ends with an error message of the program",
    anchors = {
      { name = "words", of = "turn", text = "said", match = "pattern", any = wordings(KINDS) },
      { name = "last_said", check = "only_indented_below", value = "words" },
    },
  },
  {
    rule = "error.banner",
    state = "error",
    confidence = 0.74,
    metadata = { "error" },
    evidence = "a banner of the program is the last text, above the end of the turn",
    anchors = {
      { name = "words", of = "turn", text = "said", match = "banner", any = wordings(BANNERS) },
      { name = "last_said", check = "only_chrome_below", value = "words" },
    },
  },
}

return errors
