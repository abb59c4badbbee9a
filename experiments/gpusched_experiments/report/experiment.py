"""What an experiment is, what its sources reported, and the page that has both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpusched_env.model import checks
from gpusched_experiments.report.cell import Cell, each_once, is_slow
from gpusched_experiments.report.table import Table, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpusched_experiments.report.chart import Chart
    from gpusched_experiments.report.run import Runs

THESIS = "L. Marchi, Politecnico di Milano, 2022"
PAPER = "F. Filippini et al., IEEE Trans. Cloud Computing 12(1), 2024"
INTERVALS = (
    "In brackets 95 % bootstrap intervals over seeds, where there are 5 seeds or more. All policies of a group ran on "
    "the same workloads; savings are paired by seed."
)


@dataclass(frozen=True, slots=True)
class Reported:
    """One result as its source reported it: to stand beside our figures, never to be aimed at."""

    what: str
    figure: str
    source: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: which cells it runs, and what it makes of them.

    Attributes:
        name: Its name on the command line, and of its folder.
        title: Its title.
        question: What it asks and how, a paragraph.
        policies: Names of the policies that it runs unless others are chosen.
        labels: Names of its cells' labels.
        cells: Lists the cells of a choice, for these policies.
        summary: Makes the short table, with what the sources reported beside our figures.
        details: Makes the table of every group of runs.
        chart: Makes the figure.
        reported: What the sources reported.
        more: Makes further tables, by the name of their CSV file.
        figures: Makes further figures, by the name of their files.
        verdict: Makes what a page begins with, of each of its tables but the details: our figures beside the reported
            ones, a sentence each.
        alone: Whether its cells are timings, which run one at a time while nothing else does.
    """

    name: str
    title: str
    question: str
    policies: tuple[str, ...]
    labels: tuple[str, ...]
    cells: Callable[[Selection, tuple[str, ...]], tuple[Cell, ...]]
    summary: Callable[[Runs], Table]
    details: Callable[[Runs], Table]
    chart: Callable[[Runs], Chart]
    reported: tuple[Reported, ...]
    more: Mapping[str, Callable[[Runs], Table]] = field(default_factory=dict)
    figures: Mapping[str, Callable[[Runs], Chart]] = field(default_factory=dict)
    verdict: Callable[[Table], tuple[str, ...]] = lambda _: ()
    alone: bool = False


def beside_reported(labels: Sequence[str], column: str, what: str) -> Callable[[Table], tuple[str, ...]]:
    """Return a verdict: a sentence for each row of a table that has a value in its column `reported`.

    Args:
        labels: The columns that name a row.
        column: The column with our figure.
        what: What the figures are.
    """

    def verdict(summary: Table) -> tuple[str, ...]:
        rows = zip(summary.as_dicts(), summary.texts(), strict=True)
        shown = [dict(zip(row, texts, strict=True)) for row, texts in rows if row.get("reported")]
        names = [", ".join(text for label in labels if (text := row[label])) for row in shown]
        return tuple(
            f"{name}: {what} here {row[column]}, reported {row['reported']}."
            for name, row in zip(names, shown, strict=True)
        )

    return verdict


VERDICT = "- **Verdict:** "
"""Before each sentence of an experiment's verdict on its page."""


def page_markdown(experiment: Experiment, summary: Table, details: Table, more: Iterable[Table] = ()) -> str:
    parts, shown = [f"## {experiment.title}\n\n{experiment.question}\n"], (summary, *more)
    if verdict := [sentence for table in shown for sentence in experiment.verdict(table)]:
        parts.append("".join(f"{VERDICT}{sentence}\n" for sentence in verdict))
    if experiment.reported:
        lines = [f"| {r.what} | {r.figure} | {r.source} |" for r in experiment.reported]
        parts.append("\n".join(["| reported | figure | source |", "|---|---|---|", *lines]) + "\n")
    parts += [*map(markdown, shown), INTERVALS + "\n", markdown(details)]
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Selection:
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

    def nodes(self, choice: Selection) -> tuple[int, ...]:
        return choice.nodes or tuple(size.nodes for size in self._of(choice))

    def seeds(self, choice: Selection, nodes: int, policy: str) -> tuple[int, ...]:
        if choice.seeds is not None:
            return choice.seeds
        known = self._of(choice)
        size = next((size for size in known if size.nodes >= nodes), known[-1])
        least = 1 if choice.nodes is not None else 0
        count = max(least, size.slow_seeds) if is_slow(policy) else size.seeds
        return tuple(range(self.first_seed, self.first_seed + count))

    def _of(self, choice: Selection) -> tuple[Size, ...]:
        return self.quick if choice.quick else self.full


def available(wanted: Sequence[str], registered: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(name for name in wanted if name in registered), tuple(n for n in wanted if n not in registered)
