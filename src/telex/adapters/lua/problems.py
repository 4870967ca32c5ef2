"""What can go wrong with a plugin, as one exception with a kind.

A plugin is somebody's program: whatever it does is a value to those who asked it, and names the
plugin, the function and the problem. Raised by `instance`, and by the readers of answers.
"""

from __future__ import annotations

from typing import Any, Literal

Kind = Literal[
    "threw",  # an error of its own
    "refused",  # it said no, by `telex.refuse`
    "shape",  # an answer that cannot be told, or is not what was asked for
    "budget",  # more instructions than a call may take
    "memory",
    "deadline",  # more time than a call may take
    "died",  # its process ended under it
    "load",  # a source that does not compile, or an entrypoint that answers no table
    "resting",  # ended too often of late to be started again at once
    "no_function",
    "closed",
]


class PluginProblem(Exception):
    """A call of a plugin's function brought no answer. `str` is the whole sentence."""

    def __init__(
        self, plugin: str, function: str, kind: Kind, problem: str, code: str | None = None
    ) -> None:
        # The name between marks: `password: …` would be taken for a secret by whoever redacts it.
        named = f"{plugin}: `{function}`" if function else plugin
        super().__init__(f"{named}: {problem}")
        self.plugin = plugin
        self.function = function
        """Empty where it is not about one, as when the sources do not compile."""
        self.kind: Kind = kind
        self.problem = problem
        self.code = code
        """What `telex.refuse` was given; of no other kind."""

    @property
    def asked_wrongly(self) -> bool:
        """Whether the plugin is fine and the caller asked for what it does not do."""
        return self.kind in {"refused", "no_function"}

    def facts(self) -> dict[str, Any]:
        """The same, for those who read it by program."""
        told = {"plugin": self.plugin, "function": self.function, "kind": self.kind}
        told["problem"] = self.problem
        return told if self.code is None else {**told, "reason": self.code}
