"""Random Greedy: many randomised constructions of a round, of which the best is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.planning.cheapest import Epochs, check_epochs
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.solution import refuse_tenancy
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.model import Instance
    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class RandomGreedy:
    """Random Greedy (RG): Greedy, then randomised constructions; keeps the best by the proxy cost of the round.

    A construction swaps neighbours in the order of pressure, and gives each job one of the best configurations that
    fit, on one of the best nodes: one of the best twentieth, at least the best. So where less than 30 configurations or
    nodes are in question, it is the best. Shares and whole nodes go to their best place.

    With `fill` it is our own: the swaps favour heavier jobs; configurations and nodes are taken by biased random rank,
    the best, or with a small probability the next best, and so on; and idle GPUs go to jobs as in `Greedy(fill=True)`.

    Args:
        constructions: Most constructions per round, ≥ 0; never more than nodes · jobs · most GPUs of a node.
        name: Name, as tables show it; with `fill` by default "random-greedy-fill".
        epochs: The epochs that a job is taken to need, in the pressure, the choice of configurations and the proxy: all
            that are left ("worst-case"), as many as make up the mean need, and all that are left once that is passed
            ("mean", as published), or the mean given those done ("conditional-mean").
        fill: Whether constructions are ours; else they are as published.

    Raises:
        InputError: `constructions` is not a whole number ≥ 0, or there is no such `epochs`.
    """

    constructions: int = 1000
    name: str = "random-greedy"
    preemption: bool = True
    epochs: Epochs = "worst-case"
    fill: bool = False

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        check_epochs(self.epochs)
        if self.fill and self.name == "random-greedy":
            object.__setattr__(self, "name", "random-greedy-fill")

    def check(self, instance: Instance) -> None:
        """Refuse cells: constructions do not remember where they lie.

        Raises:
            InputError: The instance has cells.
        """
        refuse_tenancy(instance, "cells")

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        found = Constructions.of(view, rng, self.constructions, epochs=self.epochs, fill=self.fill)
        found.restore_best(view)


def random_greedy_mean() -> RandomGreedy:
    """Make Random Greedy on mean execution times, as published."""
    return RandomGreedy(name="random-greedy-mean", epochs="mean")


def random_greedy_conditional_mean() -> RandomGreedy:
    """Make Random Greedy on the execution times expected given the epochs done."""
    return RandomGreedy(name="random-greedy-conditional-mean", epochs="conditional-mean")
