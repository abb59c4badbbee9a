"""What the work that jobs have done could have cost at least: the part of the bill that no policy can avoid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.sharing import planned_slowdown
from gpusched_env.simulator.state import cheapest_in_full_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env import Instance, View


class WorkMeter:
    """Measures the least energy cost of the work done, in many environments at once.

    An epoch counts what it costs in the cheapest configuration, in a full node. Over an episode that sums to the same
    for every policy, so a reward that counts it back ranks policies as before, and is about what they decide: the cost
    above the least.

    Args:
        views: The present states of the environments.
        instances: Their instances.
    """

    def __init__(self, views: Sequence[View], instances: Sequence[Instance]) -> None:
        self._done = np.array([work_eur(view) for view in views])
        self._whole = np.array([whole_work_eur(*pair) for pair in zip(views, instances, strict=True)])

    def change(
        self,
        views: Sequence[View],
        instances: Sequence[Instance],
        ended: NDArray[np.bool_],
        stalled: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Give the least cost of the work of the last step [€], (N,).

        Args:
            views: The states after it; where an episode ended, at the beginning of the next one.
            instances: Their instances.
            ended: Where an episode ended, (N,).
            stalled: Where it ended since nothing ran, so that its last step did no work, (N,); nowhere by default.
        """
        done = np.array([work_eur(view) for view in views])
        change = np.where(ended, self._whole, done) - self._done
        if stalled is not None:
            change[stalled] = 0.0
        for i in np.flatnonzero(ended).tolist():
            self._whole[i] = whole_work_eur(views[i], instances[i])
        self._done = done
        return change


def work_eur(view: View) -> float:
    """Give the least energy cost of the epochs done so far [€]."""
    jobs = view.jobs[: view.count[at.SUBMITTED]]
    rates = view.least_rate[jobs[:, at.CHEAPEST].astype(np.int64)]
    return float(np.sum(jobs[:, at.EPOCHS] * jobs[:, at.CHEAPEST_TAU] * rates))


def whole_work_eur(view: View, instance: Instance) -> float:
    """Give the least energy cost of all the epochs that the jobs of an episode need [€]."""
    table = instance.jobs
    seconds = table.seconds_per_epoch * planned_slowdown(instance)[table.application]
    cheapest, least_s = cheapest_in_full_nodes(seconds, view.least_rate)
    return float(np.sum(table.epochs_needed * least_s * view.least_rate[cheapest]))
