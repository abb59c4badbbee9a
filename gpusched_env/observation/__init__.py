"""Observations: normalised arrays whose shapes do not depend on the number of jobs or nodes.

They hold nothing that is hidden from policies: no epochs needed, no future submission.
"""

from gpusched_env.observation.features import (
    CLUSTER_FEATURES,
    CO_RUNNER_FEATURES,
    GROUPS,
    JOB_FEATURES,
    JOBS_FEATURES,
    MEMORY_FEATURES,
    OPTION_FEATURES,
    PARTS,
    QUEUE_FEATURES,
    SharedFeatures,
    checked_groups,
    feature_names,
    flat_space,
    observation_space,
    option_count,
    part_slices,
    parts_of,
)
from gpusched_env.observation.groups import group_number, write_groups
from gpusched_env.observation.limits import LIMIT_FEATURES
from gpusched_env.observation.notes import Notes
from gpusched_env.observation.observe import observe
from gpusched_env.observation.prices import PRICE_FEATURES
from gpusched_env.observation.site import CAP_FEATURES

__all__ = [
    "CAP_FEATURES",
    "CLUSTER_FEATURES",
    "CO_RUNNER_FEATURES",
    "GROUPS",
    "JOBS_FEATURES",
    "JOB_FEATURES",
    "LIMIT_FEATURES",
    "MEMORY_FEATURES",
    "OPTION_FEATURES",
    "PARTS",
    "PRICE_FEATURES",
    "QUEUE_FEATURES",
    "Notes",
    "SharedFeatures",
    "checked_groups",
    "feature_names",
    "flat_space",
    "group_number",
    "observation_space",
    "observe",
    "option_count",
    "part_slices",
    "parts_of",
    "write_groups",
]
