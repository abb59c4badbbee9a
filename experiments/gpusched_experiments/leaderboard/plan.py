"""What the leaderboard runs: every policy on every track and seed, and a bound on each workload."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent, make_any_policy
from gpusched_agents.files.storage import PREFIX, shipped_agents
from gpusched_baselines.registry import POLICIES, policy_names
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import SUITE_VERSION, make_instance
from gpusched_experiments.leaderboard import tables
from gpusched_experiments.leaderboard.standings import BOUND_ROW, RUN_ROW
from gpusched_experiments.leaderboard.tables import ratio_chart
from gpusched_experiments.report.cell import BOUND, Cell
from gpusched_experiments.report.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from gpusched_env.workload import Track
    from gpusched_env.workload.scenario.scenario_file import Purpose
    from gpusched_experiments.report.experiment import Choice

QUICK_POLICIES = ("edf", "edf-conditional-mean", "greedy", "sts", "sts-x")
QUICK_SEEDS = 2
BOUND_POLICY = "edf"  # a cell has a policy; that of a bound decides nothing
QUESTION = (
    "Which policy costs least where, by how much, and how far is it from a bound that no policy undercuts? The tracks "
    "are those of suite {suite} ([tracks](../../tracks.md)), each on {seeds}. Ratios, savings and gaps are those of "
    "the total cost (energy and tardiness) over all seeds, paired by seed."
)


def default_policies() -> tuple[str, ...]:
    """List what runs if nothing is named: policies whose rounds do not take long, but ablations; and shipped agents."""
    policies = (name for name in policy_names() if POLICIES[name].compiled and not POLICIES[name].slow)
    return (*policies, *(f"{PREFIX}{name}" for name in shipped_agents()))


def misfits(tracks: Iterable[Track], policies: Iterable[str]) -> frozenset[tuple[str, str]]:
    """List the tracks and agents, by their names, where the agent cannot decide on the track's workloads."""
    agents = {name: make_any_policy(name) for name in policies if is_agent(name)}
    if not agents:
        return frozenset()
    first = {track.name: make_instance(track.scenario, track.seeds("test")[0]) for track in tracks}
    return frozenset(
        (track, name) for track, name in product(first, agents) if not can_decide(agents[name], first[track])
    )


def leaderboard(
    tracks: Sequence[Track],
    seeds: Purpose | tuple[int, ...] = "test",
    reference: str = "edf",
    left_out: Collection[tuple[str, str]] = frozenset(),
) -> Experiment:
    """Make the leaderboard of these tracks as an experiment.

    Args:
        tracks: The tracks, with different names.
        seeds: Which of their seeds to run, or the seeds.
        reference: Policy that savings are measured against; the first that runs, if it does not run.
        left_out: Track and policy, by name, where the policy does not run.
    """

    def cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
        each = ((track, seeds_of(track, seeds, quick=choice.quick)) for track in tracks)
        return tuple(cell for track, of in each for cell in _cells_of(track, of, policies, left_out))

    said = f"its {seeds} seeds" if isinstance(seeds, str) else f"seeds {', '.join(map(str, seeds))}"
    return Experiment(
        name="leaderboard",
        title="Leaderboard",
        question=QUESTION.format(suite=SUITE_VERSION, seeds=said),
        policies=default_policies(),
        labels=("track", "row"),
        cells=cells,
        summary=tables.overall_table,
        more={"tracks": tables.tracks_table, "knowing": tables.knowing_table},
        details=partial(tables.details_table, reference=reference),
        chart=ratio_chart,
        reported=(),
    )


def seeds_of(track: Track, seeds: Purpose | tuple[int, ...], *, quick: bool) -> tuple[int, ...]:
    """List the seeds of a track: these, or its own for a purpose, of which a quick look takes the first."""
    if not isinstance(seeds, str):
        return seeds
    return track.seeds(seeds)[: QUICK_SEEDS if quick else None]


def _cells_of(
    track: Track, seeds: tuple[int, ...], policies: tuple[str, ...], left_out: Collection[tuple[str, str]]
) -> Iterator[Cell]:
    """List the cells of a track: the bound of every seed, then the runs of every policy."""
    for seed in seeds:
        yield Cell((("track", track.name), ("row", BOUND_ROW)), track.scenario, BOUND_POLICY, seed, measure=BOUND)
    for policy, seed in product(policies, seeds):
        if (track.name, policy) not in left_out:
            yield Cell((("track", track.name), ("row", RUN_ROW)), track.scenario, policy, seed)
