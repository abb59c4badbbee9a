"""When and on what jobs really ran, by the trace that they are from: whether it can have been."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.audit.ranges import TIME, Range, index_below
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.audit.reading import Fields


def check_traced(table: Fields, submission: list[float], seconds: list[list[float | None]]) -> None:
    """Check when and on what jobs really ran, where a trace has told: a start after the submission, on what is allowed.

    Raises:
        InputError: One of the two columns is missing, or a value cannot be.
    """
    told = [name for name in ("traced_start_s", "traced_config") if table.optional(name, None) is not None]
    if not told:
        return
    count = len(submission)
    for index, start in enumerate(table.numbers("traced_start_s", count, TIME)):
        Range("a number >= submission_s", submission[index]).check(f"{table.name('traced_start_s')}[{index}]", start)
    for index, config in enumerate(table.wholes("traced_config", count, index_below(len(seconds[0])))):
        if seconds[index][config] is None:
            raise InputError(f"{table.name('traced_config')}[{index}]", config, "one that the job may use")
