"""Models of Stable-Baselines3 in checkpoints: with what else their training depends on (extra `agents`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.training.checkpoint import Checkpoint

BUFFER = ("actions", "rewards", "dones", "timeouts")  # of a replay buffer, beside the observations


def pack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Add a model, its optimiser, its environments, its replay buffer if it has one, and all random generators."""
    policy: Any = model.policy
    checkpoint.put("policy", policy.state_dict())
    optimizer = policy.optimizer.state_dict()
    for index, state in optimizer["state"].items():
        checkpoint.put(f"optimizer/{index}", state)
    checkpoint.put("env", model.env.get_state())  # type: ignore[union-attr]
    checkpoint.put("observation", model._last_obs)  # type: ignore[arg-type]  # noqa: SLF001 - where it goes on
    if model._last_episode_starts is not None:  # noqa: SLF001
        checkpoint.arrays["starts"] = model._last_episode_starts  # noqa: SLF001
    checkpoint.arrays["torch"] = torch.get_rng_state().numpy()
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the one that Stable-Baselines3 draws from
    checkpoint.arrays["numpy"] = np.asarray(keys)
    checkpoint.facts["numpy"] = [name, *rest]
    checkpoint.facts["actions"] = model.action_space.np_random.bit_generator.state
    checkpoint.facts["counts"] = {key: getattr(model, key) for key in _counts(model)}
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is not None:
        size = buffer.buffer_size if buffer.full else buffer.pos
        checkpoint.put("buffer", {key: getattr(buffer, key)[:size] for key in BUFFER})
        for kind in ("observations", "next_observations"):
            checkpoint.put(f"buffer/{kind}", {key: array[:size] for key, array in getattr(buffer, kind).items()})
        checkpoint.facts["buffer"] = [buffer.pos, buffer.full]


def unpack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Bring a model, made anew with the same settings, to where `pack_model` found it."""
    policy: Any = model.policy
    policy.load_state_dict({name: torch.from_numpy(array) for name, array in checkpoint.get("policy").items()})
    optimizer = policy.optimizer.state_dict()
    for index in range(len(optimizer["param_groups"][0]["params"])):
        state = checkpoint.get(f"optimizer/{index}")
        if state:
            optimizer["state"][index] = {name: torch.from_numpy(array) for name, array in state.items()}
    policy.optimizer.load_state_dict(optimizer)
    model.env.set_state(checkpoint.get("env"))  # type: ignore[union-attr]
    model._last_obs = checkpoint.get("observation")  # noqa: SLF001
    model._last_episode_starts = checkpoint.arrays.get("starts")  # noqa: SLF001
    torch.set_rng_state(torch.from_numpy(checkpoint.arrays["torch"]))
    name, *rest = checkpoint.facts["numpy"]
    np.random.set_state((name, checkpoint.arrays["numpy"], *rest))  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = checkpoint.facts["actions"]
    for key, value in checkpoint.facts["counts"].items():
        setattr(model, key, value)
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is not None:
        buffer.pos, buffer.full = checkpoint.facts["buffer"]
        for key in BUFFER:
            _fill(getattr(buffer, key), checkpoint.arrays[f"buffer/{key}"])
        for kind in ("observations", "next_observations"):
            for key, array in getattr(buffer, kind).items():
                _fill(array, checkpoint.arrays[f"buffer/{kind}/{key}"])


def _fill(whole: NDArray[Any], part: NDArray[Any]) -> None:
    whole[: len(part)] = part


def _counts(model: BaseAlgorithm) -> list[str]:
    names = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate")
    return [name for name in names if hasattr(model, name)]
