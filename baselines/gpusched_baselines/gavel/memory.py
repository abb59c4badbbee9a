"""What Gavel keeps between rounds: of jobs and options share, time got and deficit; of the run, in the first row."""

from __future__ import annotations

# Columns of the policy's memory with K options: first K with shares of time x, K with the time got since the last
# reset [s], K with deficits [s]. Then:
KNOWN = 0  # 1 if the job was there at the last reset
# and, in the first row only:
ROUND_END = 1  # when the present round ends [s]
RESET_AT = 2  # time of the last reset [s]; 0: none, or one at the very beginning
SEEN = 3  # 1 + submissions + completions until then
TOTALS = 4  # from here: for each GPU type the time got on it by all [s]


def columns(options: int, types: int) -> int:
    """Count the columns for so many options and GPU types."""
    return 3 * options + TOTALS + types
