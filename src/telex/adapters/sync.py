"""The same as `client`, for programs without an event loop. Each method waits for its answer.

Written out for the reason that `telex.automation.sync` is; a test holds it to `client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telex.adapters.client import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from telex.adapters.client import Adapted
    from telex.adapters.protocol import AdapterState, Inspection, PluginDescription
    from telex.automation.portal import Portal
    from telex.automation.protocol import Cells, ScreenSnapshot


class BlockingAdapted:
    """One program with its adapter: send, wait, look. See `Adapted`, whose methods these are."""

    def __init__(self, adapted: Adapted, portal: Portal) -> None:
        self._adapted = adapted
        self._run = portal.run
        self.id = adapted.id
        self.plugin = adapted.plugin
        self.session = adapted.session

    def __enter__(self) -> BlockingAdapted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> AdapterState:
        return self._run(self._adapted.state())

    def send(
        self, intent: str, /, *, params: Mapping[str, Any] | None = None, **more: Any
    ) -> AdapterState:
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
        turn = self._adapted.turn(
            intent, wait=wait, wait_params=wait_params, timeout=timeout, params=params, **more
        )
        return self._run(turn)

    def snapshot(self, *, cells: Cells = "full", redact: bool = True) -> ScreenSnapshot:
        return self._run(self._adapted.snapshot(cells=cells, redact=redact))

    def text(self, *, redact: bool = True) -> str:
        return self._run(self._adapted.text(redact=redact))

    def transcript(self, *, strip: bool = True, redact: bool = True) -> str:
        return self._run(self._adapted.transcript(strip=strip, redact=redact))

    def inspect(self, *, redact: bool = True) -> Inspection:
        return self._run(self._adapted.inspect(redact=redact))

    def describe(self) -> PluginDescription:
        return self._run(self._adapted.describe())

    def close(self) -> None:
        self._run(self._adapted.close())
