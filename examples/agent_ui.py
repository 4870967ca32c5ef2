#!/usr/bin/env python3
"""A UI for an agent, in one file: say something, and see what the agent does.

    python examples/agent_ui.py                  # options go to `telex agent`
    python examples/agent_ui.py --mode trusted

Ctrl-C stops what the agent does; Ctrl-D, and Ctrl-C when it does nothing, ends the UI.
docs/how-to/write-a-ui.md explains it.
"""

import sys
import termios

import telex
from telex.agent import AgentError, FinalEvent, TextEvent, ToolCallEvent, ToolResultEvent
from telex.agent import UiConfirmResult as Answer


def visible(text):
    """Anybody may have written what an agent says: a terminal must not obey it."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def typed(question, fresh=False):
    """Return a line, or None at the end of the input. `fresh` discards what was typed before."""
    if fresh and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    try:
        return input(question)
    except EOFError:
        print()
        return None


def confirm(question):
    """Show all of `message`: the answer is bound to it. It has no control characters."""
    print(f"\n{question.title}\n{question.message}")
    always = "[a]lways, " if question.allow_remember else ""
    said = (typed(f"[y]es, {always}[n]o, or why not: ", fresh=True) or "").strip()
    match said.lower():
        case "y" | "yes":
            return Answer(ok=True)
        case "a" | "always" if always:
            return Answer(ok=True, remember=True)
        case "" | "n" | "no":
            return Answer(ok=False)
    return Answer(ok=False, reason=said)


def prompt(question):
    return typed(f"{visible(question.title)}: {visible(question.message)} ")


def pick(question):
    print(visible(question.title))
    for item in question.items:
        print(f"  {visible(item.id)}  {visible(item.label)}")
    return (typed("> ") or "").split()


def show(event):
    match event:
        case TextEvent(content=content) | FinalEvent(content=content):
            print(visible(content))
        case ToolCallEvent(tool=tool):
            print(f"* {tool}")
        case ToolResultEvent(is_error=True, result=result):
            print(f"! {visible(result)}")


def say(agent, text):
    """Follow one run to its end."""
    run = agent.run_start(text)
    while run.result is None:
        try:
            for event in run:
                show(event)
        except KeyboardInterrupt:
            print("\nstopping it")
            run.cancel()
    if run.status != "completed":
        print(f"[{run.status}] {visible(run.result.message or '')}")


def main():
    answers = {"confirm": confirm, "prompt": prompt, "pick": pick}
    with telex.agent.spawn(arguments=sys.argv[1:], **answers) as agent:
        while (text := typed("> ")) is not None:
            if text.strip():
                say(agent, text)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (AgentError, telex.CannotConnect) as error:
        sys.exit(f"{type(error).__name__}: {visible(str(error))}")
