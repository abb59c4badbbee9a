"""The curves of a study: what each agent cost on the validation workloads while it was trained."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_agents.files.storage import load_description
from gpusched_agents.study import finished_training
from gpusched_experiments.learning.evaluation import AGENT
from gpusched_experiments.published.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpusched_experiments.learning.plan import TrainingRun

COLUMNS = ("variant", "seed", "steps", "seconds", "phase", "total_eur", "tardiness_eur")


@dataclass(frozen=True, slots=True)
class Trained:
    """A training that has ended.

    Attributes:
        run: What was trained.
        curve: Its evaluations, in order: `steps`, `seconds`, `phase`, `total_eur`, `tardiness_eur` [€].
        steps: Decisions that it took; fewer than planned if it stopped early.
        seconds: Seconds that it took, over all sessions.
        weights_sha256: Hash of the weights of the agent that was kept.
    """

    run: TrainingRun
    curve: tuple[Mapping[str, Any], ...]
    steps: int
    seconds: float
    weights_sha256: str

    @property
    def kept(self) -> Mapping[str, Any]:
        """The evaluation of the agent that was kept: the one that cost least."""
        return min(self.curve, key=lambda point: float(point["total_eur"]))

    def cost_at(self, steps: int) -> float:
        """Give the cost evaluated last [€]; after the end of the training, that of the agent that was kept."""
        if steps > self.curve[-1]["steps"]:
            return float(self.kept["total_eur"])
        return float([point for point in self.curve if point["steps"] <= steps][-1]["total_eur"])


def read_trained(run: TrainingRun, folder: Path) -> Trained:
    """Read what a training left in its folder.

    Raises:
        InputError: It has not finished there, or its files are not whole.
    """
    facts = finished_training(run.config, folder) or {}
    described = load_description(folder / AGENT)
    return Trained(run, tuple(described.curve), facts["steps"], facts["seconds"], described.weights_sha256)


def mean_curve(trained: Sequence[Trained]) -> tuple[tuple[int, Estimate], ...]:
    """Give the mean of several trainings' curves at every number of decisions at which one of them was evaluated.

    Returns:
        Decisions, and the mean cost [€] with the least and the greatest in the place of an interval.
    """
    places = sorted({int(point["steps"]) for each in trained for point in each.curve})
    return tuple((steps, spread([each.cost_at(steps) for each in trained])) for steps in places)


def spread(values: Sequence[float]) -> Estimate:
    """Give the mean of these values, with the least and the greatest in the place of an interval."""
    return Estimate(sum(values) / len(values), (min(values), max(values)) if len(values) > 1 else None, len(values))


def curves_csv(trained: Sequence[Trained]) -> str:
    """Write every evaluation of every training, a line each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in trained:
        for point in each.curve:
            writer.writerow([each.run.variant, each.run.seed, *(point[name] for name in COLUMNS[2:])])
    return text.getvalue()
