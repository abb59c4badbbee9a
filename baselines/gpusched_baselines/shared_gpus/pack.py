"""Packing by compatibility, as Lucid does: two jobs on a GPU if their applications slow each other little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.shared_gpus.pack_round import PackRule, plan_pack
from gpusched_baselines.shared_gpus.planned_round import carry_out, is_planned, planned_choice
from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel
from gpusched_env.model import checks
from gpusched_env.simulator.ordering import ask_order

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class Pack:
    """Packing by labels. Running jobs keep what they have; shortest expected GPU-seconds first.

    An application has the label 0, 1 or 2 by its mean speed beside all applications, both jobs of a pair counted: from
    `light`, from `medium`, below. Speeds are those of the instance's duties or pairs. A job takes the cheapest whole
    GPUs that meet its due date; in place of a single one the largest share of which two fit, on an idle GPU, else
    beside one other job whose label and its own sum to `most` at most, where it is fastest. A job to which no whole
    GPUs are open takes the cheapest share that meets its due date, on such a GPU.

    Args:
        light: Speed from which the label is 0, from `medium` to 1.
        medium: Speed from which it is 1, ≥ 0.
        most: Greatest sum of two labels on a GPU, ≥ 0.

    Raises:
        InputError: One of them is out of its range.
    """

    light: float = 0.95
    medium: float = 0.85
    most: int = 2
    name: str = "pack"
    job_order: str = "submission"
    preemption: bool = False

    def __post_init__(self) -> None:
        if not checks.not_negative("medium", self.medium) <= checks.not_negative("light", self.light) <= 1.0:
            raise InputError("light", self.light, f"a number from medium ({self.medium}) to 1")
        checks.whole("most", self.most, 0)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rules draw nothing
        """Place the jobs that wait."""
        _decide(view.board, ask_order(view, self.job_order, waiting_only=True), self._rule)

    def choose(self, view: View, job: int) -> Choice:
        """Give what the plan of the round, made when it asks its first job, says of a job."""
        if not is_planned(view, job):
            plan_pack(view.board, self._rule)
        return planned_choice(view, job)

    @property
    def _rule(self) -> PackRule:
        return PackRule(float(self.light), float(self.medium), int(self.most))


@kernel
def _decide(board: Board, order: Ints, rule: PackRule) -> None:
    plan_pack(board, rule)
    carry_out(board, order)
