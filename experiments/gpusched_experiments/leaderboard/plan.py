"""What the leaderboard runs: every policy on every track and seed, and a bound on each workload."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent, make_any_policy
from gpusched_agents.files.storage import PREFIX, shipped_agents
from gpusched_baselines.hindsight import hindsight_cost
from gpusched_baselines.registry import POLICIES, policy_names
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import SUITE_VERSION, Track, make_instance
from gpusched_env.workload.mixture import variants_of
from gpusched_experiments.leaderboard.standings import (
    BOUND_ROW,
    COST,
    HINDSIGHT_ROW,
    RUN_ROW,
    Overall,
    Standing,
    TrackResult,
    overall,
    track_results,
)
from gpusched_experiments.report.cell import BOUND, Cell, Measure, cost_alone
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.columns import reference_of
from gpusched_experiments.report.estimate import Estimate, mean, saving, share
from gpusched_experiments.report.experiment import Experiment, Selection
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, PLAIN, RATIO, SHARE, Column, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gpusched_env.workload.scenario.scenario_file import Purpose
    from gpusched_experiments.report.run import Runs

ALPHA = 0.05
"""Level of the tests of who is best."""
MUCH = 0.1
"""A gap, or a saving, that the suite is meant to have on several tracks."""


def overall_table(runs: Runs) -> Table:
    """Rank the policies over all tracks."""
    columns: tuple[Column[Overall], ...] = (
        Column("policy", "policy", lambda each: each.policy),
        Column("tracks", "tracks", lambda each: len(each.standings), COUNT),
        Column("first", "first on", lambda each: sum(s.rank == 1 for s in each.standings), COUNT),
        Column("mean_rank", "mean rank", lambda each: each.mean_rank, RATIO),
        Column("mean_ratio", "cost / best", lambda each: each.to_best, RATIO, interval=True),
        Column("worst_ratio", "at worst", lambda each: each.worst.to_best.value, RATIO),
        Column("worst_track", "worst track", lambda each: each.worst.track),
    )
    notes: tuple[str, ...] = (
        "Cost / best: geometric mean over tracks of the cost over that of the track's best policy in this table.",
    )
    policies = overall(track_results(runs))
    few = [each for each in policies if each.mean_rank is None]
    if few:
        seeds = min(len(standing.group.own) for each in few for standing in each.standings)
        names = ", ".join(each.policy for each in few)
        notes += (f"Without ranks: {names}, slow, on {seeds} of the seeds of a track, beside its best there.",)
    return Table.of("All tracks", columns, policies, notes)


def tracks_table(runs: Runs) -> Table:
    """Return for every track who is best, what it costs, and how far it is from the bound."""
    results = track_results(runs)
    columns: tuple[Column[TrackResult], ...] = (
        Column("track", "track", lambda each: each.name),
        Column("seeds", "seeds", lambda each: len(each.best.group.own), COUNT),
        Column("best_eur", "best known €", lambda each: each.best.cost, MONEY),
        Column("best_policy", "held by", lambda each: each.best.policy),
        Column("second_policy", "next", lambda each: each.standings[1].policy if len(each.standings) > 1 else None),
        Column("second_ratio", "next / best", _second, RATIO, interval=True),
        Column("p_value", "p", lambda each: each.p_value, "{:.3f}".format),
        Column("bound_eur", "bound €", lambda each: mean(each.bound, COST).value, MONEY),
        Column("gap", "best above bound", lambda each: each.gap, PERCENT, interval=True),
    )
    searched = max(len(each.hindsight) for each in results)
    if searched:
        columns += (Column("left", "above hindsight", lambda each: each.left, PERCENT, interval=True),)
    wide = sum(each.gap.value >= MUCH for each in results)
    sure = Counter(each.best.policy for each in results if each.p_value <= ALPHA)
    surely = ", ".join(f"{policy} on {count}" for policy, count in sure.most_common()) or "none"
    notes: tuple[str, ...] = (
        "Best known: the least mean cost in this table. Bound: the largest of all that apply.",
        (
            "p: that another policy costs the same as the best (two-sided permutation test, paired by seed; the "
            f"largest over the others; Holm's correction for {len(results)} tracks). At most {ALPHA:g}: {surely}."
        ),
        f"The best is {MUCH:.0%} or more above the bound on {wide} of {len(results)} tracks.",
    )
    if searched:
        said = f"over the best schedule known of the first {searched} seeds: of a search that knows every need, or of a"
        notes += (f"Above hindsight: the best policy {said} policy here. The optimum lies between the bound and it.",)
    return Table.of("Best known cost and bound", columns, results, notes)


def _second(result: TrackResult) -> Estimate | None:
    return result.standings[1].to_best if len(result.standings) > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A policy that knows the distribution, and its twin that assumes the worst case, on a track."""

    informed: Standing
    worst: Standing

    @property
    def saving(self) -> Estimate:
        return saving(self.informed.group.own, self.worst.group.own, COST)


def knowing_table(runs: Runs) -> Table:
    """Return what knowing the distribution saves, for every policy with a twin that assumes the worst case."""
    results, pairs = track_results(runs), []
    for result in results:
        by_name = {standing.policy: standing for standing in (*result.standings, *result.few)}
        twins = ((name, POLICIES[name].worst_case if name in POLICIES else None) for name in by_name)
        pairs += [_Pair(by_name[name], by_name[twin]) for name, twin in sorted(twins) if twin in by_name]
    columns: tuple[Column[_Pair], ...] = (
        Column("track", "track", lambda pair: pair.informed.track),
        Column("informed", "knows the distribution", lambda pair: pair.informed.policy),
        Column("worst_case", "assumes the worst case", lambda pair: pair.worst.policy),
        Column("informed_eur", "€", lambda pair: pair.informed.cost, MONEY),
        Column("worst_case_eur", "€", lambda pair: pair.worst.cost, MONEY),
        Column("saving", "saved by knowing", lambda pair: pair.saving, PERCENT, interval=True),
    )
    return Table.of("What knowing the distribution is worth", columns, pairs, _much_is_saved(pairs, len(results)))


def _much_is_saved(pairs: Sequence[_Pair], tracks: int) -> tuple[str, ...]:
    surely = Counter(pair.informed.policy for pair in pairs if (pair.saving.interval or (-1.0, 0.0))[0] >= MUCH)
    counts = ", ".join(f"{policy} on {count}" for policy, count in surely.most_common())
    said = f"Surely {MUCH:.0%} or more (the interval's lower end) is saved by {counts} of {tracks} tracks."
    return (said,) if surely else ()


def details_table(runs: Runs, reference: str) -> Table:
    """Return for every policy on every track what it cost."""
    against = reference_of(runs.where(None, row=RUN_ROW), reference)

    def saved(standing: Standing) -> Estimate | None:
        same = standing.policy == against
        return None if same else saving(standing.group.own, standing.group.beside(against), COST)

    columns: tuple[Column[Standing], ...] = (
        Column("track", "track", lambda each: each.track),
        Column("rank", "rank", lambda each: each.rank, PLAIN),
        Column("policy", "policy", lambda each: each.policy),
        Column("seeds", "seeds", lambda each: len(each.group.own), COUNT),
        _mean_of("energy_eur", "energy €"),
        _mean_of("tardiness_eur", "tardiness €"),
        _mean_of(COST, "total €"),
        Column("late_share", "late jobs", lambda each: share(each.group.own, "late_jobs", "jobs").value, SHARE),
        Column("to_best", "total / best", lambda each: each.to_best, RATIO, interval=True),
        Column("saving", f"total saved against {against}", saved, PERCENT, interval=True),
    )
    standings = [standing for result in track_results(runs) for standing in (*result.standings, *result.few)]
    return Table.of("Every track and policy", columns, standings)


def _mean_of(name: str, title: str) -> Column[Standing]:
    return Column(name, title, lambda each: mean(each.group.own, name).value, MONEY)


CELL_INCHES = (0.62, 0.3)
MARGIN_INCHES = (1.7, 1.1)  # for the names


def ratio_chart(runs: Runs) -> Chart:
    results = track_results(runs)
    tracks = [result.name for result in results]
    rows = tuple(series(each.policy, ((s.track, s.to_best) for s in each.standings)) for each in overall(results))
    panel = Panel("", "track", "policy", rows, kind="map", categories=tuple(tracks))
    width, height = (
        cell * count + capacity
        for cell, count, capacity in zip(CELL_INCHES, (len(tracks), len(rows)), MARGIN_INCHES, strict=True)
    )
    return Chart("Total cost over that of the track's best policy", ((panel,),), (width, height))


QUICK_POLICIES = ("edf", "edf:conditional-mean", "greedy", "sts", "sts-x")
QUICK_SEEDS = 2
BOUND_POLICY = "edf"  # a cell has a policy; that of a bound decides nothing
SEARCHED = 5  # seeds of a track with a schedule in hindsight, at most
FEW = 1  # seeds of a track on which slow policies run: rollout takes minutes
MOST_JOBS = 1000  # of tracks with schedules in hindsight
MOST_JOBS_OF_SLOW = 300  # of tracks on which slow policies run
QUESTION = (
    "Which policy costs least where, by how much, and how far is it from a bound that no policy undercuts? The tracks "
    "are those of suite {suite} ([tracks](../../tracks.md)), each on {seeds}. Ratios, savings and gaps are those of "
    "the total cost (energy and tardiness) over all seeds, paired by seed."
)


def default_policies() -> tuple[str, ...]:
    """List what runs if nothing is named: policies whose rounds do not take long, but ablations; and shipped agents."""
    policies = (name for name in policy_names() if is_usual(name))
    return (*policies, *(f"{PREFIX}{name}" for name in shipped_agents()))


def is_usual(policy: str) -> bool:
    return policy not in POLICIES or (POLICIES[policy].compiled and not POLICIES[policy].slow)


def misfits(tracks: Iterable[Track], policies: Iterable[str]) -> frozenset[tuple[str, str]]:
    """List the tracks and agents, by their names, where the agent cannot decide on the track's workloads."""
    agents = {name: make_any_policy(name) for name in policies if is_agent(name)}
    if not agents:
        return frozenset()
    each = {track.name: [make_instance(v, 0) for v in variants_of(track.scenario)] for track in tracks}
    return frozenset(
        (track, name)
        for track, name in product(each, agents)
        if not all(can_decide(agents[name], instance) for instance in each[track])
    )


def leaderboard(
    tracks: Sequence[Track],
    seeds: Purpose | tuple[int, ...] = "test",
    reference: str = "edf",
    left_out: Collection[tuple[str, str]] = frozenset(),
    evaluations: int = 0,
) -> Experiment:
    """Make the leaderboard of these tracks as an experiment.

    Args:
        tracks: The tracks, with different names.
        seeds: Which of their seeds to run, or the seeds.
        reference: Policy that savings are measured against; the first that runs, if it does not run.
        left_out: Track and policy, by name, where the policy does not run.
        evaluations: Runs of the search for a schedule in hindsight, on the first seeds of every track; 0: no search.
    """

    def cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
        each = ((track, seeds_of(track, seeds, quick=choice.quick)) for track in tracks)
        return tuple(cell for track, of in each for cell in _cells_of(track, of, policies, left_out, evaluations))

    said = f"its {seeds} seeds" if isinstance(seeds, str) else f"seeds {', '.join(map(str, seeds))}"
    return Experiment(
        name="leaderboard",
        title="Leaderboard",
        question=QUESTION.format(suite=SUITE_VERSION, seeds=said),
        policies=default_policies(),
        labels=("track", "row"),
        cells=cells,
        summary=overall_table,
        more={"tracks": tracks_table, "knowing": knowing_table},
        details=partial(details_table, reference=reference),
        chart=ratio_chart,
        reported=(),
    )


def seeds_of(track: Track, seeds: Purpose | tuple[int, ...], *, quick: bool) -> tuple[int, ...]:
    if not isinstance(seeds, str):
        return seeds
    return track.seeds(seeds)[: QUICK_SEEDS if quick else None]


def hindsight_of(evaluations: int) -> Measure:
    return Measure(f"hindsight {evaluations}", partial(cost_alone, partial(hindsight_cost, evaluations=evaluations)))


def _cells_of(
    track: Track,
    seeds: tuple[int, ...],
    policies: tuple[str, ...],
    left_out: Collection[tuple[str, str]],
    evaluations: int,
) -> Iterator[Cell]:
    alone, jobs = [(BOUND_ROW, seed, BOUND) for seed in seeds], track.scenario.jobs.count
    if evaluations and jobs <= MOST_JOBS:
        alone += [(HINDSIGHT_ROW, seed, hindsight_of(evaluations)) for seed in seeds[:SEARCHED]]
    for row, seed, measure in alone:
        yield Cell((("track", track.name), ("row", row)), track.scenario, BOUND_POLICY, seed, measure=measure)
    for policy, seed in product(policies, seeds):
        runs = is_usual(policy) or (jobs <= MOST_JOBS_OF_SLOW and seed in seeds[:FEW])
        if runs and (track.name, policy) not in left_out:
            yield Cell((("track", track.name), ("row", RUN_ROW)), track.scenario, policy, seed)
