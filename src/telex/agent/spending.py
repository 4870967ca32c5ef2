"""What the model calls of one run cost together, for `run.diagnostics`. Pure."""

from __future__ import annotations

from telex.protocols.agent_ui.running import (
    LlmCall,
    ModelSum,
    RunSummary,
    SummaryDiagnostics,
    Usage,
)

_NOTHING = Usage(0, 0, 0)


class Spending:
    """A run of a core without a model costs nothing, and says so."""

    def __init__(self) -> None:
        self._calls: list[LlmCall] = []

    def add(self, call: LlmCall) -> None:
        self._calls.append(call)

    def summary(self, run_id: str) -> SummaryDiagnostics:
        models = dict.fromkeys(call.model for call in self._calls)
        by_model = {model: _sum([c for c in self._calls if c.model == model]) for model in models}
        whole = _sum(self._calls)
        return SummaryDiagnostics(
            run_id,
            RunSummary(
                whole.calls,
                whole.total_tokens,
                whole.input_tokens,
                whole.output_tokens,
                whole.cached_input_tokens,
                whole.cache_creation_tokens,
                whole.cost_usd,
                by_model,
            ),
        )


def _sum(calls: list[LlmCall]) -> ModelSum:
    used = [call.usage or _NOTHING for call in calls]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return ModelSum(
        len(calls),
        sum(one.input_tokens for one in used),
        sum(one.output_tokens for one in used),
        sum(one.input_cached_tokens or 0 for one in used),
        sum(one.input_cache_creation_tokens or 0 for one in used),
        sum(one.total_tokens for one in used),
        sum(costs) if costs else None,
    )
