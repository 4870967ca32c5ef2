-- The states of a turn from start to end: working, idle, and weaker rules for other screens.

local SUBMITTED = { name = "submitted", check = "intent", value = "prompt_submitted" }
local INPUT = { name = "input", check = "input" }
-- After an interrupt the end of the turn is not expected.
local NOT_INTERRUPTED = {
  name = "not_interrupted",
  absent = true,
  of = "turn",
  text = "said",
  match = "start",
  any = { "interrupted", "user rejected claude's plan" },
}

local turns = {}

turns.starting = {
  {
    rule = "program.exited",
    state = "unknown",
    confidence = 0.9,
    evidence = "the program has exited, so its last screen has no meaning",
    anchors = { { name = "exited", check = "exited" } },
  },
  {
    rule = "starting.blank",
    state = "starting",
    confidence = 0.35,
    evidence = "the screen is blank and the program got no input yet",
    anchors = { { name = "blank", check = "blank" }, { name = "no_intent", check = "no_intent" } },
  },
  {
    rule = "cancelling.unsettled",
    state = "cancelling",
    confidence = 0.72,
    evidence = "a turn was cancelled and the screen is not stable yet",
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
    evidence = "the status below the input box names the key that interrupts",
    anchors = { { name = "interrupt", of = "status", any = { "esc to interrupt" } } },
  },
  {
    rule = "working.spinner",
    state = "thinking",
    confidence = 0.76,
    evidence = "this turn has a spinner",
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
    evidence = "a tool of this turn still runs, and can be expanded",
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
    metadata = { "draft" },
    evidence = "a prompt was pasted and could not be sent: it is still in the input box",
    anchors = {
      { name = "pending", check = "intent", value = "prompt_pending" },
      { name = "draft", check = "draft" },
    },
  },
  {
    rule = "draft.untouched",
    state = "unsent_draft",
    confidence = 0.76,
    metadata = { "draft" },
    evidence = "a prompt was sent, but it is still in the input box and the conversation did not change",
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
    evidence = "a prompt was sent and the conversation has not changed",
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
    evidence = "an answer to the prompt, an input box, and a long time without a change",
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
    metadata = { "draft" },
    evidence = "the cursor is behind a text in the input box, and no work is in progress",
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
    evidence = "an input box, empty or with a draft, with its status, and no work in progress",
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
    metadata = { "options" },
    evidence = "a menu is the last part of the screen, and its question is unknown",
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
