-- What the program says when a turn fails: each wording, and the kind of error it means.
--
-- It stands at the beginning of a row of the program's own, or behind its `⎿` or bullet, and it is
-- the last thing said in this turn: errors that a tool met and the work went past are not the
-- program's.

local KINDS = {
  { "rate_limit", "rate limit reached", "5%-hour limit" },
  {
    "quota",
    "you've used your pro plan",
    "you've used your max plan",
    "you've reached your usage limit",
    "you've hit your limit",
    "credit balance is too low",
    "you've used %d+%% of",
    "you're close to",
    "you're out of extra usage",
  },
  {
    "connection",
    "connection error",
    "connection issue",
    "could not connect",
    "network error",
    "unable to connect to api",
    "request timed out",
  },
  {
    "auth",
    "invalid api key",
    "authentication failed",
    "unauthorized",
    "oauth failed",
    "oauth token revoked",
    "not logged in",
  },
  { "api", "api error", "request failed", "prompt is too long" },
  { "unknown", "error:", "please retry", "press r to retry" },
}

-- As patterns with their kind. A wording ends where a word does: `connection errors` is none.
local function wordings()
  local all = {}
  for _, group in ipairs(KINDS) do
    for index = 2, #group do
      local ending = group[index]:find("%a$") and "%f[%A]" or ""
      all[#all + 1] = { pattern = "^" .. group[index] .. ending, kind = group[1] }
    end
  end
  return all
end

return {
  {
    rule = "error.last_said",
    state = "error",
    confidence = 0.72,
    tells = { "error" },
    evidence = "this turn ends with what the program says of an error",
    anchors = {
      { name = "words", of = "turn", text = "said", match = "pattern", any = wordings() },
      { name = "last_said", check = "only_indented_below", value = "words" },
    },
  },
}
