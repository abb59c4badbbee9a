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
    features_of,
    flat_space,
    group_number,
    observation_space,
    option_count,
    part_slices,
    parts_of,
)
from gpusched_env.observation.notes import Notes
from gpusched_env.observation.observe import observe

__all__ = [
    "CLUSTER_FEATURES",
    "CO_RUNNER_FEATURES",
    "GROUPS",
    "JOBS_FEATURES",
    "JOB_FEATURES",
    "MEMORY_FEATURES",
    "OPTION_FEATURES",
    "PARTS",
    "QUEUE_FEATURES",
    "Notes",
    "SharedFeatures",
    "checked_groups",
    "feature_names",
    "features_of",
    "flat_space",
    "group_number",
    "observation_space",
    "observe",
    "option_count",
    "part_slices",
    "parts_of",
]
