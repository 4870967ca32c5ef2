-- A turn from its first moment to its last: at work, at rest, and what can be told with less.

local SUBMITTED = { name = "submitted", check = "intent", value = "prompt_submitted" }
local INPUT = { name = "input", check = "input" }
-- Whoever interrupted a turn is not waiting for its end.
local NOT_INTERRUPTED = {
  name = "not_interrupted",
  absent = true,
  of = "turn",
  text = "said",
  match = "start",
  any = { "interrupted" },
}

local turns = {}

turns.starting = {
  {
    rule = "program.exited",
    state = "unknown",
    confidence = 0.9,
    evidence = "the program has ended, and its last screen means nothing any more",
    anchors = { { name = "exited", check = "exited" } },
  },
  {
    rule = "starting.blank",
    state = "starting",
    confidence = 0.35,
    evidence = "the screen is blank and nothing was asked of the program yet",
    anchors = { { name = "blank", check = "blank" }, { name = "no_intent", check = "no_intent" } },
  },
  {
    rule = "cancelling.unsettled",
    state = "cancelling",
    confidence = 0.72,
    evidence = "a turn was cancelled and the screen has not settled since",
    anchors = {
      { name = "cancelled", check = "intent", value = "cancelling" },
      { name = "moving", check = "moving" },
    },
  },
}

turns.working = {
  {
    rule = "working.status",
    state = "thinking",
    confidence = 0.76,
    evidence = "the status below the input box says which key interrupts",
    anchors = { { name = "interrupt", of = "status", any = { "esc to interrupt" } } },
  },
  {
    rule = "working.spinner",
    state = "thinking",
    confidence = 0.76,
    evidence = "a spinner turns in this turn",
    anchors = {
      {
        name = "glyph",
        of = "tail",
        match = "glyph",
        column = 0,
        -- First and last code point: stars, braille dots, and three single signs.
        any = {
          { 0x2722, 0x273d },
          { 0x2800, 0x28ff },
          { 0xb7, 0xb7 },
          { 0x2022, 0x2022 },
          { 0x2a, 0x2a },
        },
      },
      { name = "dots", same = "glyph", match = "pattern", any = { "…$", "… ?%(" } },
    },
  },
  {
    rule = "working.tool",
    state = "thinking",
    confidence = 0.76,
    evidence = "a tool of this turn is still at it, and can be expanded",
    anchors = {
      {
        name = "expand",
        of = "tail",
        text = "bullet",
        match = "pattern",
        any = { "%(ctrl%+o to expand%)$" },
      },
      { name = "dots", same = "expand", any = { "…" } },
    },
  },
  {
    rule = "draft.pending",
    state = "unsent_draft",
    confidence = 0.80,
    tells = { "draft" },
    evidence = "a prompt was pasted and could not be sent: it still stands in the input box",
    anchors = {
      { name = "pending", check = "intent", value = "prompt_pending" },
      { name = "draft", check = "draft" },
    },
  },
  {
    rule = "draft.untouched",
    state = "unsent_draft",
    confidence = 0.76,
    tells = { "draft" },
    evidence = "a prompt was sent, but it stands in the input box and nothing came of it",
    anchors = {
      SUBMITTED,
      { name = "draft", check = "draft" },
      { name = "untouched", check = "untouched" },
    },
  },
  {
    rule = "working.untouched",
    state = "thinking",
    confidence = 0.60,
    evidence = "a prompt was sent and the conversation is still as it was before",
    anchors = { SUBMITTED, { name = "untouched", check = "untouched" } },
  },
}

turns.resting = {
  {
    rule = "completed.marker",
    state = "completed_turn",
    confidence = 0.70,
    settled_confidence = 0.78,
    evidence = "the row that ends a turn, an answer above it, and nothing but the input below it",
    anchors = {
      { name = "answer", check = "answer_and_marker" },
      { name = "only_chrome_below", check = "only_chrome_below_marker" },
      INPUT,
    },
  },
  {
    rule = "completed.quiet",
    state = "completed_turn",
    confidence = 0.62,
    evidence = "an answer to the prompt, an input box, and a long time in which nothing moved",
    anchors = {
      SUBMITTED,
      { name = "box", check = "box" },
      { name = "answer", of = "turn", text = "bullet", match = "pattern", any = { "^." } },
      { name = "quiet", check = "quiet" },
      NOT_INTERRUPTED,
    },
  },
  {
    rule = "working.submitted",
    state = "thinking",
    confidence = 0.60,
    evidence = "a prompt was sent and this turn has no end yet",
    anchors = {
      SUBMITTED,
      { name = "no_marker", check = "no_marker" },
      NOT_INTERRUPTED,
    },
  },
  {
    rule = "draft.box",
    state = "unsent_draft",
    confidence = 0.70,
    tells = { "draft" },
    evidence = "the cursor stands behind a text in the input box, and nothing is at work",
    anchors = { { name = "draft", check = "draft" } },
  },
  {
    rule = "starting.welcome",
    state = "starting",
    confidence = 0.70,
    evidence = "a welcome with tips above an input prompt, and nothing was typed yet",
    anchors = {
      { name = "welcome", any = { "welcome back", "claude code v", "welcome to claude code" } },
      {
        name = "tips",
        any = { "tips for getting started", "what's new", "ask claude to", "/help for help" },
      },
      { name = "no_echo", check = "no_echo" },
      INPUT,
    },
  },
  {
    rule = "ready.box",
    state = "ready",
    confidence = 0.66,
    evidence = "an empty or drafted input box with its status, and nothing at work",
    anchors = { { name = "box", check = "box_with_status" } },
  },
  {
    rule = "input.box",
    state = "waiting_for_user_input",
    confidence = 0.62,
    evidence = "an input box without a status",
    anchors = { { name = "box", check = "box" } },
  },
  {
    rule = "input.menu",
    state = "waiting_for_user_input",
    confidence = 0.62,
    tells = { "options" },
    evidence = "a menu is the last thing on the screen, below no question that is known",
    anchors = { { name = "menu", check = "menu" } },
  },
  {
    rule = "input.prompt",
    state = "waiting_for_user_input",
    confidence = 0.62,
    evidence = "the last row is a prompt",
    anchors = { { name = "prompt", check = "bare_prompt" } },
  },
}

return turns
