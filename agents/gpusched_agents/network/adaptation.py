"""The network of an adaptation agent, compiled, and the policy that decides as STS-X with its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpusched_baselines.adaptation_env.features import (
    AVERAGED,
    DUE_LOAD,
    EXPECTED,
    JOBS,
    MEANS,
    OFFERED,
    OPTIONS,
    OWN_QUOTA,
    ROUND,
    SURVIVAL,
    observe_round,
)
from gpusched_baselines.sts_x import StsX
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_baselines.sts_x.plan import CONTROLS, Adaptation
from gpusched_baselines.sts_x.type_prices import MOST_RECENT
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_env.arrays import Floats, Singles
    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board

MOST = np.array([1.0, 1.0, 1.0, 2.0, 1.0])  # largest absolute values, by column of `Adaptation.jobs`
MOST_OF_PRICE = 0.7  # largest absolute logarithm of the factor on the rate of a configuration
LONGEST_DEFERRAL = 1.0
CRITICAL, DEFERRABLE = range(2)  # what the prices of configurations are for
OF_JOBS, GATES = 2, 3  # the gate of the columns of jobs, after those of both prices
# Where the load is far below 0.8 (squashed: FULL), prices are close to the cost of energy, since GPUs are not scarce.
STEEP, FULL = 8.0, 0.45
# Where tenants have quotas, prices of deferrable jobs are those of energy: they may not use the GPUs that others leave.
QUOTAS, CLOSES = MEANS + AVERAGED.index(OWN_QUOTA), 30.0
Shapes = dict[str, tuple[int, ...]]


def shapes(jobs: int, options: int, whole: int, hidden: int) -> Shapes:
    """Return the shapes of the network's arrays by name, in their order; matrices are (outputs, inputs).

    Args:
        jobs: Features of a job.
        options: Features of a configuration.
        whole: Features of the round.
        hidden: Width of its hidden layer.
    """
    job, option = jobs + whole, options + whole
    return {
        "job.weight": (CONTROLS, job), "job.bias": (CONTROLS,),
        "code.weight": (hidden, option), "code.bias": (hidden,),
        "price.weight": (2, option), "price_code.weight": (2, hidden), "price.bias": (2,),
        "round.weight": (1, whole), "round.bias": (1,),
        "gate.weight": (GATES, whole), "gate.bias": (GATES,),
    }  # fmt: skip


def own_shapes(hidden: int) -> Shapes:
    """Return the shapes with the features of this release."""
    return shapes(len(JOBS), len(OPTIONS), len(ROUND), hidden)


def seen_weights(hidden: int, *, distribution: bool) -> NDArray[np.float64]:
    """Return 1 for every weight that may be other than 0, (W,): without `distribution`, none on its features."""
    hides = set() if distribution else {EXPECTED, SURVIVAL}
    job = [feature not in hides for feature in range(len(JOBS))]
    whole = [feature - MEANS not in {AVERAGED.index(each) for each in hides} for feature in range(len(ROUND))]
    first = {"job.weight": job, "code.weight": [True] * len(OPTIONS), "price.weight": [True] * len(OPTIONS)}
    parts = []
    for name, shape in own_shapes(hidden).items():
        seen = np.ones(shape)
        if name in {*first, "round.weight", "gate.weight"}:
            seen *= np.array([*first.get(name, []), *whole])
        parts.append(seen.ravel())
    return np.concatenate(parts)


def join_arrays(arrays: Mapping[str, NDArray[np.floating]], shapes: Shapes) -> NDArray[np.floating]:
    """Concatenate the arrays of a network in the order of their shapes."""
    return np.concatenate([arrays[name].ravel() for name in shapes])


def split_weights(flat: NDArray[np.floating], shapes: Shapes) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of a network by name; the inverse of `join_arrays`."""
    arrays, begin = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        arrays[name] = flat[begin : begin + size].reshape(shape).astype(np.float32)
        begin += size
    return arrays


def flat_of(weights: Mapping[str, NDArray[np.float32]], hidden: int) -> NDArray[np.floating]:
    """Concatenate the arrays of an adaptation agent's network in the order that `forward` takes."""
    return join_arrays(weights, own_shapes(hidden))


def arrays_of(flat: NDArray[np.floating], hidden: int) -> dict[str, NDArray[np.float32]]:
    """Return the arrays of an adaptation agent's network by name; the inverse of `flat_of`."""
    return split_weights(flat, own_shapes(hidden))


@kernel
def _part(flat: Singles, begin: int, rows: int, columns: int) -> tuple[Floats, int]:
    """Return the matrix (rows, columns) that begins at `begin`, and the begin of the next one."""
    end = begin + rows * columns
    return flat[begin:end].astype(np.float64).reshape(rows, columns), end


@kernel
def forward(
    jobs: Floats, whole: Floats, options: Floats, flat: Singles, width: int, outputs: Floats, prices: Floats
) -> float:
    """Compute the adaptation of a round.

    For a job with features x in a round with features g: most · gate · tanh(A [x, g] + a). For a configuration with
    features y: most · gate · tanh(B [y, g] + C tanh(D [y, g] + d) + b), once for critical jobs, once for deferrable
    ones. Each of the three has its own gate, min(1, exp(v · g + w)), which may close where no change is needed. The
    gates of prices also close where the load of the latest submissions and that of due work are small: times
    exp(8 min(0, l - 0.45)), with l the larger of both, squashed. That of deferrable jobs closes where there are quotas.

    Args:
        jobs: Features of the active jobs, (A, F).
        whole: Features of the round, (F,).
        options: Features of the configurations, (C, F).
        flat: The weights, concatenated in the order of `shapes`.
        width: Width of the hidden layer.
        outputs: Written: the logarithms of factors for every job, (A, CONTROLS).
        prices: Written: logarithms of factors on the rates of configurations, for `CRITICAL` and `DEFERRABLE` jobs, (2,
            C).

    Returns:
        The logarithm of the factor on the maximum deferral.
    """
    of_job, of_option = jobs.shape[1], options.shape[1]
    w_job, n = _part(flat, 0, CONTROLS, of_job + whole.shape[0])
    b_job, n = _part(flat, n, 1, CONTROLS)
    w_code, n = _part(flat, n, width, of_option + whole.shape[0])
    b_code, n = _part(flat, n, 1, width)
    w_price, n = _part(flat, n, 2, of_option + whole.shape[0])
    w_from_code, n = _part(flat, n, 2, width)
    b_price, n = _part(flat, n, 1, 2)
    w_round, n = _part(flat, n, 1, whole.shape[0])
    b_round, n = _part(flat, n, 1, 1)
    w_gate, n = _part(flat, n, GATES, whole.shape[0])
    b_gate, n = _part(flat, n, 1, GATES)
    gate = np.empty(GATES)
    for k in range(GATES):
        gate[k] = np.exp(min(0.0, _dot(w_gate[k], whole) + b_gate[0, k]))
        if k != OF_JOBS:
            gate[k] *= np.exp(STEEP * min(0.0, max(whole[OFFERED], whole[DUE_LOAD]) - FULL))
    gate[DEFERRABLE] *= np.exp(-CLOSES * max(0.0, whole[QUOTAS]))
    for k in range(CONTROLS):
        shared = _dot(w_job[k, of_job:], whole) + b_job[0, k]
        for i in range(jobs.shape[0]):
            outputs[i, k] = MOST[k] * gate[OF_JOBS] * np.tanh(_dot(w_job[k, :of_job], jobs[i]) + shared)
    code, of_round = np.empty(width), np.empty(width)
    for h in range(width):
        of_round[h] = _dot(w_code[h, of_option:], whole) + b_code[0, h]
    for c in range(options.shape[0]):
        for h in range(width):
            code[h] = np.tanh(_dot(w_code[h, :of_option], options[c]) + of_round[h])
        for k in range(2):
            out = _dot(w_price[k, :of_option], options[c]) + _dot(w_price[k, of_option:], whole) + b_price[0, k]
            prices[k, c] = MOST_OF_PRICE * gate[k] * np.tanh(out + _dot(w_from_code[k], code))
    return LONGEST_DEFERRAL * np.tanh(_dot(w_round[0], whole) + b_round[0, 0])


@kernel
def _dot(a: Floats, b: Floats) -> float:
    """Return the scalar product, always summed in the same order."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptationPolicy(StsX):
    """STS-X with parameters that a network adapts. With weights of 0 it is STS-X.

    Args:
        spec: What it was trained for.
        weights: The network's weights, concatenated (`gpusched_agents.network.adaptation.flat_of`).
        hidden: Width of its hidden layer.
    """

    spec: AgentSpec
    weights: NDArray[np.float32]
    hidden: int
    jobs_over: ClassVar[int] = MOST_RECENT

    def check(self, instance: Instance) -> None:
        """Check that the agent can decide on this instance.

        Raises:
            InputError: It has more configurations or GPU types than it may be used with, or another kind of them.
        """
        self.spec.check(instance.configurations, instance.gpu_types)

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:  # noqa: ARG002 - in any cluster
        outputs, critical, deferrable, max_deferral = adapt(board, rate, self.weights, self.hidden)
        return Adaptation(outputs, critical, deferrable, False, max_deferral)


@kernel
def adapt(board: Board, rate: Floats, flat: Singles, width: int) -> tuple[Floats, Floats, Floats, float]:
    """Compute the fields of `Adaptation` for a round: of jobs, rates of critical and deferrable ones, deferral."""
    active, configs = board.count[at.ACTIVE], board.facts.configs.shape[0]
    jobs, whole, options = np.empty((active, len(JOBS))), np.empty(len(ROUND)), np.empty((configs, len(OPTIONS)))
    observe_round(board, rate, FREE_RATE, jobs, whole, options)
    outputs, prices = np.empty((active, CONTROLS)), np.empty((2, configs))
    max_deferral = forward(jobs, whole, options, flat, width, outputs, prices)
    return outputs, rate * np.exp(prices[CRITICAL]), rate * np.exp(prices[DEFERRABLE]), max_deferral
