"""What a user chose to run of an experiment, and the sizes and seeds that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.model import checks
from gpusched_experiments.report.lists import each_once
from gpusched_experiments.report.runner import is_slow

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of `gpusched reproduce`; what is None was left to the experiment.

    Args:
        quick: Few seeds and small clusters: to see that everything works, not to cite.
        seeds: Seeds of every policy and size, each once, ≥ 0.
        nodes: Numbers of nodes, each once, ≥ 1.
        policies: Names of the policies, each once.

    Raises:
        InputError: A value is out of its range, or stands twice.
    """

    quick: bool = False
    seeds: tuple[int, ...] | None = None
    nodes: tuple[int, ...] | None = None
    policies: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for seed in self.seeds or ():
            checks.seed(seed, "seeds")
        for count in self.nodes or ():
            checks.whole("nodes", count)
        for name in ("seeds", "nodes", "policies"):
            values = getattr(self, name)
            if values is not None:
                each_once(name, values)


@dataclass(frozen=True, slots=True)
class Size:
    """A number of nodes, and the seeds that run on it.

    Attributes:
        nodes: Number of nodes.
        seeds: How many seeds.
        slow_seeds: How many of them for slow policies; with 0 those run only if the number of nodes is asked for, on
            one seed.
    """

    nodes: int
    seeds: int
    slow_seeds: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of an experiment, in rising order, and who runs on which seeds.

    Args:
        full: Sizes of the full set, in rising order.
        quick: Sizes of the quick one, in rising order.
        first_seed: The first seed of every policy and size.
    """

    full: tuple[Size, ...]
    quick: tuple[Size, ...]
    first_seed: int = 0

    def nodes(self, choice: Choice) -> tuple[int, ...]:
        """List the numbers of nodes that were chosen."""
        return choice.nodes or tuple(size.nodes for size in self._of(choice))

    def seeds(self, choice: Choice, nodes: int, policy: str) -> tuple[int, ...]:
        """List the seeds of a policy on so many nodes; a number that is not listed goes as the next larger one."""
        if choice.seeds is not None:
            return choice.seeds
        known = self._of(choice)
        size = next((size for size in known if size.nodes >= nodes), known[-1])
        least = 1 if choice.nodes is not None else 0
        count = max(least, size.slow_seeds) if is_slow(policy) else size.seeds
        return tuple(range(self.first_seed, self.first_seed + count))

    def _of(self, choice: Choice) -> tuple[Size, ...]:
        return self.quick if choice.quick else self.full


def available(wanted: Sequence[str], registered: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the policies that an experiment wants into those that are registered and those that are not."""
    return tuple(name for name in wanted if name in registered), tuple(n for n in wanted if n not in registered)
