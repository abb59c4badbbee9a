"""What STS-X alone spends on a workload, over time: what the reward `saving` is measured against."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.steering_env.knobs import knob_count
from gpusched_baselines.steering_env.run import SteeredRun
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from gpusched_env.model import Instance

MOST_KEPT = 1_000  # workloads whose runs are kept


@dataclass(frozen=True, slots=True, eq=False)
class BaseRun:
    """A run of STS-X alone.

    Attributes:
        time_s: The beginning of every round, and the end [s], (R + 1,).
        waste_eur: The waste until then [€], (R + 1,).
        total_eur: Its cost in the end [€].
    """

    time_s: NDArray[np.float64]
    waste_eur: NDArray[np.float64]
    total_eur: float

    @classmethod
    def of(cls, instance: Instance) -> BaseRun:
        """Run STS-X on an instance."""
        run, action = SteeredRun(instance), np.zeros(knob_count(len(instance.gpu_types)))
        clock = run.state.board.clock
        points = [(0.0, 0.0), (float(clock[at.NOW]), run.waste())]
        while not run.over:
            run.decide(action, 1)
            points.append((float(clock[at.NOW]), run.waste()))
        time_s, waste_eur = np.array(points).T
        return cls(time_s, waste_eur, float(clock[at.BILL] + clock[at.LATENESS]))

    def waste_at(self, time_s: float) -> float:
        """Return the waste until a time [s], in a line between rounds; after the end that at the end [€]."""
        return float(np.interp(time_s, self.time_s, self.waste_eur))


class BaseRuns:
    """The runs of STS-X of a process: each is made once, and the latest are kept."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Hashable, BaseRun] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, instance: Instance) -> BaseRun:
        """Return the run on an instance that `key` tells from all others."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        made = BaseRun.of(instance)
        with self._lock:
            self._runs[key] = made
            while len(self._runs) > MOST_KEPT:
                self._runs.popitem(last=False)
        return made


BASE_RUNS = BaseRuns()
