"""Random instances in which spare machines help jobs on several nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusched_env import Instance, Synchronisation
from instances import random_instance


def helped_instance(seed: int, *, jobs: int = 12, nodes: int = 8, interference: bool = False, **more) -> Instance:
    """Make a random instance of equal nodes by type and all kinds of configurations, whose jobs may use BytePS."""
    rng = np.random.default_rng([seed, 1])
    instance = random_instance(seed, jobs=jobs, nodes=nodes, kinds=True, interference=interference, equal=True, **more)
    shape = (len(instance.gpu_types), len(instance.jobs.applications))
    known = rng.random(shape) < 0.8
    return replace(
        instance,
        synchronisation=Synchronisation(
            rng.uniform(0.05, 0.5, shape), np.where(known, rng.uniform(0.02, 1.0, shape), 0.0), int(rng.integers(0, 4))
        ),
    )
