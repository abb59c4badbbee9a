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

    `gpusched_env/GpuCluster-v0`, `GpuClusterFlat-v0` and `GpuAdaptation-v0` take any track by `scenario=`. An id of a
    track, such as `gpusched_env/SlackFlat-v0`, is the same with its `scenario`.
    """
    for kind, (general, entry_points, settings) in _KINDS.items():
        _register(general, entry_points, settings)
        for name, track in _TRACKS.items():
            _register(f"gpusched_env/{name}{kind}-v0", entry_points, {"scenario": track, **settings})


def _register(name: str, entry_points: tuple[str, str], settings: dict[str, Any]) -> None:
    # With no limit of steps: the environment has that of its track itself, and STS-X ends every episode of adaptation.
    if name not in gymnasium.registry:
        single, vector = entry_points
        gymnasium.register(id=name, entry_point=single, vector_entry_point=vector, kwargs=settings)
