"""The person at the terminal answers what a run asks."""

from __future__ import annotations

import click

from telex.cli.console import explain, printable
from telex.cli.typed import typed
from telex.protocols.agent_ui import asking


async def confirm(params: asking.UiConfirmRequestParams) -> asking.UiConfirmResult:
    explain(f"\n{params.title}\n{params.message}\n", redact=False)
    return answer_of(await typed(_choices(params), fresh=True) or "", params)


async def prompt(params: asking.UiPromptRequestParams) -> asking.UiPromptResult:
    explain(f"{params.title}: {params.message}")
    if (given := params.default_value) is None:
        return asking.UiPromptResult(await typed("> ", hide=params.secret))
    said = await typed(f"[{printable(given)}] > ", hide=params.secret)
    return asking.UiPromptResult(given if said == "" else said)


async def pick(params: asking.UiPickRequestParams) -> asking.UiPickResult:
    explain(params.title)
    for item in params.items:
        detail = f"  ({item.detail})" if item.detail else ""
        explain(f"  {item.id if item.id != item.label else '-'}  {item.label}{detail}")
    said = await typed("one or several, with commas: " if params.multi else "which: ") or ""
    chosen = {part.strip() for part in (said.split(",") if params.multi else [said])}
    return asking.UiPickResult(
        [item.id for item in params.items if not chosen.isdisjoint((item.id, item.label))]
    )


def _choices(params: asking.UiConfirmRequestParams) -> str:
    always = ", [a]lways" if params.allow_remember else ""
    reason = ", or say why not" if params.allow_reason else ""
    return click.style(f"[y]es{always}, [N]o{reason}: ", bold=True)


def answer_of(said: str, params: asking.UiConfirmRequestParams) -> asking.UiConfirmResult:
    """What the person typed, as an answer. Only a yes is a yes."""
    match said.strip().lower():
        case "y" | "yes":
            return asking.UiConfirmResult(ok=True)
        case "a" | "always" if params.allow_remember:
            return asking.UiConfirmResult(ok=True, remember=True)
        case "" | "n" | "no":
            return asking.UiConfirmResult(ok=False)
    return asking.UiConfirmResult(ok=False, reason=said.strip() if params.allow_reason else None)
