"""Single-job problems that the tests of several solvers share."""

from dataclasses import dataclass

import numpy as np

from gpusched_baselines import Plan, SingleJobProblem, solve_single_job
from gpusched_env import EpochDistribution


@dataclass(frozen=True)
class SingleJob:
    tau: np.ndarray
    price: np.ndarray
    distribution: EpochDistribution
    largest: float
    time_left: float
    done: float

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray, EpochDistribution, float, float, float]:
        return self.tau, self.price, self.distribution, self.largest, self.time_left, self.done

    @property
    def problem(self) -> SingleJobProblem:
        return SingleJobProblem(*self.arguments)

    def exactly(self) -> Plan:
        return solve_single_job(*self.arguments)


def random_single_job(seed: int) -> SingleJob:
    """Make a problem: unsorted, closed and dominated configurations, unequal bins, jobs part done, any status."""
    rng = np.random.default_rng(seed)
    configurations, bins = int(rng.integers(1, 9)), int(rng.integers(1, 41))
    tau = rng.uniform(1.0, 20.0, configurations)
    price = 0.3 * rng.uniform(0.1, 5.0, configurations) + 6.0 / tau**0.7
    tau[1:][rng.random(configurations - 1) < 0.1] = np.inf
    masses = rng.dirichlet(np.full(bins, 0.5)) * (rng.random(bins) < 0.8)
    masses[-1] += 0.05
    edges = np.append(0.0, np.cumsum(rng.uniform(0.2, 1.0, bins)))
    distribution = EpochDistribution.from_masses(masses, edges / edges[-1])
    largest = float(rng.uniform(1.0, 200.0))
    done = float(rng.uniform(0.0, 0.95 * largest)) if rng.random() < 0.5 else 0.0
    finite = tau[np.isfinite(tau)]
    time_left = (largest - done) * float(rng.uniform(0.9 * finite.min(), 1.02 * finite.max()))
    return SingleJob(tau, price, distribution, largest, time_left, done)


def tight_single_jobs(count: int) -> list[SingleJob]:
    """Make `count` problems in which the due date decides how to run the job."""
    jobs = (random_single_job(seed) for seed in range(100 * count))
    tight = (job for job in jobs if job.exactly().status == "tight")
    return [next(tight) for _ in range(count)]


def two_speeds(time_left: float) -> SingleJob:
    """Make the worked example: epochs of 1 h for 1 € or 40 min for 19/15 €; S is 1, then ½; four epochs at most."""
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    return SingleJob(np.array([3600.0, 2400.0]), np.array([1.0, 19 / 15]), halves, 4.0, time_left, 0.0)
