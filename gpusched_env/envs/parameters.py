"""Constructors that pass keywords on: their signatures show these, and a name that is none of them is one error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from gpusched_env.errors import InputError

TRIED = "frameskip"
"""TorchRL gives it to every environment, and goes on without it after a TypeError."""

P = ParamSpec("P")
R = TypeVar("R")


def takes_parameters_of(
    *others: Callable[..., Any], without: tuple[str, ...] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function whose `**keywords` are parameters of `others`, but for some.

    Its signature lists them by name, and a keyword that is no parameter raises an InputError with the nearest name.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        shown = signature(function)
        own = {name: one for name, one in shown.parameters.items() if one.kind is not Parameter.VAR_KEYWORD}
        more = {name: one for other in others for name, one in signature(other).parameters.items()}
        added = [one.replace(kind=Parameter.KEYWORD_ONLY) for name, one in more.items() if name not in (*own, *without)]
        known = [*own.values(), *(one for one in added if one.name != "self")]
        names = [one.name for one in known if one.name != "self"]

        @wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            for name, value in keywords.items():
                if name not in names:
                    if name == TRIED:
                        raise TypeError(f"unexpected keyword argument '{name}'")
                    raise InputError(name, value, f"no such parameter; there are {', '.join(names)}")
            return function(*args, **keywords)

        checked.__signature__ = shown.replace(parameters=known)  # type: ignore[attr-defined]
        return checked

    return decorate
