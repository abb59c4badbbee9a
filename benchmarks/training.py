"""Processor time that trainings on the track `slack` need until their agent is cheaper than STS-X."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.child import run_python
from benchmarks.figure import Figure
from gpusched_agents import make_training
from gpusched_experiments.cli.training_options import training_config

if TYPE_CHECKING:
    from collections.abc import Mapping

SAVING = 0.05
"""The saving against STS-X on the validation workloads at which the clock stops."""
LIMIT_S = 40.0
NAMES = ("es", "es --network controls", "ppo", "sac")
"""The trainings, as arguments of `gpusched train --track slack --agent`."""
USUAL: dict[str, Any] = {}
PROC = Path("/proc")


def measure(
    names: tuple[str, ...] = NAMES,
    limit_s: float = LIMIT_S,
    seed: int = 0,
    options: Mapping[str, Any] = USUAL,
    scenario_settings: Mapping[str, Any] = USUAL,
) -> list[Figure]:
    """Train with the defaults of `gpusched train --track slack`, each in a process of its own, with compiled kernels.

    The clock counts the processor time of the process, its threads and its child processes, evaluations included, from
    the end of the first evaluation, that of STS-X, to the end of the first one with `SAVING`. Without that it counts to
    the evaluation with the greatest saving within the limit.

    Args:
        names: Trainings, of `NAMES`.
        limit_s: Processor time after which a training is stopped [s].
        seed: Seed of the training.
        options: Other options of `gpusched train`, by name; by default none.
        scenario_settings: Other settings of the track, by dotted name; by default none.
    """
    return [_figure(name, limit_s, {"seed": seed, **options}, scenario_settings) for name in names]


def _figure(name: str, limit_s: float, options: Mapping[str, Any], scenario_settings: Mapping[str, Any]) -> Figure:
    title = f"{name}: {SAVING:.0%} cheaper than STS-X"
    if not PROC.is_dir():
        return Figure(title, (), "s", note="not measured: the processor time of child processes is read from /proc")
    if not name.startswith("es") and find_spec("stable_baselines3") is None:
        note = 'not installed (python -m pip install "gpusched-env[agents]"), so not measured'
        return Figure(title, (), "s", note=note)
    given = json.dumps([name, limit_s, options, scenario_settings])
    run_s, saving, steps, all_s = json.loads(run_python(["-m", "benchmarks.training", given]).splitlines()[-1])
    told = f"{steps:,} steps"
    if saving < SAVING:
        tried = f"{limit_s:g} s" if all_s >= limit_s else f"the whole training of {all_s:.0f} s"
        told = f"not reached in {tried} (best {saving:.1%}, after {told}): the time to the best"
    return Figure(title, (run_s,), "s", note=told)


class TrainingEnded(Exception):  # noqa: N818 - it ends a training as planned
    """The training may end."""


@dataclass
class TrainingClock:
    """The processor time of a training at each of its evaluations.

    Args:
        limit_s: Processor time after which it ends [s].
    """

    limit_s: float
    training: Any = None
    began_s: float | None = None
    spent_s: float = 0.0
    best: tuple[float, float, int] = (0.0, 0.0, 0)
    """Of the cheapest agent so far: processor time [s], saving against STS-X, steps."""
    seen: int = 0

    def look(self, *_: object) -> None:
        """Note the evaluations that are new; raise `TrainingEnded` at the saving that is wanted, or at the limit."""
        curve = self.training.progress.curve
        if self.began_s is None:
            self.began_s = processor_s() if curve else None
            return
        self.spent_s = max(self.spent_s, processor_s() - self.began_s)  # at the end the child processes are gone
        for point in curve[self.seen :]:
            saving = 1.0 - point["total_eur"] / self.training.references["sts-x"]
            if saving > self.best[1]:
                self.best = self.spent_s, saving, point["steps"]
        self.seen = len(curve)
        if self.best[1] >= SAVING or self.spent_s >= self.limit_s:
            raise TrainingEnded


def processor_s() -> float:
    """Return the processor time of this process, its threads and its children that live [s] (Linux)."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = (PROC / str(child.pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def train(
    name: str, limit_s: float, options: Mapping[str, Any], scenario_settings: Mapping[str, Any]
) -> tuple[float, float, int, float]:
    """Train until the saving or the limit is reached.

    Args:
        name: One of `NAMES`.
        limit_s: As for `measure`.
        options: As for `measure`, with the seed.
        scenario_settings: As for `measure`.

    Returns:
        Of the cheapest agent: processor time [s], saving, steps; and the processor time of all.
    """
    agent, *network = name.split(" --network ")
    chosen = {"track": "slack", "agent": agent, **dict(zip(("network",), network, strict=False)), **options}
    config = training_config(chosen, scenario_settings=scenario_settings)
    clock = TrainingClock(limit_s)
    with tempfile.TemporaryDirectory() as folder:
        clock.training = make_training(config, Path(folder) / "run", on_progress=clock.look)
        try:
            clock.training.run()
            clock.look()  # the last evaluation
        except TrainingEnded:
            pass
    return *clock.best, clock.spent_s


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    train(given[0], 0.0, *given[2:])  # compiles what is not compiled, or reads it
    print(json.dumps(train(*given)))
