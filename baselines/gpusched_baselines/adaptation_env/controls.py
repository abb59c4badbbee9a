"""The controls: the parameters of STS-X that an action sets, their names, and the adaptation of a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.features import (
    CHANGE,
    CHEAPEST_SLACK,
    EXPECTED,
    HASTE,
    JOBS,
    LENGTH,
    TARDINESS_COST,
    TIME_LEFT,
    job_features,
)
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.plan import CONTROLS, ENERGY_CONTROLS, Adaptation
from gpusched_env.errors import InputError
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

ROUNDS = 16  # that STS-X decides in a step
# The meaning of an action of 1: the natural logarithm of a factor.
MOST_OF_TYPE = 0.5  # on the cost rate of a GPU type
MOST_OF_SIZE = 0.25  # on the cost rate, for each doubling of the GPUs
MOST_OF_JOBS = np.array([1.0, 1.0, 1.0, 2.0, 1.0])  # on the columns of `Adaptation.jobs`
LONGEST_DELAY = 1.0  # on the delay over which the value of a second is taken
MOST_OF_ENERGY = np.array([1.0, 2.0, 0.5, 2.0, 2.0])  # on the entries of `Adaptation.energy`

OF_JOBS = ("price when short", "tardiness weight", "order", "slack margin", "restart")
"""Names of the columns of `Adaptation.jobs`, in their order."""
SEEN = (TIME_LEFT, CHEAPEST_SLACK, TARDINESS_COST, EXPECTED, LENGTH, CHANGE, HASTE)
"""Features of a job on which the controls of jobs may depend, with `controls="jobs"`."""
OF_ENERGY = (
    "price differences",
    "price of GPU time to come",
    "GPU time that plans use",
    "margin before due dates",
    "price of power",
)
"""Names of the entries of `Adaptation.energy`, in their order."""
SETS = ("round", "jobs", "energy")
MORE = {"jobs": len(SEEN) * CONTROLS, "energy": ENERGY_CONTROLS}
"""How many numbers a set has more than `round`."""


class Controls(NamedTuple):
    """An action in the form that kernels take.

    Attributes:
        critical: Factors on the cost rates with which critical jobs are planned, (C,).
        deferrable: Factors on the cost rates by which the cheapest configuration of deferrable jobs is found, (C,).
        priced: Whether any of the latter is not 1.
        jobs: The same logarithms for every job, by column of `Adaptation.jobs`, (CONTROLS,).
        by_feature: Coefficients of `SEEN` for these, (F, CONTROLS); (0, CONTROLS) without.
        delay: Logarithm of the factor on the delay over which the value of a second is taken.
        energy: Logarithms for prices and a cap, (ENERGY_CONTROLS,).
    """

    critical: Floats
    deferrable: Floats
    priced: bool
    jobs: Floats
    by_feature: Floats
    delay: float
    energy: Floats


def control_names(gpu_types: Sequence[str], controls: str = "round") -> tuple[str, ...]:
    """Return the names of the numbers of an action, in their order.

    Args:
        gpu_types: Names of the GPU types of the cluster, V.
        controls: `round` for 2 V + 8 numbers; `jobs` for 35 more, coefficients of seven features of a job; `energy` for
            five more, for prices that change and a cap on power.
    """
    names = [f"price of {name}, {kind}" for kind in ("critical", "deferrable") for name in gpu_types]
    names += ["price by log2(GPUs), critical", "price by log2(GPUs), deferrable", *OF_JOBS, "patience"]
    if controls == "jobs":
        names += [f"{name}, by {JOBS[feature]}" for feature in SEEN for name in OF_JOBS]
    if controls == "energy":
        names += OF_ENERGY
    return tuple(names)


def action_array(action: Any, size: int) -> NDArray[np.float64]:
    """Return an action as numbers from -1 to 1, (size,): numbers outside are clipped."""
    try:
        given = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (size,) or not np.isfinite(given).all():
        raise InputError("action", action, f"{size} finite numbers; outside [-1, 1] they are clipped")
    return np.clip(given, -1.0, 1.0)


def control_count(gpu_types: int, controls: str = "round") -> int:
    if controls not in SETS:
        raise InputError("controls", controls, " or ".join(SETS))
    return 2 * gpu_types + 3 + CONTROLS + MORE.get(controls, 0)


def controls_of(action: NDArray[np.float64], configs: Ints, gpu_types: int) -> Controls:
    """Return the controls that an action sets; an action of 0 changes nothing, to the last bit.

    Args:
        action: Numbers from -1 to 1, (`control_count`,); the set follows from their number.
        configs: The configurations, (C, CONFIG_COLUMNS).
        gpu_types: Number of GPU types, V.
    """
    prices, rest = MOST_OF_TYPE * action[: 2 * gpu_types], action[2 * gpu_types :]
    types = configs[:, at.CONFIG_TYPE]
    doublings = MOST_OF_SIZE * np.log2(np.maximum(1, configs[:, at.CONFIG_SIZE] // at.UNITS))
    deferrable = prices[gpu_types:][types] + rest[1] * doublings
    more = rest[3 + CONTROLS :]
    of_energy = len(more) == MORE["energy"]
    by_feature = more[len(more) if of_energy else 0 :].reshape(-1, CONTROLS) * MOST_OF_JOBS
    return Controls(
        critical=np.exp(prices[:gpu_types][types] + rest[0] * doublings),
        deferrable=np.exp(deferrable),
        priced=bool(deferrable.any()),
        jobs=rest[2 : 2 + CONTROLS] * MOST_OF_JOBS,
        by_feature=by_feature,
        delay=float(LONGEST_DELAY * rest[2 + CONTROLS]),
        energy=more * MOST_OF_ENERGY if of_energy else np.zeros(ENERGY_CONTROLS),
    )


def adaptation_of(controls: Controls, board: Board, rate: Floats) -> Adaptation:
    """Return the adaptation of a round by the controls.

    Args:
        board: The board at the beginning of a round, with the times with which STS-X plans.
        rate: Cost rates with which STS-X plans [€/s], (A, C).
    """
    logs = np.empty((board.count[at.ACTIVE], CONTROLS))
    logs[:] = controls.jobs
    if len(controls.by_feature):
        logs += job_features(board, rate)[:, SEEN] @ controls.by_feature
    power = np.exp(controls.energy[of.POWER])  # exactly 1 at 0
    rates = rate * (controls.critical * power), rate * (controls.deferrable * power)
    return Adaptation(logs, *rates, not controls.priced, controls.delay, controls.energy)


@kernel
def forget_cheapest(board: Board) -> None:
    """Clear the cheapest configurations of the active jobs in the memory of STS-X, after a round at other rates."""
    for i in range(board.count[at.ACTIVE]):
        board.memory[board.active[i], of.CHEAPEST] = 0.0
