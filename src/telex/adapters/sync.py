"""The blocking twin of `client`: the same methods, each waits for its result.

It is written out for the reason that `telex.automation.sync` is; a test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telex.adapters.client import TURN_SECONDS
from telex.automation.arguments import checks_arguments
from telex.automation.portal import hides_frames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.adapters.client import AsyncAdapted
    from telex.adapters.protocol import AdapterState, Inspection, PluginDescription
    from telex.automation.portal import Portal
    from telex.automation.protocol import Cells, ScreenSnapshot

__tracebackhide__ = hides_frames


@checks_arguments
class Adapted:
    """A program with its adapter: send intents, wait, read its state. Made by `telex.adapt`.

    Leaving `with` ends the program. Parameters of an intent or a wait matcher are given by
    name; one whose name is taken, such as `timeout`, goes into `params`.

    Example:
        with telex.adapt("shell") as shell:
            state = shell.turn("run", command="false")
            print(state.metadata["exit_code"])
    """

    __module__ = "telex"

    def __init__(self, adapted: AsyncAdapted, portal: Portal) -> None:
        self._adapted = adapted
        self._run = portal.run
        self.id = adapted.id
        self.plugin = adapted.plugin
        self.session = adapted.session

    def __enter__(self) -> Adapted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> AdapterState:
        """Read the state that the plugin sees on the screen now.

        Returns:
            The name of the state, its confidence and evidence, and the plugin's metadata.
        """
        return self._run(self._adapted.state())

    def send(
        self, intent: str, /, *, params: Mapping[str, Any] | None = None, **more: Any
    ) -> AdapterState:
        """Send an intent of the plugin, without waiting for its outcome; `turn` also waits.

        Args:
            intent: The name of the intent; `describe` lists them.
            params: Parameters of the intent.
            more: Parameters of the intent, by name.

        Returns:
            The state right after the input was typed.

        Raises:
            Refused: There is no such intent, or the plugin refused it.
            NotPermitted: The plugin's manifest does not allow it.
        """
        return self._run(self._adapted.send(intent, params=params, **more))

    def wait(
        self,
        matcher: str | None = None,
        /,
        *,
        timeout: float = TURN_SECONDS,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AdapterState:
        """Wait for a wait matcher of the plugin.

        Args:
            matcher: The name of the matcher; None waits for the end of a turn.
            timeout: Seconds to wait.
            params: Parameters of the matcher.
            more: Parameters of the matcher, by name.

        Returns:
            The state when it matched.

        Raises:
            TimedOut: It did not match in time. The message shows the screen, `data` the state.
        """
        return self._run(self._adapted.wait(matcher, timeout=timeout, params=params, **more))

    def turn(
        self,
        intent: str,
        /,
        *,
        wait: str | None = None,
        wait_params: Mapping[str, Any] | None = None,
        timeout: float = TURN_SECONDS,
        params: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> AdapterState:
        """Send an intent and wait, as `send` and `wait` do, with no other input between them.

        Args:
            intent: The name of the intent.
            wait: The name of the wait matcher; None waits for the end of the turn.
            wait_params: Parameters of the wait matcher.
            timeout: Seconds to wait.
            params: Parameters of the intent.
            more: Parameters of the intent, by name.

        Returns:
            The state at the end of the wait.

        Raises:
            TimedOut: The turn did not end in time.
            Refused: There is no such intent or matcher, or the plugin refused it.

        Example:
            state = shell.turn("run", command="echo hello")
        """
        return self._run(
            self._adapted.turn(
                intent, wait=wait, wait_params=wait_params, timeout=timeout, params=params, **more
            )
        )

    def snapshot(self, *, cells: Cells = "full", redact: bool | None = None) -> ScreenSnapshot:
        """Read the visible screen.

        Args:
            cells: "full" for every cell, "runs" for runs of one style, "none" for text only.
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        return self._run(self._adapted.snapshot(cells=cells, redact=redact))

    def text(self, *, redact: bool | None = None) -> str:
        """Read the text of the visible screen.

        Args:
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        return self._run(self._adapted.text(redact=redact))

    def transcript(self, *, strip: bool = True, redact: bool | None = None) -> str:
        """Read what the program printed, in order, as far back as it is kept.

        Args:
            strip: Leave out escape sequences.
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        return self._run(self._adapted.transcript(strip=strip, redact=redact))

    def inspect(self, *, redact: bool | None = None) -> Inspection:
        """Read everything the plugin sees, and the state it derives from that.

        Args:
            redact: Mask secrets; None for the default, see `telex.adapt`.
        """
        return self._run(self._adapted.inspect(redact=redact))

    def describe(self) -> PluginDescription:
        """List the plugin's intents, wait matchers and states."""
        return self._run(self._adapted.describe())

    def close(self) -> None:
        """End the program and the adapter. A second call does nothing."""
        self._run(self._adapted.close())
