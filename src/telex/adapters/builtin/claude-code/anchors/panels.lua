-- The panels: what slash commands show, which a person closes and does not answer.
--
-- The report of costs comes as a panel of its own, or in the conversation, where answers may quote
-- it: there it counts only right below the command that asks for it.

local COST = {
  name = "cost",
  of = "turn",
  text = "report",
  match = "start",
  any = { "total cost:", "estimated cost:" },
}
local DURATION = {
  name = "duration",
  of = "turn",
  text = "report",
  match = "start",
  any = { "total duration" },
}
local TOKENS = {
  name = "tokens",
  of = "turn",
  text = "report",
  match = "start",
  any = { "usage:", "usage by model:" },
}

return {
  {
    rule = "usage.tabs",
    state = "usage_screen",
    confidence = 0.82,
    dialog = true,
    tells = { "usage" },
    evidence = "the tabs of the settings, a heading of a limit, and how much of it is used",
    anchors = {
      { name = "tabs", match = "pattern", any = { "status%s+config%s+usage" } },
      {
        name = "limit",
        match = "start",
        below = "tabs",
        any = { "current session", "current week" },
      },
      { name = "share", match = "pattern", below = "limit", any = { "%d%% used" } },
    },
  },
  {
    rule = "usage.panel",
    state = "usage_screen",
    confidence = 0.82,
    dialog = true,
    tells = { "usage" },
    evidence = "a report of costs, durations and tokens, in the place of the input box",
    anchors = { COST, DURATION, TOKENS },
  },
  {
    rule = "usage.report",
    state = "usage_screen",
    confidence = 0.82,
    tells = { "usage" },
    evidence = "the report that /cost or /usage was asked for is the last thing said",
    anchors = {
      { name = "asked", of = "echo", text = "said", match = "whole", any = { "/cost", "/usage" } },
      COST,
      DURATION,
      TOKENS,
      { name = "last_said", check = "nothing_spoken_below", value = "asked" },
    },
  },
  {
    rule = "panel.way_out",
    state = "local_ui_screen",
    confidence = 0.70,
    dialog = true,
    evidence = "a panel whose last row says which key closes it, and no menu to answer",
    anchors = {
      {
        name = "way_out",
        of = "last",
        any = { "esc to cancel", "esc to close", "esc to exit", "esc to go back" },
      },
      { name = "heading", check = "heading_above", value = "way_out" },
      { name = "no_menu", check = "no_menu" },
    },
  },
}
