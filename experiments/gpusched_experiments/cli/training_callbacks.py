"""Callbacks of Stable-Baselines3 by import path, as `gpusched train --callback` takes them."""

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError

EXAMPLE = """module:Class or 'module:Class={"argument": 1}'"""


def make_callbacks(texts: Iterable[str], option: str = "--callback") -> list[Any]:
    """Make the callbacks of `MODULE:CLASS` or `MODULE:CLASS=JSON`, with the named arguments of a JSON object.

    Modules are looked for in the present folder, too.

    Raises:
        InputError: A text is not of that form, there is no such module or class, it is no callback, or it does not take
            the arguments.
    """
    return [_make(text, option) for text in texts]


def _make(text: str, option: str) -> Any:
    path, _, arguments = text.partition("=")
    module, _, name = path.partition(":")
    if not module or not name:
        raise InputError(option, text, EXAMPLE)
    given = _arguments(text, arguments, option)
    found = _found(text, module, name, option)
    try:
        callback = found(**given)
    except TypeError as error:
        raise InputError(option, text, f"arguments that {name} takes ({error})") from error
    base = importlib.import_module("stable_baselines3.common.callbacks").BaseCallback
    if not isinstance(callback, base):
        raise InputError(option, text, "a class of callbacks of Stable-Baselines3 (BaseCallback)")
    return callback


def _arguments(text: str, arguments: str, option: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InputError(option, text, f"{EXAMPLE}, with a JSON object")
    return given


def _found(text: str, module: str, name: str, option: str) -> Any:
    try:
        with _present_folder():
            return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(option, text, f"a class that can be imported ({error})") from error


@contextmanager
def _present_folder() -> Iterator[None]:
    """Let modules be imported from the present folder, as by `python -m`."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
