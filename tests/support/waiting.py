"""Waiting for what a system says, never for a time: a busy machine takes longer, and that is no failure."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(value: Callable[[], Value], within_s: float = 300.0, every_s: float = 0.1) -> Value:
    """Return the first true value that a function returns; fail if there is none in time."""
    by_s = time.monotonic() + within_s
    while True:
        found = value()
        if found or time.monotonic() > by_s:
            assert found, f"not within {within_s:g} s"
            return found
        time.sleep(every_s)
