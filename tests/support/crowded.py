"""Crowded instances with shared GPUs and several nodes, and a policy that does anything allowed."""

from dataclasses import dataclass, replace

import numpy as np

from gpusched_env import Instance, View
from gpusched_env.simulator import layout as at
from instances import random_instance


@dataclass(frozen=True)
class Whatever:
    """Gives jobs any configuration that fits, or none; those that hold one may keep it."""

    preemption: bool = True
    name: str = "whatever"

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for job in rng.permutation(view.active if self.preemption else view.waiting).tolist():
            tried = rng.permutation(np.flatnonzero(np.isfinite(view.tau[job]))).tolist()
            held = int(view.jobs[job, at.OLD_CONFIG])
            if held >= 0 and rng.random() < 0.5:
                tried.insert(0, held)
            if rng.random() < 0.9:
                any(view.place(job, config) for config in tried)


def crowded(seed: int, restart_s: float = 5.0, interference: bool = True, *, spread: bool = False) -> Instance:
    """Make an instance in which jobs wait, each with its own restart overhead of up to twice `restart_s`."""
    instance = random_instance(
        seed, jobs=25, nodes=6, types=1 + seed % 2, span_s=500.0, kinds=True, interference=interference, spread=spread
    )
    own = np.random.default_rng(seed).uniform(0.0, 2.0 * restart_s, len(instance.jobs))
    return replace(instance, jobs=replace(instance.jobs, restart_s=own))
