"""Random Greedy: many randomised constructions of a round, of which the best is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.planning.epochs_left import Epochs, check_epochs
from gpusched_baselines.search.constructions import Constructions
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class RandomGreedy:
    """Random Greedy (RG): Greedy, then randomised constructions; keeps the best by the proxy cost of the round.

    A construction swaps neighbours in the order of pressure, and takes configurations and nodes by biased random rank:
    the best, or with a small probability the next best, and so on. Shares and whole nodes go to their best place.

    Args:
        constructions: Most constructions per round, ≥ 0; never more than nodes · jobs · most GPUs of a node.
        name: Name, as tables show it.
        epochs: The epochs that a job is taken to need, in the pressure, the choice of configurations and the proxy: all
            that are left ("worst-case"), or as many as are expected ("mean").

    Raises:
        InputError: `constructions` is not a whole number ≥ 0, or there is no such `epochs`.
    """

    constructions: int = 1000
    name: str = "random-greedy"
    preemption: bool = True
    epochs: Epochs = "worst-case"

    def __post_init__(self) -> None:
        checks.whole("constructions", self.constructions, 0)
        check_epochs(self.epochs)

    def decide(self, view: View, rng: Generator) -> None:
        """Place all active jobs anew."""
        Constructions.of(view, rng, self.constructions, epochs=self.epochs).restore_best(view)


def random_greedy_mean() -> RandomGreedy:
    """Make Random Greedy on expected execution times."""
    return RandomGreedy(name="random-greedy-mean", epochs="mean")
