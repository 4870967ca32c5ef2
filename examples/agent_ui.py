#!/usr/bin/env python3
"""A UI for an agent, with Python's standard library alone: say something, and see what it does.

    python examples/agent_ui.py                  # options go to `telex agent`
    python examples/agent_ui.py --mode trusted

Ctrl-C stops what the agent does; Ctrl-D, and Ctrl-C when it does nothing, ends the UI.
docs/how-to/write-a-ui.md explains it.
"""

import json
import signal
import subprocess
import sys
import termios

ENDED = ("completed", "error", "cancelled")
CAPABILITIES = {"supports_confirm": True, "supports_prompt": True, "supports_pick": True}


def visible(text):
    """What an agent says may have been written by anybody: a terminal shall not obey it."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def typed(question, fresh=False):
    """None at the end of the input. `fresh`: what was typed before the question is no answer."""
    if fresh and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    try:
        return input(question)
    except EOFError:
        print()
        return None


class Agent:
    def __init__(self, command):
        # A session of its own: the Ctrl-C that stops a run shall not stop the runtime.
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.asked = 0
        self.running = None  # the run that goes on
        self.session = None  # the session that the next run belongs to
        client = {"name": "example-ui", "version": "1"}
        hello = {"protocol_version": "0", "client": client, "ui_capabilities": CAPABILITIES}
        self.request("initialize", hello)

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the runtime has ended")
        return json.loads(line)

    def request(self, method, params):
        """Its result. What comes meanwhile is handled: answers and events share one stream."""
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        while True:
            message = self.read()
            if "method" in message:
                self.handle(message)
            elif message.get("id") == self.asked:
                if "error" in message:
                    print(visible(message["error"]["message"]))
                return message.get("result")

    def say(self, text):
        """One run, to its end."""
        said = {"input": {"type": "text", "text": text}, "session_id": self.session}
        started = self.request("run.start", said)
        if started is None:
            return
        self.running, self.session = started["run_id"], started["session_id"]
        while self.running:
            try:
                self.handle(self.read())
            except KeyboardInterrupt:
                print("\nstopping it")
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                self.request("run.cancel", {"run_id": self.running})
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def handle(self, message):
        params = message.get("params", {})
        match message.get("method"):
            case "agent.event":
                self.show(params["event"])
            case "run.status" if params["status"] in ENDED:
                self.running = None
                if params["status"] != "completed":
                    print(f"[{params['status']}] {visible(params.get('message', ''))}")
            case "ui.confirm.request":
                self.send({"id": message["id"], "result": self.confirm(params)})
            case "ui.prompt.request":
                value = typed(f"{visible(params['title'])}: {visible(params['message'])} ")
                self.send({"id": message["id"], "result": {"value": value}})
            case "ui.pick.request":
                print(visible(params["title"]))
                for item in params["items"]:
                    print(f"  {visible(item['id'])}  {visible(item['label'])}")
                self.send({"id": message["id"], "result": {"ids": (typed("> ") or "").split()}})

    def show(self, event):
        match event:
            case {"type": "text" | "final", "content": content}:
                print(visible(content))
            case {"type": "tool_call", "tool": tool}:
                print(f"* {tool}")
            case {"type": "tool_result", "is_error": True, "result": result}:
                print(f"! {visible(result)}")

    def confirm(self, params):
        """Show all of `message`: the answer is bound to it. It has no control characters."""
        print(f"\n{params['title']}\n{params['message']}")
        always = "[a]lways, " if params.get("allow_remember") else ""
        said = (typed(f"[y]es, {always}[n]o, or why not: ", fresh=True) or "").strip()
        match said.lower():
            case "y" | "yes":
                return {"ok": True}
            case "a" | "always" if always:
                return {"ok": True, "remember": True}
            case "" | "n" | "no":
                return {"ok": False}
        return {"ok": False, "reason": said}


def main():
    agent = Agent(["telex", "agent", *sys.argv[1:]])
    while (text := typed("> ")) is not None:
        if text.strip():
            agent.say(text)
    agent.process.stdin.close()  # the runtime ends when its UI does
    return agent.process.wait()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
