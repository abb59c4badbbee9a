"""`value-of-information`: what it is worth on every track to know the distribution, to plan, and to preempt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import product

from gpusched_baselines.registry import ablation_names
from gpusched_env.workload import SUITE_VERSION, Track, list_tracks, load_track
from gpusched_experiments.leaderboard.plan import MOST_JOBS
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.cell import Cell, Change
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate, saving
from gpusched_experiments.report.experiment import Experiment, Selection
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.table import COUNT, PERCENT, Column, Table
from gpusched_reproductions.published.changes import Misspecified

LABELS = ("track", "distribution")
TRUTH, WORST_CASE = "the truth", "the worst case"
SUBJECT = "sts-x"
COST = "total_eur"
ALL = "all tracks"
QUICK_SEEDS = 2
QUICK_TRACKS = ("published-1", "few-jobs", "whole-nodes")
CELL_INCHES = (0.58, 0.32)
MARGIN_INCHES = (2.0, 1.1)  # for the names
DOTS_INCHES, ROW_INCHES = 7.6, 0.34
MEAN_NOTE = "All tracks: 1 less the geometric mean of the ratios of cost, over tracks."


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two runs, alike but for one thing or as near to that as there is: what the one saves against the other.

    Attributes:
        policy: The policy that saves; it knows the distributions.
        against: The policy that it is compared with.
        informed: What the latter assumes of the distributions.
    """

    policy: str
    against: str
    informed: str = TRUTH

    @property
    def name(self) -> str:
        return f"{self.policy} against {self.against if self.informed == TRUTH else f'itself assuming {self.informed}'}"

    def sides(self, runs: Runs) -> tuple[Runs, Runs]:
        return runs.where(self.policy, distribution=TRUTH), runs.where(self.against, distribution=self.informed)

    def saved(self, runs: Runs) -> dict[str, Estimate]:
        return {str(t): saving(*self.sides(runs.where(track=t)), COST) for t in runs.labels("track")}


@dataclass(frozen=True, slots=True)
class Ablation:
    """A question, and what is compared to answer it."""

    name: str
    title: str
    contrasts: tuple[Contrast, ...]


KNOW = Ablation(
    "know",
    "Know: with the distribution, against assuming the worst case",
    (Contrast(SUBJECT, SUBJECT, WORST_CASE), Contrast("atc", "atc:worst"), Contrast("edf:conditional-mean", "edf")),
)
PLAN = Ablation(
    "plan",
    "Plan: a plan for every job, against a rule that sees the same",
    tuple(Contrast(SUBJECT, other) for other in ("atc", "sts-x:no-price", "sts-x:guaranteed")),
)
PREEMPT = Ablation(
    "preempt", "Preempt: the same rule with preemption, against without", (Contrast("edf:preemptive", "edf"),)
)
PARTS = Ablation(
    "parts", f"What each part of {SUBJECT} is worth", tuple(Contrast(SUBJECT, name) for name in ablation_names(SUBJECT))
)
ABLATIONS = (KNOW, PLAN, PREEMPT)


def tracks(*, quick: bool = False) -> list[Track]:
    """List the tracks of at most `MOST_JOBS` jobs: on a larger one ten ablations take an hour; `quick`: small ones."""
    names = QUICK_TRACKS if quick else list_tracks()
    return [track for track in map(load_track, names) if track.scenario.jobs.count <= MOST_JOBS]


def _cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    """List every policy on every track, and the subject assuming the worst case; tracks have own sizes and seeds."""
    ways: list[tuple[str, str, Change | None]] = [(policy, TRUTH, None) for policy in policies]
    ways += [(SUBJECT, WORST_CASE, Misspecified("worst case"))] if SUBJECT in policies else []
    cells: list[Cell] = []
    for track, (policy, informed, change) in product(tracks(quick=choice.quick), ways):
        seeds = choice.seeds or track.seeds("test")[: QUICK_SEEDS if choice.quick else None]
        labels = (("track", track.name), ("distribution", informed))
        cells += [Cell(labels, track.scenario, policy, seed, change) for seed in seeds]
    return tuple(cells)


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """What a contrast saves on every track, where least comes first; and as a mean over them."""

    ablation: Ablation
    contrast: Contrast
    by_track: dict[str, Estimate]

    @property
    def ranked(self) -> list[str]:
        return sorted(self.by_track, key=lambda track: self.by_track[track].value)

    @property
    def mean(self) -> Estimate:
        """Return 1 less the geometric mean of the ratios of cost: no single loss, however large, outweighs all."""
        logs = [math.log1p(-each.value) for each in self.by_track.values()]
        return Estimate(-math.expm1(sum(logs) / len(logs)), None, min(each.seeds for each in self.by_track.values()))

    def sure(self, sign: int) -> int | None:
        """Count the tracks on which the whole interval has this sign; None without intervals."""
        intervals = [each.interval for each in self.by_track.values() if each.interval is not None]
        return sum(min(sign * low, sign * high) > 0.0 for low, high in intervals) if intervals else None


def _answers(ablation: Ablation, runs: Runs) -> list[_Answer]:
    asked = [contrast for contrast in ablation.contrasts if all(map(len, contrast.sides(runs)))]
    return [_Answer(ablation, contrast, contrast.saved(runs)) for contrast in asked]


def _tracks(runs: Runs) -> tuple[str, ...]:
    return tuple(map(str, runs.labels("track")))


def _summary(runs: Runs) -> Table:
    """Return for every contrast what it saves over all tracks, where least and where most."""
    once: dict[Contrast, _Answer] = {}
    for answer in (answer for ablation in (*ABLATIONS, PARTS) for answer in _answers(ablation, runs)):
        once.setdefault(answer.contrast, answer)  # a part may answer another question too
    columns: tuple[Column[_Answer], ...] = (
        Column("ablation", "question", lambda each: each.ablation.name),
        Column("contrast", "compared", lambda each: each.contrast.name),
        Column("saving", "saved, mean", lambda each: each.mean.value, PERCENT),
        Column("least", "least", lambda each: each.by_track[each.ranked[0]], PERCENT, interval=True),
        Column("least_track", "on", lambda each: each.ranked[0]),
        Column("most", "most", lambda each: each.by_track[each.ranked[-1]], PERCENT, interval=True),
        Column("most_track", "on", lambda each: each.ranked[-1]),
        Column("saves", "saves on", lambda each: each.sure(1), COUNT),
        Column("loses", "loses on", lambda each: each.sure(-1), COUNT),
    )
    notes = (
        MEAN_NOTE,
        f"Saves on, loses on: of {len(_tracks(runs))} tracks those whose whole interval is above, below 0.",
    )
    return Table.of("Over all tracks", columns, once.values(), notes)


def _ablation_table(ablation: Ablation, runs: Runs) -> Table:
    columns: list[Column[str]] = [Column("track", "track", str)]
    columns += map(_saved_column, _answers(ablation, runs))
    return Table.of(f"{ablation.title}: total cost saved", columns, (*_tracks(runs), ALL), (MEAN_NOTE,))


def _saved_column(answer: _Answer) -> Column[str]:
    saved, name = {**answer.by_track, ALL: answer.mean}, answer.contrast.name
    return Column(name.replace(" ", "_"), name, saved.__getitem__, PERCENT, interval=True)


def _details(runs: Runs) -> Table:
    columns = (*of.places(*LABELS), *of.COSTS, of.LATE, of.SWITCHES)
    return Table.of("Every track and policy", columns, runs.groups(*LABELS))


def _ablation_chart(ablation: Ablation, runs: Runs) -> Chart:
    answers = _answers(ablation, runs)
    tracks = tuple(answers[0].ranked[::-1]) if answers else _tracks(runs)
    dots = tuple(series(each.contrast.name, each.by_track.items()) for each in answers)
    panel = Panel("", "total cost saved", "", dots, kind="dots", percent=True, categories=tracks)
    return Chart(ablation.title, ((panel,),), (DOTS_INCHES, ROW_INCHES * len(tracks) + 0.6))


def _parts_chart(runs: Runs) -> Chart:
    """Draw what every part is worth as a map: a row for each part, a column for each track and for their mean."""
    tracks, answers = (*_tracks(runs), ALL), _answers(PARTS, runs)
    if not answers:  # a map needs a row
        return _ablation_chart(PARTS, runs)
    rows = tuple(series(a.contrast.against, [*a.by_track.items(), (ALL, a.mean)]) for a in answers)
    panel = Panel("", "track", "without", rows, kind="map", percent=True, categories=tracks)
    width, height = (
        cell * count + margin
        for cell, count, margin in zip(CELL_INCHES, (len(tracks), len(rows)), MARGIN_INCHES, strict=True)
    )
    return Chart(f"{PARTS.title}: total cost that it saves [%]", ((panel,),), (width, height))


VALUE_OF_INFORMATION_EXPERIMENT = Experiment(
    name="value-of-information",
    title="When does it pay to know the distribution, to plan, to preempt?",
    question=(
        f"On the tracks of suite {SUITE_VERSION} ([tracks](../../tracks.md)), each on its test seeds, pairs of "
        "policies that differ in one thing, or as near to that as there is. Know: STS-X, ATC and EDF informed of how "
        "many epochs jobs are likely to need, against the same assuming the worst case. Plan: STS-X, which plans every "
        "job over its survival, against ATC, an index rule that sees the same expectations, and against STS-X without "
        "one of its parts. Preempt: EDF that preempts against EDF."
    ),
    policies=(SUBJECT, *ablation_names(SUBJECT), "atc", "atc:worst", "edf", "edf:conditional-mean", "edf:preemptive"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_parts_chart,
    reported=(),
    more={ablation.name: partial(_ablation_table, ablation) for ablation in (*ABLATIONS, PARTS)},
    figures={ablation.name: partial(_ablation_chart, ablation) for ablation in ABLATIONS},
)
