"""A policy that does what it was told to do, and when."""

from collections.abc import Mapping
from dataclasses import dataclass

from numpy.random import Generator

from gpusched_env import View
from gpusched_env.simulator import Choice

Place = tuple[int, int, int | None]
"""A configuration, the first node of those to hold, and the shared GPU on it."""


@dataclass(frozen=True)
class Scripted:
    """Gives jobs, from each of some times on, what stands there, in that order; who is not named waits."""

    steps: Mapping[float, Mapping[int, Place]]
    name: str = "scripted"
    preemption: bool = True

    def decide(self, view: View, _: Generator) -> None:
        times = sorted(self.steps)
        present = max(time for time in times if time <= view.now_s)
        for job, (config, node, gpu) in self.steps[present].items():
            if job in view.active:
                view.apply(job, Choice(config, node=node, gpu=gpu))
                if not view.place(job, config):
                    raise AssertionError(f"job {job} does not fit at {view.now_s} s")
        coming = [time for time in times if time > view.now_s]
        if coming:
            view.set_timer(int(view.active[0]), coming[0])
