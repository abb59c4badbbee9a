"""The observation space, of the features that the writers of each group declare."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from gpusched_env.observation.cluster import CLUSTER_FEATURES
from gpusched_env.observation.company import COMPANY_FEATURES
from gpusched_env.observation.job import JOB_FEATURES
from gpusched_env.observation.options import OPTION_FEATURES
from gpusched_env.observation.queue import QUEUE_FEATURES

__all__ = [
    "CLUSTER_FEATURES",
    "COMPANY_FEATURES",
    "JOB_FEATURES",
    "OPTION_FEATURES",
    "QUEUE_FEATURES",
    "observation_space",
    "option_count",
]


def option_count(shared_features: bool) -> int:
    """Count the features of a configuration."""
    return len(OPTION_FEATURES) + (len(COMPANY_FEATURES) if shared_features else 0)


def observation_space(configurations: int, gpu_types: int, *, shared_features: bool = False) -> spaces.Dict:
    """Make the observation space for a number of configurations C and GPU types V.

    `options` and `cluster` are rows laid end to end, since Stable-Baselines3 wants vectors: `options.reshape(C, -1)`
    has a row of `OPTION_FEATURES` per configuration, with `COMPANY_FEATURES` behind them if there are
    `shared_features`, and `cluster.reshape(V, -1)` a row of `CLUSTER_FEATURES` per GPU type.
    """

    def box(features: int) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, (features,), np.float32)

    return spaces.Dict(
        {
            "job": box(len(JOB_FEATURES)),
            "options": box(configurations * option_count(shared_features)),
            "cluster": box(gpu_types * len(CLUSTER_FEATURES)),
            "queue": box(len(QUEUE_FEATURES)),
        }
    )
