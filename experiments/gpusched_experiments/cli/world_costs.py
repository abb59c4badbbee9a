"""What a policy costs on drawn scenarios beside something else there: rows, their table, and limits on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from gpusched_env.model import checks
from gpusched_env.workload import Scenario
from gpusched_experiments.cli.left_out import without_shares, without_types
from gpusched_experiments.cli.scenarios import load_of
from gpusched_experiments.report.estimate import Estimate, paired_saving
from gpusched_experiments.report.table import COUNT, MONEY, PLAIN, RATIO, Column

THREE: Callable[[float], str] = "{:.3f}".format


@dataclass(frozen=True, slots=True)
class Study:
    """What the reference policy is compared with.

    Attributes:
        file: Name of the table's files, without their ends.
        other: What the other costs are of.
        margin: What it must save to be listed as cheaper, as a part of the reference's cost.
        variants: Returns the scenarios on which the reference also runs, by what they are without; None if other
            policies run on the same scenario.
    """

    file: str
    other: str
    margin: float
    variants: Callable[[Scenario], dict[str, Scenario]] | None = None


POLICIES = Study("worlds", "the best other policy", 0.02)
LEFT_OUT = {
    "types": Study("without-types", "the same policy without a GPU type", 0.01, without_types),
    "shares": Study("without-shares", "the same policy without shares", 0.02, without_shares),
}
"""Studies in which a part of the cluster is left out, by the name of the part."""


def cost_ratio(reference_eur: ArrayLike, other_eur: ArrayLike) -> Estimate:
    """Estimate Σ reference / Σ other over seeds, paired by seed.

    Args:
        reference_eur: Costs of the reference, one per seed, (S,) [€], all > 0.
        other_eur: The other costs on the same seeds, (S,) [€].
    """
    saving = paired_saving(other_eur, reference_eur)
    ends = None if saving.interval is None else (1.0 / (1.0 - saving.interval[0]), 1.0 / (1.0 - saving.interval[1]))
    return Estimate(1.0 / (1.0 - saving.value), ends, saving.seeds)


@dataclass(frozen=True, slots=True)
class ComparedScenario:
    """A drawn scenario, and what the reference costs there beside something else.

    Attributes:
        scenario: The scenario.
        other: The policy that costs least among the others, or what the scenario is without.
        reference_eur: Mean cost of the reference policy on the seeds that chose [€].
        chosen: Its cost over the other on the seeds that chose the other.
        confirmed: The same on seeds that chose nothing; None if it did not run there.
    """

    scenario: Scenario
    other: str
    reference_eur: float
    chosen: Estimate
    confirmed: Estimate | None = None

    @property
    def ratio(self) -> Estimate:
        return self.chosen if self.confirmed is None else self.confirmed

    def cheaper(self, margin: float) -> bool:
        """Whether the other saves more than this part of the reference's cost."""
        return self.ratio.value * (1.0 - margin) > 1.0

    def surely_cheaper(self, margin: float) -> bool:
        return self.ratio.interval is not None and self.ratio.interval[0] * (1.0 - margin) > 1.0


def _cluster(compared: ComparedScenario) -> str:
    return " + ".join(f"{pool.nodes} {pool.gpu_type}" for pool in compared.scenario.cluster.pools)


COLUMNS: tuple[Column[ComparedScenario], ...] = (
    Column("scenario", "scenario", lambda compared: compared.scenario.name),
    Column("reference_eur", "reference €", lambda compared: compared.reference_eur, MONEY),
    Column("other", "other", lambda compared: compared.other),
    Column("ratio", "reference/other", lambda compared: compared.ratio, THREE, interval=True),
    Column("seeds", "seeds", lambda compared: compared.ratio.seeds, COUNT),
    Column("chosen_ratio", "when chosen", lambda compared: compared.chosen.value, THREE),
    Column("load", "load", lambda compared: load_of(compared.scenario), RATIO),
    Column("jobs", "jobs", lambda compared: compared.scenario.jobs.count, PLAIN),
    Column("slack", "slack", lambda compared: compared.scenario.due_dates.slack, "{:.2g}".format),
    Column("restart", "restart", lambda compared: str(compared.scenario.restart_s)),
    Column("family", "epochs", lambda compared: compared.scenario.epochs.family),
    Column("nodes", "nodes", _cluster),
)


@dataclass(frozen=True, slots=True)
class Summary:
    """What the rows of a study come to.

    Attributes:
        scenarios: Number of scenarios.
        rows: Number of rows.
        cheaper: Number of those in which the other is cheaper by more than the study's margin.
        surely: Number of those in which it surely is (95 %).
        mean: Geometric mean of the ratios.
        worst: The row with the greatest ratio.
    """

    scenarios: int
    rows: int
    cheaper: int
    surely: int
    mean: float
    worst: ComparedScenario

    @classmethod
    def of(cls, rows: Sequence[ComparedScenario], margin: float) -> "Summary":
        return cls(
            len({row.scenario.name for row in rows}),
            len(rows),
            sum(row.cheaper(margin) for row in rows),
            sum(row.surely_cheaper(margin) for row in rows),
            float(np.exp(np.mean([np.log(row.ratio.value) for row in rows]))),
            max(rows, key=lambda row: row.ratio.value),
        )

    def text(self, study: Study, reference: str) -> str:
        worst = self.worst
        return (
            f"{self.rows} comparisons on {self.scenarios} scenarios: in {self.cheaper} {study.other} is more than "
            f"{100.0 * study.margin:g} % cheaper than {reference}, in {self.surely} surely (95 %). Cost of "
            f"{reference} over the other: geometric mean {self.mean:.3f}, at most {worst.ratio.value:.3f} "
            f"({worst.scenario.name}, {worst.other})."
        )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that a study may come to; a value of None is no limit."""

    max_ratio: Annotated[float | None, "Exit with code 1 if the reference costs more than this times another."] = None
    max_mean: Annotated[float | None, "Exit with code 1 if the geometric mean of these ratios is above this."] = None
    max_cheaper: Annotated[int | None, "Exit with code 1 if in more comparisons another is surely cheaper."] = None

    def __post_init__(self) -> None:
        for name, value in (("--max-ratio", self.max_ratio), ("--max-mean", self.max_mean)):
            if value is not None:
                checks.positive(name, value)
        if self.max_cheaper is not None:
            checks.whole("--max-cheaper", self.max_cheaper, 0)

    def missed(self, summary: Summary) -> list[str]:
        """Return a line on every limit that is exceeded."""
        reached = (
            ("--max-ratio", summary.worst.ratio.value, self.max_ratio, THREE),
            ("--max-mean", summary.mean, self.max_mean, THREE),
            ("--max-cheaper", float(summary.surely), self.max_cheaper, COUNT),
        )
        return [
            f"{name}: {form(value)}, allowed: at most {most:g}"
            for name, value, most, form in reached
            if most is not None and value > most
        ]
