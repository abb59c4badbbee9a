"""A job with made-up training: it waits as long as the epochs of its configuration take, and does nothing else.

It finds in its environment what Slurm gave it, continues from its checkpoint, makes one after each epoch and at
SIGTERM, reports its progress, and ends after epochs of which no policy is told. It writes down itself when it began and
ended, so that a trial needs not believe what its driver says. This module needs Python's standard library alone; run it
as a module with the path of a saved `MadeUpTraining`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from types import FrameType

FAILED = 3
"""Exit code of a training that was to fail."""


@dataclass(frozen=True, slots=True)
class MadeUpTraining:
    """A training.

    Args:
        folder: Where its checkpoints and the logs of its runs are; several trainings may share it.
        epochs: Epochs that it needs, > 0; may be a fraction.
        seconds_per_epoch: Real seconds of an epoch, > 0, by configuration: `v100x2` is 2 GPUs, on one node or more, of
            nodes whose names begin with `v100-`.
        restart_s: Real seconds at the start of each run but the first, until it makes progress.
        fails_at: It fails when it has done so many epochs; None: it does not.
        reports: Whether it reports its progress.
    """

    folder: str
    epochs: float
    seconds_per_epoch: dict[str, float] = field(default_factory=dict)
    restart_s: float = 0.0
    fails_at: float | None = None
    reports: bool = True

    def save(self, path: Path) -> Path:
        draft = path.with_name(f".{path.name}")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(path)
        return path

    @classmethod
    def load(cls, path: Path) -> MadeUpTraining:
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def command(path: Path) -> str:
    return f"exec {shlex.join([sys.executable, '-m', __spec__.name if __spec__ else __name__, str(path)])}"


class RunEvent(NamedTuple):
    """What a run of a training wrote down.

    Attributes:
        job: The id of its job.
        kind: `start`, `ready` (it makes progress from now on), `stopped`, `end`, `failed`, or `overlap`: another run of
            the same job was still at work.
        at_s: When [s], Unix time.
        restarts: How often Slurm had started the job again.
        node: The node, the first one of several.
        configuration: Its GPUs, such as `v100x2`.
        gpus: Numbers of its GPUs on that node.
        epochs: Epochs done, of all its runs together.
    """

    job: str
    kind: str
    at_s: float
    restarts: int
    node: str
    configuration: str
    gpus: tuple[int, ...]
    epochs: float


def run_events(folder: Path) -> list[RunEvent]:
    """Return what all runs in a folder wrote down, in the order of time; a torn last line is left out."""
    found = []
    for path in folder.glob("*.log"):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                *begin, gpus, epochs = json.loads(line)
                found.append(RunEvent._make((*begin, tuple(gpus), epochs)))
    return sorted(found, key=lambda event: event.at_s)


class _Run:
    """A run of a training within a job of Slurm."""

    def __init__(self, training: MadeUpTraining, variables: dict[str, str]) -> None:
        self.training, self.job = training, variables["SLURM_JOB_ID"]
        self.restarts = int(variables.get("SLURM_RESTART_COUNT") or 0)
        self.node = variables["SLURMD_NODENAME"]
        visible = variables.get("CUDA_VISIBLE_DEVICES") or variables.get("SLURM_JOB_GPUS") or ""
        self.gpus = tuple(int(number) for number in visible.split(",") if number.strip().isdigit())
        nodes = int(variables.get("SLURM_JOB_NUM_NODES") or 1)
        self.configuration = f"{self.node.rpartition('-')[0]}x{nodes * len(self.gpus)}"
        self.folder = Path(training.folder)
        self._log = os.open(self.folder / f"{self.job}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lock = os.open(self.folder / f"{self.job}.lock", os.O_WRONLY | os.O_CREAT, 0o644)
        self._checkpoint = self.folder / f"{self.job}.checkpoint"
        self.epochs, self._began, self._begin_s, self._each_s = 0.0, 0.0, 0.0, 0.0

    def write(self, kind: str) -> None:
        values: list[Any] = [
            self.job, kind, time.time(), self.restarts, self.node, self.configuration, self.gpus, self.epochs
        ]  # fmt: skip
        os.write(self._log, json.dumps(values).encode() + b"\n")

    def train(self) -> int:
        """Do what is left; return the exit code."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.write("overlap")
        with suppress(FileNotFoundError):
            self.epochs = float(self._checkpoint.read_text(encoding="ascii"))
        self.write("start")
        signal.signal(signal.SIGTERM, self._stop)
        if self.restarts:
            time.sleep(self.training.restart_s)
        self._began, self._begin_s = self.epochs, time.monotonic()
        self._each_s = self.training.seconds_per_epoch[self.configuration]
        self.write("ready")
        self._report()
        fails_at = self.training.fails_at
        last = self.training.epochs if fails_at is None else min(fails_at, self.training.epochs)
        while self.epochs < last:
            following = min(float(int(self.epochs + 1e-9) + 1), last)
            # By the time since the begin of the run: what a checkpoint takes does not add up.
            time.sleep(max(0.0, self._begin_s + (following - self._began) * self._each_s - time.monotonic()))
            self.epochs = following
            self._save()
            self._report()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # its last line is the last one
        failed = fails_at is not None and self.epochs >= fails_at
        self.write("failed" if failed else "end")
        return FAILED if failed else 0

    def _save(self) -> None:
        draft = self._checkpoint.with_suffix(".draft")
        draft.write_text(repr(self.epochs), encoding="ascii")
        draft.replace(self._checkpoint)

    def _report(self) -> None:
        if self.training.reports:
            from gpusched_operations.live.progress import report_progress  # noqa: PLC0415 - after the first line

            report_progress(self.epochs)

    def _stop(self, _number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._each_s > 0.0:
            done = self._began + (time.monotonic() - self._begin_s) / self._each_s
            self.epochs = max(self.epochs, min(done, self.training.epochs))
            self._save()
            with suppress(ImportError):  # the signal may have come while the module was imported
                self._report()
        self.write("stopped")
        os._exit(0)


def main(path: str) -> int:
    return _Run(MadeUpTraining.load(Path(path)), dict(os.environ)).train()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
