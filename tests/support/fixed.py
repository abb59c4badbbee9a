"""A policy that places every job as told."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fixed:
    """Place every job with its own configuration, by index; the jobs whose turn has not come wait."""

    configs: tuple[int, ...]
    name: str = "fixed"
    preemption: bool = True

    def decide(self, view, rng):
        for job in view.active:
            view.place(int(job), self.configs[job])
