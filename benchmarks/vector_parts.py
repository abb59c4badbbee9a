"""The parts of the processor time of a decision in the native vector environment.

`python -m benchmarks.vector_parts PART ENVS STEPS` prepares a walk; then it walks once for each line that
it reads, and prints the processor time of that part [µs per decision].
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.child import answer
from benchmarks.vector_walks import walk
from gpusched_env.envs.vector import runs
from gpusched_env.envs.vector.episodes import Episodes
from gpusched_env.envs.vector.runs import EpisodeRuns

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = {
    "compiled": "the compiled call: decisions, simulation, observations",
    "begun": "new episodes: instances and their states",
    "else": "the rest: Python around the call, arrays, infos, choosing actions",
}
"""The parts of a decision's time, and their descriptions."""


class PartWalk:
    """A walk through the native vector environment that measures the time of a part of it.

    Args:
        part: One of `PARTS`.
        envs: Number of environments.
        steps: Steps of each in a repetition.
    """

    def __init__(self, part: str, envs: int, steps: int) -> None:
        self.part, self.decisions, self.walk = part, envs * steps, walk("native", envs, steps)
        self.spent = dict.fromkeys(PARTS, 0.0)

    def __call__(self) -> float:
        """Continue the walk; return the processor time of the part [µs per decision]."""
        self.spent = dict.fromkeys(PARTS, 0.0)
        with ExitStack() as patched:
            for owner, name, part in (
                (runs, "work", "compiled"),
                (Episodes, "begin", "begun"),
                (EpisodeRuns, "begin", "begun"),
            ):
                patched.enter_context(patch.object(owner, name, self._timed(getattr(owner, name), part)))
            begin = time.process_time()
            self.walk()
            self.spent["else"] = time.process_time() - begin - self.spent["compiled"] - self.spent["begun"]
        return 1e6 * self.spent[self.part] / self.decisions

    def close(self) -> None:
        """Close the environment."""
        self.walk.close()

    def _timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **keywords: Any) -> Any:
            begin = time.process_time()
            try:
                return function(*arguments, **keywords)
            finally:
                self.spent[part] += time.process_time() - begin

        return timed


if __name__ == "__main__":
    answer(PartWalk(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
