-- The dialogs: they ask a person a question and replace the input box.
--
-- Each is recognised by its question and, below it, by its menu or keys.

local LOGIN_TITLE = {
  name = "title",
  any = {
    "welcome to claude code",
    "log in to claude",
    "login to claude",
    "sign in to claude",
    "continue with anthropic",
    "continue with google",
  },
}
return {
  {
    rule = "login.way_in",
    state = "waiting_for_login",
    confidence = 0.86,
    dialog = true,
    metadata = { "login" },
    evidence = "a title that asks for a login, and a way to log in",
    anchors = {
      LOGIN_TITLE,
      {
        name = "way_in",
        any = { "press enter to log in", "open the link", "anthropic_api_key" },
      },
    },
  },
  {
    rule = "login.link",
    state = "waiting_for_login",
    confidence = 0.86,
    dialog = true,
    metadata = { "login" },
    evidence = "a title that asks for a login, and a link to a login",
    anchors = { LOGIN_TITLE, { name = "link", check = "login_link" } },
  },
  {
    rule = "login.method",
    state = "waiting_for_login",
    confidence = 0.86,
    dialog = true,
    metadata = { "options" },
    evidence = "a title that asks for a login, and a menu of ways to log in",
    anchors = {
      LOGIN_TITLE,
      { name = "question", match = "start", any = { "select login method:" } },
      { name = "menu", check = "menu_below", value = "question" },
    },
  },
  {
    rule = "trust.menu",
    state = "waiting_for_trust",
    confidence = 0.86,
    dialog = true,
    metadata = { "trust", "options" },
    evidence = "a question whether the folder is trusted, above a menu to answer it",
    anchors = {
      {
        name = "question",
        any = { "do you trust the files", "trust this folder", "accessing workspace" },
      },
      {
        name = "answer",
        of = "menu",
        text = "label",
        match = "start",
        below = "question",
        any = { "yes, proceed", "yes, i trust this folder", "no, exit" },
      },
    },
  },
  {
    rule = "model.menu",
    state = "waiting_for_model_select",
    confidence = 0.82,
    dialog = true,
    metadata = { "options" },
    evidence = "the heading of the model picker, a menu below it, and its keys below that",
    anchors = {
      {
        name = "heading",
        match = "start",
        any = {
          "select a model:",
          "switch to model:",
          "choose a model:",
          "available models:",
          "switch between claude models",
        },
      },
      { name = "menu", check = "menu_below", value = "heading" },
      {
        name = "keys",
        of = "below_menu",
        any = { "enter to select", "esc to cancel", "↑/↓", "enter confirm", "esc to exit" },
      },
    },
  },
  {
    rule = "plan_mode.menu",
    state = "waiting_for_enter_plan_mode",
    confidence = 0.82,
    dialog = true,
    metadata = { "options" },
    evidence = "the question whether to enter plan mode, its menu, and its keys",
    anchors = {
      { name = "question", match = "start", any = { "enter plan mode?" } },
      {
        name = "yes",
        of = "menu",
        text = "label",
        match = "start",
        below = "question",
        any = { "yes, enter plan mode" },
      },
      { name = "keys", of = "below_menu", any = { "enter to confirm · esc to cancel" } },
    },
  },
  {
    rule = "plan.ready_to_code",
    state = "waiting_for_plan_approval",
    confidence = 0.80,
    dialog = true,
    metadata = { "plan", "options" },
    evidence = "the question whether to begin, and a menu with the option to continue planning",
    anchors = {
      { name = "question", match = "start", any = { "ready to code?" } },
      {
        name = "answer",
        of = "menu",
        text = "label",
        match = "start",
        below = "question",
        any = { "yes, and", "no, keep planning" },
      },
    },
  },
  {
    rule = "plan.approve",
    state = "waiting_for_plan_approval",
    confidence = 0.80,
    dialog = true,
    metadata = { "plan", "options" },
    evidence = "a plan with numbered steps, and the question whether to proceed with it",
    anchors = {
      { name = "heading", match = "pattern", any = { "^plan$", "^plan[:%s]" } },
      { name = "step", match = "pattern", below = "heading", any = { "^1%.", "^1%)" } },
      { name = "question", match = "start", below = "step", any = { "approve plan to proceed?" } },
    },
  },
  {
    rule = "permission.menu",
    state = "waiting_for_permission",
    confidence = 0.84,
    dialog = true,
    metadata = { "permission" },
    evidence = "the question whether a tool may be used, and a menu right below it",
    anchors = {
      {
        name = "question",
        match = "start",
        any = {
          "do you want to proceed?",
          "do you want to make this edit to",
          "do you want to create",
          "do you want to allow claude to fetch this content?",
        },
      },
      { name = "menu", check = "menu_below", value = "question", within = 6 },
    },
  },
  {
    rule = "permission.keys",
    state = "waiting_for_permission",
    confidence = 0.84,
    dialog = true,
    metadata = { "permission" },
    evidence = "a command to allow, and the keys that allow or deny it",
    anchors = {
      { name = "allow", match = "pattern", any = { "^allow .- command:" } },
      { name = "enter", below = "allow", within = 6, any = { "[enter]" } },
      { name = "esc", same = "enter", any = { "[esc]" } },
    },
  },
  {
    rule = "permission.waiting",
    state = "waiting_for_permission",
    confidence = 0.84,
    dialog = true,
    metadata = { "permission" },
    evidence = "a tool call, and a last row that waits for permission",
    anchors = {
      { name = "call", of = "turn", text = "bullet", match = "pattern", any = { "^%a[^(]*%(" } },
      {
        name = "waiting",
        of = "last",
        text = "said",
        match = "whole",
        below = "call",
        any = { "waiting for permission…" },
      },
    },
  },
  {
    rule = "editor.open",
    state = "waiting_for_external_editor",
    confidence = 0.84,
    dialog = true,
    evidence = "the last row asks to save and close the editor",
    anchors = {
      {
        name = "sentence",
        of = "last",
        match = "whole",
        any = { "save and close editor to continue..." },
      },
    },
  },
}
