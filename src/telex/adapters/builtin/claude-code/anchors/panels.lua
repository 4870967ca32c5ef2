-- The panels of slash commands, which a person closes and does not answer.
--
-- The report of costs is a panel, or a part of the conversation, where answers may quote it: there it
-- counts only right below the command that requests it.

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
    metadata = { "usage" },
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
    metadata = { "usage" },
    evidence = "a report of costs, durations and tokens, in the place of the input box",
    anchors = { COST, DURATION, TOKENS },
  },
  {
    rule = "usage.report",
    state = "usage_screen",
    confidence = 0.82,
    metadata = { "usage" },
    evidence = "the report of /cost or /usage is the last text",
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
    evidence = "a panel whose last row names the key that closes it, and no menu",
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
