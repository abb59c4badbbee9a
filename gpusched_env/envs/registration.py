"""Registration of the environments with Gymnasium: the general one, and those of every track."""

from __future__ import annotations

from typing import Any

import gymnasium

from gpusched_env.workload import list_environments, step_limit_of

ENVIRONMENT_ID = "gpusched_env/GpuCluster-v0"

ADAPTATION_ID, ADAPTATION = "gpusched_env/GpuAdaptation-v0", "Adaptation"

_ENTRY_POINTS = ("gpusched_env.envs.env:GpuClusterEnv", "gpusched_env.envs.vector:GpuClusterVectorEnv")
# By kind: the entry points of a single and of a vector environment, and its settings.
_KINDS: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "": (_ENTRY_POINTS, {}),
    "Flat": (_ENTRY_POINTS, {"flat": True}),
}
# They are in a package above this one: Gymnasium imports them when it makes one.
_ADAPTATION = (
    "gpusched_baselines.adaptation_env:GpuAdaptationEnv",
    "gpusched_baselines.adaptation_env:GpuAdaptationVectorEnv",
)


def track_id(track: str, kind: str = "") -> str:
    """Return the id of a track's environment: `track_id("two-point", "Flat")` is `gpusched_env/TwoPointFlat-v0`."""
    name = "".join(part.capitalize() for part in track.split("-"))
    return f"gpusched_env/{name}{kind}-v0"


def register_envs() -> None:
    """Register `gpusched_env/GpuCluster-v0`, an id for every track that has one, and the flat twin of each, once.

    Environments of a track have its scenario, its reward scale and its limit of steps. No scenario is loaded here.
    Adaptation environments, `gpusched_env/GpuAdaptation-v0` and one of every track, need no limit: STS-X ends every
    episode.
    """
    _register(ENVIRONMENT_ID, "")
    _register("gpusched_env/GpuClusterFlat-v0", "Flat")
    _register(ADAPTATION_ID, ADAPTATION)
    for track in list_environments():
        limit = step_limit_of(track)
        for kind in _KINDS:
            _register(track_id(track, kind), kind, limit, scenario=track, reward_scale=None)
    for track in list_environments(ADAPTATION):
        _register(track_id(track, ADAPTATION), ADAPTATION, scenario=track)


def _register(name: str, kind: str, step_limit: int | None = None, **settings: object) -> None:
    (single, vector), own = (_ADAPTATION, {}) if kind == ADAPTATION else _KINDS[kind]
    if name not in gymnasium.registry:
        gymnasium.register(
            id=name,
            entry_point=single,
            vector_entry_point=vector,
            max_episode_steps=step_limit,
            kwargs={**settings, **own},
        )
