"""One single-job problem (design, section 2), as the solvers of this package take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning import plan as kernels
from gpusched_baselines.planning.exact import Plan, Segment, Status, check_problem
from gpusched_env.simulator.distributions import DistributionTable
from gpusched_env.simulator.due_dates import misses
from gpusched_env.simulator.survival import bin_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from gpusched_env.model import EpochDistribution


NOTHING_LEFT = 1e-12  # of the maximum epochs: a rest that rounding leaves


@dataclass(frozen=True, slots=True, eq=False)
class SingleJobProblem:
    """A job part done, its due date, and the configurations worth a thought: those that no other dominates.

    A configuration is dominated if another one is at least as fast and costs no more per epoch: an optimal plan has no
    use for it. What is left is sorted from slow and cheap to fast and dear; it need not be convex.

    Attributes:
        configurations: Indices of the configurations that are left, among those given, (K,).
        tau: Their seconds per epoch, strictly falling, (K,).
        price: Their cost per epoch [€], strictly rising, (K,).
        edges: Bin edges as fractions of the maximum epochs, (B + 1,).
        survival: S on each bin, (B,).
        tail: ∫ S from each edge to 1, (B + 1,).
        max_epochs: Maximum epochs E.
        time_left_s: Time to the due date D [s].
        epochs_done: Epochs done w.
    """

    configurations: NDArray[np.int64]
    tau: NDArray[np.float64]
    price: NDArray[np.float64]
    edges: NDArray[np.float64]
    survival: NDArray[np.float64]
    tail: NDArray[np.float64]
    max_epochs: float
    time_left_s: float
    epochs_done: float

    @classmethod
    def of(
        cls,
        seconds_per_epoch: ArrayLike,
        cost_eur_per_epoch: ArrayLike,
        distribution: EpochDistribution,
        max_epochs: float,
        time_left_s: float,
        epochs_done: float,
    ) -> SingleJobProblem:
        """Make the problem from the arguments of `solve_single_job`.

        Raises:
            InputError: A value is out of its range, or no configuration is allowed.
        """
        tau = np.asarray(seconds_per_epoch, dtype=np.float64)
        price = np.asarray(cost_eur_per_epoch, dtype=np.float64)
        check_problem(tau, price, max_epochs, time_left_s, epochs_done)
        left = undominated(tau, price)
        table = DistributionTable.of([distribution])
        return cls(
            configurations=left,
            tau=tau[left],
            price=price[left],
            edges=table.edges[0],
            survival=table.survival[0],
            tail=table.tail[0],
            max_epochs=float(max_epochs),
            time_left_s=float(time_left_s),
            epochs_done=float(epochs_done),
        )

    @property
    def epochs_left(self) -> float:
        """Give the epochs left in the worst case, E - w."""
        return self.max_epochs - self.epochs_done

    @property
    def first_bin(self) -> int:
        """Give the bin that holds the present epoch."""
        return int(bin_of(self.edges, self.epochs_done / self.max_epochs))

    @property
    def alive(self) -> float:
        """Give S(w), the probability of having got this far; 0 if the job should be dead by now."""
        return float(self.survival[self.first_bin])

    def plan_without_choice(self) -> Plan | None:
        """Give the plan if there is nothing to solve: slack or late, or no more than rounding is left; else None."""
        if misses(self.epochs_left * self.tau[-1], self.time_left_s):
            return self._throughout(len(self.tau) - 1, "late")
        if not misses(self.epochs_left * self.tau[0], self.time_left_s):
            return self._throughout(0, "slack")
        if self.epochs_left <= NOTHING_LEFT * self.max_epochs:
            return self._throughout(len(self.tau) - 1, "tight")
        return None

    def plan_at(self, starts: NDArray[np.float64], status: Status = "tight") -> Plan:
        """Make the plan in which configuration k runs from `starts[k]` to `starts[k + 1]`, with its true cost.

        Args:
            starts: Epochs, never falling, from w to E, (K + 1,).
            status: Status of the plan.
        """
        cost = kernels.expected_cost(
            self.price, self.edges, self.survival, self.tail, self.first_bin, self.max_epochs, starts
        )
        segments = tuple(
            Segment(int(c), float(start), float(end))
            for c, start, end in zip(self.configurations, starts[:-1], starts[1:], strict=True)
            if end > start
        )
        return Plan(status, float(cost), self.worst_case_s(starts), segments)

    def worst_case_s(self, starts: NDArray[np.float64]) -> float:
        """Give the time of a plan if all epochs left are needed [s]."""
        return float(np.dot(np.diff(starts), self.tau))

    def _throughout(self, k: int, status: Status) -> Plan:
        starts = np.full(len(self.tau) + 1, self.epochs_done)
        starts[k + 1 :] = self.max_epochs
        return self.plan_at(starts, status)


def undominated(tau: NDArray[np.float64], price: NDArray[np.float64]) -> NDArray[np.int64]:
    """List the configurations that no other dominates, slow and cheap to fast and dear; of equal ones the first.

    Args:
        tau: Seconds per epoch, (C,); inf where not allowed.
        price: Cost per epoch [€], (C,).
    """
    by_speed = np.lexsort((price, tau))
    kept: list[int] = []
    for c in by_speed[np.isfinite(tau[by_speed])]:
        if not kept or price[c] < price[kept[-1]]:
            kept.append(int(c))
    return np.array(kept[::-1], dtype=np.int64)
