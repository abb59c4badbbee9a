"""Registration of the environments with Gymnasium: the general ones, and those of three tracks."""

from __future__ import annotations

from typing import Any

import gymnasium

ENVIRONMENT_ID = "gpusched_env/GpuCluster-v0"

_ENTRY_POINTS = ("gpusched_env.envs.env:GpuClusterEnv", "gpusched_env.envs.vector:GpuClusterVectorEnv")
# It is in a package above this one: Gymnasium imports it when it makes one.
_ADAPTATION = (
    "gpusched_baselines.adaptation_env:GpuAdaptationEnv",
    "gpusched_baselines.adaptation_env:GpuAdaptationVectorEnv",
)
# By kind: the general id, the entry points of a single and of a vector environment, and its settings.
_KINDS: dict[str, tuple[str, tuple[str, str], dict[str, Any]]] = {
    "": (ENVIRONMENT_ID, _ENTRY_POINTS, {}),
    "Flat": ("gpusched_env/GpuClusterFlat-v0", _ENTRY_POINTS, {"flat": True}),
    "Adaptation": ("gpusched_env/GpuAdaptation-v0", _ADAPTATION, {}),
}
_TRACKS = {"Slack": "slack", "Busy": "busy", "Published1": "published-1"}


def register_envs() -> None:
    """Register a dozen ids, once: of each kind a general one and those of three tracks. No scenario is loaded here.

    The general ones take tracks by `scenario=`; `gpusched_env/SlackFlat-v0` is `GpuClusterFlat-v0` with its `scenario`.
    """
    for kind, (general, (single, vector), own) in _KINDS.items():
        ids = {f"gpusched_env/{name}{kind}-v0": {"scenario": track, **own} for name, track in _TRACKS.items()}
        for name, settings in {general: own, **ids}.items():
            if name not in gymnasium.registry:  # with no limit of steps: the environment has that of its track itself
                gymnasium.register(id=name, entry_point=single, vector_entry_point=vector, kwargs=settings)
