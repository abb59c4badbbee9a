"""Seeds as they are written on the command line."""

import re

from gpusched_env.errors import InputError

MOST_SEEDS = 100_000
ALLOWED = "whole numbers >= 0 and ranges of them, each once: 0-19, or 0,3,5"


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read `0-19` (both ends included), `0,3,5`, or a mixture.

    Raises:
        InputError: It is not of that form, a range runs backwards, or a seed stands twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if match is None:
            raise InputError("--seeds", text, ALLOWED)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_SEEDS:
            raise InputError("--seeds", text, f"{ALLOWED}; ranges run upwards and hold at most {MOST_SEEDS} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) != len(seeds):
        raise InputError("--seeds", text, ALLOWED)
    return tuple(seeds)
