"""One power limit for each application and GPU type, as Zeus chooses it, under a dispatch rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, edf_preemptive
from gpusched_env.errors import InputError
from gpusched_env.simulator.kernels import Board, Choice, Floats, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator


@kernel
def close_other_limits(board: Board, energy: float, tau: Floats) -> None:
    """Write inf where a job may use the same GPUs at a power limit with a smaller cost (see `ZeusLimit`).

    Args:
        energy: η, the weight of energy, from 0 to 1.
        tau: A copy of its seconds per epoch, (J, C); rows of active jobs are written.
    """
    configs, facts, best = board.facts.configs, board.facts, np.empty(board.tau.shape[1])
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        own = int(board.jobs[job, at.APPLICATION])
        best[:] = np.inf
        for turn in range(2):
            for c in range(tau.shape[1]):
                if board.tau[job, c] == np.inf:
                    continue
                most = _busy_kilowatts(board, c)
                cost = board.tau[job, c] * (most - energy * facts.saved_kw[own, c])
                group = configs[c, at.CONFIG_UNLIMITED]
                if turn == 0:
                    best[group] = min(best[group], cost)
                elif cost > best[group]:
                    tau[job, c] = np.inf


@kernel
def _busy_kilowatts(board: Board, config: int) -> float:
    """Return what the GPUs of a configuration draw at most [kW]: each what one more adds to a node of its type."""
    configs = board.facts.configs
    watts = board.facts.kilowatts[configs[config, at.CONFIG_TYPE]]
    most = max(1, board.capacity[configs[config, at.CONFIG_TYPE], at.LARGEST])
    each = watts[1] if most == 1 else (watts[most] - watts[1]) / (most - 1)
    return each * configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES]


@dataclass(frozen=True, slots=True)
class ZeusLimit:
    """The power limit with the least cost for each application and GPU type, as Zeus (You et al., NSDI 2023).

    Of all limits on the same GPUs a job uses the one with the least η · energy + (1 - η) · largest power · time of an
    epoch, both of the GPUs alone, without their node. It is the same in every round. Everything else is the inner
    rule's. Zeus measures this cost in a first epoch, and chooses batches too; here it is known.

    Args:
        inner: The rule.
        eta: η, the weight of energy, from 0 to 1: with 1 the least energy of the GPUs.
        name: Name, as tables show it.

    Raises:
        InputError: `eta` is out of its range.
    """

    inner: DispatchPolicy = field(default_factory=edf_preemptive)
    eta: float = 1.0
    name: str = "zeus-limit"

    def __post_init__(self) -> None:
        if not 0.0 <= self.eta <= 1.0:
            raise InputError("eta", self.eta, "a number from 0 to 1")

    @property
    def preemption(self) -> bool:
        """Return whether a round begins from an empty cluster."""
        return self.inner.preemption

    @property
    def job_order(self) -> str:
        """Return the order in which the inner rule asks."""
        return str(self.inner.job_order)

    def decide(self, view: View, rng: Generator) -> None:
        """Place the jobs as the inner rule does, each at its limit."""
        self.inner.decide(self._limited(view), rng)

    def choose(self, view: View, job: int) -> Choice:
        """Choose as the inner rule does, at the job's limit."""
        return self.inner.choose(self._limited(view), job)

    def _limited(self, view: View) -> View:
        board = view.board
        if not board.has_saved_power or not board.facts.saved_kw.size:
            return view
        tau = board.tau.copy()
        close_other_limits(board, self.eta, tau)
        return View(board.replaced(tau=tau), view.configurations)
