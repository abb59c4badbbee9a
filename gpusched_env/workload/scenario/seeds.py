"""Seeds as people write them: on the command line and in scenario files."""

from __future__ import annotations

import re

from gpusched_env.errors import InputError

MOST_SEEDS = 100_000
ALLOWED = "whole numbers >= 0 and ranges of them, each once: 0-19, or 0,3,5"


def parse_seeds(text: str, field: str = "seeds") -> tuple[int, ...]:
    """Read `0-19` (both ends included), `0,3,5`, or a mixture.

    Args:
        text: The seeds.
        field: Where they stand, for the error.

    Raises:
        InputError: It is not of that form, a range runs backwards, or a seed stands twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if match is None:
            raise InputError(field, text, ALLOWED)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_SEEDS:
            raise InputError(field, text, f"{ALLOWED}; ranges run upwards and hold at most {MOST_SEEDS} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) != len(seeds):
        raise InputError(field, text, ALLOWED)
    return tuple(seeds)
