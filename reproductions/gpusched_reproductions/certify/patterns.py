"""Patterns: everything that the jobs of a small cluster can hold at one time, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, Instance
from gpusched_env.model.rates import cost_rate_eur_per_h

Held: TypeAlias = tuple[int, ...]
"""The configuration of every job, -1 for none."""

NodeUse: TypeAlias = tuple[int, tuple[float, ...]]
"""GPUs of a node that are held whole, and the shares taken of every GPU of it that is shared."""

MOST = 200_000
WHOLE = 1.0 + 1e-9  # shares of one GPU may add up to this


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """All patterns of an instance's jobs, each placed where it costs least.

    Attributes:
        held: The configuration of every job, -1 for none, (P, J).
        rate_eur_per_s: Energy cost rate of all nodes [€/s], (P,).
        speed: Epochs per second of every job, 0 for one that holds nothing, (P, J).
    """

    held: NDArray[np.int64]
    rate_eur_per_s: NDArray[np.float64]
    speed: NDArray[np.float64]

    @classmethod
    def of(cls, instance: Instance) -> Patterns:
        cheapest = _cheapest_rates(instance)
        held = np.array(list(cheapest), dtype=np.int64)
        seconds = instance.jobs.seconds_per_epoch[np.arange(held.shape[1])[None, :], np.maximum(held, 0)]
        return cls(held, np.array(list(cheapest.values())), np.where(held >= 0, 1.0 / seconds, 0.0))

    def undominated(self) -> Patterns:
        """Leave out patterns that cost no less than another one of the same jobs in which each is at least as fast.

        Of the same jobs, no more: a job that holds something only because it costs nothing would be at work when it
        is done, and count as late.
        """
        order = np.lexsort((-self.speed.sum(axis=1), self.rate_eur_per_s))
        kept: dict[bytes, list[int]] = {}
        for p in order.tolist():
            alike = kept.setdefault((self.held[p] >= 0).tobytes(), [])
            if not alike or not np.any(np.all(self.speed[alike] >= self.speed[p], axis=1)):
                alike.append(p)
        left = sorted(p for alike in kept.values() for p in alike)
        return Patterns(self.held[left], self.rate_eur_per_s[left], self.speed[left])

    def rates(self) -> dict[Held, float]:
        return {tuple(row): float(rate) for row, rate in zip(self.held.tolist(), self.rate_eur_per_s, strict=True)}


def _cheapest_rates(instance: Instance) -> dict[Held, float]:
    """Place the jobs one after the other in every way; of ways that leave nodes alike only one goes on."""
    kinds = [(node.gpu_type, node.gpus) for node in instance.nodes]
    rates = cost_rate_eur_per_h(instance) / 3600.0
    empty: tuple[NodeUse, ...] = tuple((0, ()) for _ in kinds)
    ways: set[tuple[Held, tuple[NodeUse, ...]]] = {((), empty)}
    for job in range(len(instance.jobs)):
        allowed = np.flatnonzero(np.isfinite(instance.jobs.seconds_per_epoch[job])).tolist()
        longer = {((*held, -1), uses) for held, uses in ways}
        for held, uses in ways:
            for c in allowed:
                longer.update(((*held, c), after) for after in _placed(kinds, uses, instance.configurations[c]))
            if len(longer) > MOST:
                raise InputError("jobs", len(instance.jobs), f"so few that they have at most {MOST:,} patterns")
        ways = longer
    cheapest: dict[Held, float] = {}
    for held, uses in sorted(ways):
        rate = sum(
            rates[v, whole + len(shared)] for v, (whole, shared) in zip(instance.type_of_node, uses, strict=True)
        )
        cheapest[held] = min(cheapest.get(held, np.inf), float(rate))
    return cheapest


def _placed(
    kinds: list[tuple[str, int]], uses: tuple[NodeUse, ...], configuration: Configuration
) -> Iterator[tuple[NodeUse, ...]]:
    """Place one more job in every way; nodes that are alike are interchangeable."""
    own = [n for n, (gpu_type, _) in enumerate(kinds) if gpu_type == configuration.gpu_type]
    if configuration.nodes > 1:
        free = [n for n in own if uses[n] == (0, ()) and kinds[n][1] == configuration.gpus_per_node]
        if len(free) >= configuration.nodes:
            whole = (configuration.gpus_per_node, ())
            yield _ordered(kinds, uses, dict.fromkeys(free[: configuration.nodes], whole))
        return
    for n in own:
        taken, shared = uses[n]
        if taken + len(shared) + configuration.gpus_per_node <= kinds[n][1]:
            if configuration.share < 1.0:
                yield _ordered(kinds, uses, {n: (taken, tuple(sorted((*shared, configuration.share))))})
            else:
                yield _ordered(kinds, uses, {n: (taken + configuration.gpus_per_node, shared)})
        if configuration.share < 1.0:
            for i, load in enumerate(shared):
                if load + configuration.share <= WHOLE:
                    fuller = (*shared[:i], load + configuration.share, *shared[i + 1 :])
                    yield _ordered(kinds, uses, {n: (taken, tuple(sorted(fuller)))})


def _ordered(
    kinds: list[tuple[str, int]], uses: tuple[NodeUse, ...], changed: dict[int, NodeUse]
) -> tuple[NodeUse, ...]:
    after = [changed.get(n, use) for n, use in enumerate(uses)]
    for kind in set(kinds):
        members = [n for n, other in enumerate(kinds) if other == kind]
        for n, use in zip(members, sorted(after[n] for n in members), strict=True):
            after[n] = use
    return tuple(after)
