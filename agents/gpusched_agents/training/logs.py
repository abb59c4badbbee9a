"""What a training run logs for TensorBoard, all of it by the decisions so far (extra `agents`)."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


class LaterLogger(Logger):
    """The logger of an algorithm that counts its steps from the end of the warm start.

    Args:
        folder: Where it logs.
        formats: What writes it.
        before: Decisions of the warm start.
    """

    def __init__(self, folder: str, formats: list[KVWriter], before: int) -> None:
        super().__init__(folder, formats)
        self._before = before

    def dump(self, step: int = 0) -> None:
        """Write what was recorded, at the decisions of the whole run."""
        super().dump(self._before + step)


@dataclass(frozen=True, slots=True)
class Logs:
    """The loggers of a run: what one records does not wait for the other to be written, and both write to one place.

    Attributes:
        evaluations: That of evaluations.
    """

    evaluations: Logger

    def of_learning(self, before: int) -> Logger:
        """Make the logger of an algorithm, which begins after so many decisions of a warm start."""
        return LaterLogger(str(self.evaluations.dir), self.evaluations.output_formats, before)


@contextmanager
def open_logs(folder: Path) -> Iterator[Logs]:
    """Log to a folder for TensorBoard, if it is installed."""
    formats: list[KVWriter] = [TensorBoardOutputFormat(str(folder))] if find_spec("tensorboard") else []
    logger = Logger(str(folder), formats)
    try:
        yield Logs(logger)
    finally:
        logger.close()


class Watch(BaseCallback):
    """Lets a training look between two updates.

    Args:
        look: Called there; False ends the learning.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        super().__init__()
        self._look, self._goes_on = look, True

    def _on_rollout_start(self) -> None:
        self._goes_on = self._look()

    def _on_step(self) -> bool:
        return self._goes_on


@dataclass(slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        phase: `imitation` or `learning`.
        imitated: Decisions of the warm start.
        learnt: Decisions of reinforcement learning.
        curve: A point for each evaluation.
        worse: Evaluations since the best one.
        seconds: Seconds spent, over all sessions.
    """

    phase: str = "imitation"
    imitated: int = 0
    learnt: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    worse: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return self.imitated + self.learnt


def cost_of(point: Mapping[str, Any]) -> float:
    """Give that by which evaluations are compared: what the agent costs over STS-X if that was measured, else in €."""
    return float(point.get("relative", point["total_eur"]))


def best_point(curve: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Give the evaluation whose agent is kept: the best, of equals the first."""
    return min(curve, key=cost_of)


def csv_of(curve: list[dict[str, Any]]) -> str:
    """Write the curve as a table; a field that a point does not have is empty."""
    names = list(dict.fromkeys(name for point in curve for name in point))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(curve)
    return text.getvalue()
