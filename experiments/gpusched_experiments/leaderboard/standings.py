"""Who stands where: cost relative to the best of a track, ranks, and the bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, bootstrap, difference_p, holm, mean, pooled
from gpusched_experiments.report.run import Group, Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_ROW, BOUND_ROW, HINDSIGHT_ROW = "run", "bound", "hindsight"
"""What a cell holds, by its label `row`: what a policy cost, the bound, or what a schedule found in hindsight costs."""
COST = "total_eur"


@dataclass(frozen=True, eq=False)
class Standing:
    """One policy on one track.

    Attributes:
        track: The track.
        group: Its runs.
        rank: 1 for the policy with the least mean cost; equal ones share the better rank. None for a policy that ran on
            the first seeds only.
        best: The runs of the best policy of the track.
    """

    track: str
    group: Group
    rank: int | None
    best: Group

    @cached_property
    def to_best(self) -> Estimate:
        return ratio(self.group.own, self.best.own)

    @property
    def policy(self) -> str:
        return self.group.policy

    @property
    def cost(self) -> float:
        return mean(self.group.own, COST).value


@dataclass(frozen=True, slots=True, eq=False)
class TrackResult:
    """All policies on one track.

    Attributes:
        name: The track.
        standings: One for each policy with a rank, the best first.
        few: Those of policies that ran on the first seeds only.
        bound: What no policy undercuts, by seed.
        hindsight: Cost of the best schedule known, found in hindsight or by a policy, for the seeds that were searched
            [€]; empty if none was.
        p_value: Of the hypothesis that another policy costs the same as the best one, corrected for the number of
            tracks.
    """

    name: str
    standings: tuple[Standing, ...]
    bound: Runs
    hindsight: Mapping[int, float]
    p_value: float = 1.0
    few: tuple[Standing, ...] = ()

    @property
    def best(self) -> Standing:
        return self.standings[0]

    @property
    def gap(self) -> Estimate:
        return ratio(self.best.group.own, self.bound).as_saving().as_extra()

    @property
    def left(self) -> Estimate | None:
        """Share by which it lies above the best schedule known, over the seeds that were searched; None without."""
        if not self.hindsight:
            return None
        return pooled([(self.best.group.own.by_seed(COST), self.hindsight)]).as_saving().as_extra()


@dataclass(frozen=True, slots=True, eq=False)
class Overall:
    """One policy on all tracks that it ran on."""

    policy: str
    standings: tuple[Standing, ...]

    @property
    def mean_rank(self) -> float | None:
        ranks = [s.rank for s in self.standings if s.rank is not None]
        return sum(ranks) / len(ranks) if ranks else None

    @property
    def mean_ratio(self) -> float:
        """Geometric mean over tracks of its cost over the best one."""
        return math.exp(sum(math.log(s.to_best.value) for s in self.standings) / len(self.standings))

    @property
    def to_best(self) -> Estimate:
        """The same with its interval: a seed that is drawn brings the runs of all tracks.

        The best policy of a track is that of all its seeds in every draw. Tracks with too few seeds for an interval
        have the same ratio in every draw.
        """
        pairs = [(s.group.own.by_seed(COST), s.best.own.by_seed(COST)) for s in self.standings]
        pairs = [pair for pair in pairs if min(map(len, pair)) >= LEAST_SEEDS]
        if not pairs:
            return Estimate(self.mean_ratio, None, min(s.to_best.seeds for s in self.standings))
        fixed = [math.log(s.to_best.value) for s in self.standings if s.to_best.seeds < LEAST_SEEDS]
        seeds = sorted(set[int].intersection(*(set(own) & set(best) for own, best in pairs)))
        own, best = (np.array([[pair[i][seed] for seed in seeds] for pair in pairs]) for i in range(2))

        def drawn(draws: NDArray[np.int64]) -> NDArray[np.float64]:
            ratios: NDArray[np.float64] = own[:, draws].sum(axis=-1) / best[:, draws].sum(axis=-1)
            return np.exp((np.log(ratios).sum(axis=0) + sum(fixed)) / len(self.standings))

        return Estimate(self.mean_ratio, bootstrap(len(seeds), drawn), len(seeds))

    @property
    def worst(self) -> Standing:
        return max(self.standings, key=lambda s: s.to_best.value)


def ratio(runs: Runs, others: Runs) -> Estimate:
    """Estimate Σ cost / Σ cost of others over the seeds that both have, paired by seed."""
    return pooled([(runs.by_seed(COST), others.by_seed(COST))])


def track_results(runs: Runs) -> tuple[TrackResult, ...]:
    """Return what came out on every track, in the order of the runs."""
    found = []
    for track in map(str, runs.labels("track")):
        there = runs.where(track=track)
        ran = list(there.where(row=RUN_ROW).groups("track"))
        most = max(len(group.own) for group in ran)
        groups = sorted((g for g in ran if len(g.own) == most), key=lambda g: mean(g.own, COST).value)
        few = tuple(Standing(track, group, None, groups[0]) for group in ran if len(group.own) < most)
        costs = [mean(group.own, COST).value for group in groups]
        standings = tuple(
            Standing(track, group, 1 + costs.index(cost), groups[0]) for group, cost in zip(groups, costs, strict=True)
        )
        others = [difference_p(groups[0].own, group.own, COST) for group in groups[1:]]
        searched = there.where(row=HINDSIGHT_ROW).by_seed(COST)
        by_policy = [group.own.by_seed(COST) for group in groups]
        known = {s: min(cost, *(by[s] for by in by_policy if s in by)) for s, cost in searched.items()}
        bound = there.where(row=BOUND_ROW)
        found.append(TrackResult(track, standings, bound, known, max(others, default=1.0), few))
    p_values = holm([result.p_value for result in found])
    return tuple(replace(result, p_value=p) for result, p in zip(found, p_values, strict=True))


def overall(results: tuple[TrackResult, ...]) -> tuple[Overall, ...]:
    """Rank the policies over all tracks: those that ran on most first, then by their mean ratio to the best.

    Policies without ranks come last.
    """
    by_policy: dict[str, list[Standing]] = {}
    for result in results:
        for standing in (*result.standings, *result.few):
            by_policy.setdefault(standing.policy, []).append(standing)
    ranked = [Overall(policy, tuple(standings)) for policy, standings in by_policy.items()]
    return tuple(sorted(ranked, key=lambda each: (each.mean_rank is None, -len(each.standings), each.mean_ratio)))
