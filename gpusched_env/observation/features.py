"""The features of an observation, by name, and its space.

Every feature lies in [-1, 1]. `squash(x)` is x / (1 + |x|). T is the job's least execution time left in the worst case,
D its time to the due date. Its *cheapest* configuration is the one whose epochs cost least in full nodes; L is the
worst-case energy cost left there.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

SURVIVAL_POINTS = 8
ONE_PERCENT = 0.01  # of a worst-case execution time: about what deadline wake-ups leave

JOB_FEATURES = (
    "epochs done / maximum epochs",
    "squash(D / T)",
    "squash((D - T) / T): slack of the fastest configuration",
    "1 if late already",
    "1 if it held GPUs before this round",
    "squash(tardiness cost of T seconds / least worst-case energy cost)",
    "log10(1 + T) / 8",
    "expected epochs left / epochs left in the worst case",
    "squash(time since submission / T)",
    "jobs of this round already asked / jobs of this round",
    *(
        f"probability to survive {k + 0.5:g}/{SURVIVAL_POINTS} of the epochs left, given those done"
        for k in range(SURVIVAL_POINTS)
    ),
    "squash((D - W) / W), W = worst-case execution time of its cheapest configuration",
    "the same, / 1 %",
)
OPTION_FEATURES = (
    "1 if it can be placed now",
    "1 if it meets the due date in the worst case",
    "1 if it meets the due date in expectation",
    "1 - least energy cost / its energy cost, alone on the node",
    "c / (c + least worst-case energy cost), c = worst-case energy + tardiness cost",
    "c / (c + least worst-case energy cost), c = energy + tardiness cost at the expected epochs",
    "1 - least seconds per epoch / its seconds per epoch",
    "squash((D - its worst-case execution time) / T)",
    "its cost rate / the largest of any configuration",
    "its GPUs / the most GPUs of any configuration",
    "share of each GPU",
    "1 if the job held it before this round",
    "free GPUs of its type / GPUs of its type",
    "GPUs left on the emptiest node of its type after it / the most GPUs of any configuration",
    "1 if it fits on a node that is in use",
    "c / (c + L), c = worst-case energy cost that it adds to the bill now",
    "c / (c + L), c = its worst-case energy cost in full nodes",
    "squash((D - W) / W / 1 %), W = its worst-case execution time",
)
CLUSTER_FEATURES = (
    "free GPUs / GPUs of the type",
    "nodes not in use / nodes of the type",
    "most free GPUs on one node / the most GPUs of any configuration",
    "GPUs of the type / GPUs of the cluster",
    "cost rate of a node with one busy GPU / with all busy, of the type",
    "cost rate of a node with one busy GPU / the largest such of any type",
    "log10(1 + nodes of the type) / 4",
    "squash(GPUs that jobs still to be asked want, at their cheapest if in time / GPUs of its largest node)",
    "GPUs on nodes that are in use, not held / GPUs of its largest node, at most 1",
)
QUEUE_FEATURES = (
    "log10(1 + other active jobs) / 5",
    "log10(1 + other jobs that hold nothing) / 5",
    "share of the other active jobs that hold nothing",
    "share of the other active jobs that are late",
    "mean of squash(D / T) over the other active jobs",
    "least squash(D / T) of the other active jobs",
    "ω / (ω + mean ω of the other active jobs)",
    "squash(jobs still to be asked in this round / free GPUs)",
)


def observation_space(configurations: int, gpu_types: int) -> spaces.Dict:
    """Make the observation space for a number of configurations C and GPU types V.

    `options` and `cluster` are rows laid end to end, since Stable-Baselines3 wants vectors: `options.reshape(C, -1)`
    has a row of `OPTION_FEATURES` per configuration, `cluster.reshape(V, -1)` a row of `CLUSTER_FEATURES` per GPU type.
    """

    def box(features: int) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (features,), np.float32)

    return spaces.Dict(
        {
            "job": box(len(JOB_FEATURES)),
            "options": box(configurations * len(OPTION_FEATURES)),
            "cluster": box(gpu_types * len(CLUSTER_FEATURES)),
            "queue": box(len(QUEUE_FEATURES)),
        }
    )
