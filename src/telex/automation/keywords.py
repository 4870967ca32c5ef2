"""Names the nearest keyword in the TypeError for an unknown one, as Python 3.13 and later do."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose options are easily misspelt."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        for name in given:
            if name not in known:
                __tracebackhide__ = True
                raise TypeError(_unknown(function.__qualname__, name, known))
        return function(*args, **given)

    return checked


def _unknown(function: str, name: str, known: tuple[str, ...]) -> str:
    from telex.rpc.unknown_members import nearest_member

    options = [one for one in known if one != "self"]
    near = nearest_member(name, options)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(options)}"
    return f"{function}() got an unexpected keyword argument {name!r}; {hint}"
