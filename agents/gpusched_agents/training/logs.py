"""What a training run logs for TensorBoard, all of it by the decisions so far (extra `agents`)."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
