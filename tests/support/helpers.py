"""Random instances in which spare machines help jobs on several nodes."""

from dataclasses import replace

import numpy as np

from gpusched_env import Instance, Synchronisation
from gpusched_env.model.synchronisation import BACKENDS
from instances import random_instance


def helped_instance(
    seed: int, *, jobs: int = 12, nodes: int = 8, interference: bool = False, varied: bool = False, **more
) -> Instance:
    """Make a random instance of equal nodes by type and all kinds of configurations, whose jobs may use BytePS.

    If it is `varied`, jobs use any backend, the core of the network may be narrow, machines may have slow links, and
    CPU machines may draw power.
    """
    rng = np.random.default_rng([seed, 1])
    instance = random_instance(seed, jobs=jobs, nodes=nodes, kinds=True, interference=interference, equal=True, **more)
    shape = (len(instance.gpu_types), len(instance.jobs.applications))
    known = rng.random(shape) < 0.8
    own = Synchronisation(
        rng.uniform(0.05, 0.5, shape), np.where(known, rng.uniform(0.02, 1.0, shape), 0.0), int(rng.integers(0, 4))
    )
    if varied:
        backend = BACKENDS[rng.integers(0, 3)]
        own = replace(
            own,
            backend=backend,
            cpu_machines=0 if backend == "all-reduce" else own.cpu_machines,
            cpu_machine_w=float(rng.choice([0.0, 400.0])),
            core_nodes=None if rng.random() < 0.4 else float(rng.uniform(1.0, nodes)),
            inside_s=None if rng.random() < 0.4 else rng.uniform(0.0, 0.8, shape),
        )
    return instance.with_mechanisms(own)
