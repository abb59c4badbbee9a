"""The policies that decide in roll-outs, and plan what is varied: STS-X and index rules."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gpusched_baselines.index_rules.ranks import EXPECTED, Rule
from gpusched_baselines.index_rules.round import choose_job
from gpusched_baselines.index_rules.round import plan_round as plan_by_index
from gpusched_baselines.sts_x import memory as of
from gpusched_baselines.sts_x.appraisal import Parts
from gpusched_baselines.sts_x.round import plan_round
from gpusched_baselines.sts_x.steering import unsteered
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board


class Base(NamedTuple):
    """A policy that plans whole rounds.

    Attributes:
        by_index: Whether it is an index rule; else it is STS-X.
        parts: The parts of STS-X that are in use.
        rule: The index rule.
    """

    by_index: bool
    parts: Parts
    rule: Rule


STS_X = Base(
    by_index=False,
    parts=Parts(waits=True, consolidates=True, spreads=True, guarantees=False, priced=True, by_value=True, stays=True),
    rule=Rule(EXPECTED, 0.25, 0.5, 0.1),
)

BASES: Mapping[str, Base] = MappingProxyType({"sts-x": STS_X, "atc": STS_X._replace(by_index=True)})
"""The policies that roll-outs may follow, by name."""


@kernel
def plan_by(board: Board, rate: Floats, base: Base) -> None:
    """Plan the round by a policy; write what every job shall get to its memory, in the columns of STS-X.

    Args:
        board: The board with the times to plan with.
        rate: Cost rates to plan with [€/s], (C,).
        base: The policy.
    """
    if not base.by_index:
        plan_round(board, base.parts, unsteered(board.count[at.ACTIVE], rate))
        return
    plan_by_index(board, base.rule)
    for i in range(board.count[at.ACTIVE]):
        write_choice(board, base.rule, board.active[i])


@kernel
def write_choice(board: Board, rule: Rule, job: int) -> None:
    """Write what an index rule has chosen for a job to its memory, in the columns of STS-X; the place is open."""
    config, wake = choose_job(board, rule, job)
    board.memory[job, of.PLANNED], board.memory[job, of.WAKE] = config, wake
    board.memory[job, of.NODE], board.memory[job, of.GPU] = -1.0, -1.0
