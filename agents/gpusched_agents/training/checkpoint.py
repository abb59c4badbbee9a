"""Everything that the rest of a training run depends on, in one file of plain arrays."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from stable_baselines3.common.save_util import recursive_getattr

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

VERSION = 1


@dataclass(slots=True)
class Checkpoint:
    """A moment of a training run.

    Args:
        arrays: By name.
        facts: What is not an array; JSON can hold it.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it, in place of a former one, as a whole or not at all."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        write_atomically(path, save(arrays, metadata={"version": str(VERSION), "facts": json.dumps(self.facts)}))

    def copy(self) -> Checkpoint:
        """Give one that stays as it is while the run goes on."""
        arrays = {name: np.array(array) for name, array in self.arrays.items()}
        return Checkpoint(arrays, copy.deepcopy(self.facts))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what `write` wrote.

        Raises:
            InputError: The file is not whole, is no checkpoint, or is one of another version.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
                facts = json.loads(header.get("facts", "{}"))
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(str(path), str(error), "a whole checkpoint; remove it to begin anew") from error
        if header.get("version") != str(VERSION):
            raise InputError(f"{path}: version", header.get("version"), str(VERSION))
        return cls(arrays, facts)

    def put(self, prefix: str, arrays: Mapping[str, Any]) -> None:
        """Add arrays or tensors under `prefix`/."""
        for name, value in arrays.items():
            self.arrays[f"{prefix}/{name}"] = np.asarray(value)

    def get(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Give the arrays under `prefix`/."""
        return {name[len(prefix) + 1 :]: array for name, array in self.arrays.items() if name.startswith(f"{prefix}/")}


BUFFER = ("actions", "rewards", "dones", "timeouts")  # of a replay buffer, beside the observations
FLAT = "flat"  # the name of an observation that is one array


def pack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Add a model, its optimiser, its environments, its replay buffer if it has one, and all random generators."""
    checkpoint.put("policy", model.policy.state_dict())
    for name, optimizer in _optimizers(model).items():
        for index, state in optimizer.state_dict()["state"].items():
            checkpoint.put(f"{name}/{index}", state)
    for name in _tensors(model):
        checkpoint.arrays[name] = getattr(model, name).detach().numpy()
    checkpoint.put("env", model.env.get_state())  # type: ignore[union-attr]
    last: Any = model._last_obs  # noqa: SLF001 - where it goes on
    checkpoint.put("observation", last if isinstance(last, dict) else {FLAT: last})
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
        checkpoint.put("buffer", {key: array[:size] for key, array in _seen(buffer).items()})
        checkpoint.facts["buffer"] = [buffer.pos, buffer.full]


def unpack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Bring a model, made anew with the same settings, to where `pack_model` found it."""
    model.policy.load_state_dict({name: torch.from_numpy(array) for name, array in checkpoint.get("policy").items()})
    for name, optimizer in _optimizers(model).items():
        described = optimizer.state_dict()
        for index in range(len(described["param_groups"][0]["params"])):
            state = checkpoint.get(f"{name}/{index}")
            if state:
                described["state"][index] = {key: torch.from_numpy(array) for key, array in state.items()}
        optimizer.load_state_dict(described)
    for name in _tensors(model):
        tensor = getattr(model, name)
        tensor.data = torch.from_numpy(checkpoint.arrays[name].reshape(tensor.shape).copy())
    model.env.set_state(checkpoint.get("env"))  # type: ignore[union-attr]
    seen = checkpoint.get("observation")
    model._last_obs = seen.get(FLAT, seen)  # noqa: SLF001
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
        for key, whole in ({key: getattr(buffer, key) for key in BUFFER} | _seen(buffer)).items():
            part = checkpoint.arrays[f"buffer/{key}"]
            whole[: len(part)] = part


def _optimizers(model: BaseAlgorithm) -> dict[str, torch.optim.Optimizer]:
    """Return the optimisers of a model by name; `optimizer` where it has only one."""
    names = [name for name in model._get_torch_save_params()[0] if name.endswith("optimizer")]  # noqa: SLF001
    return {name.removeprefix("policy."): recursive_getattr(model, name) for name in names}


def _tensors(model: BaseAlgorithm) -> list[str]:
    """Return the names of what is learnt beside the policy: the entropy's coefficient of SAC and TQC."""
    return model._get_torch_save_params()[1]  # noqa: SLF001


def _seen(buffer: Any) -> dict[str, NDArray[Any]]:
    """Return the observations in a replay buffer by name, whatever their space."""
    arrays: dict[str, NDArray[Any]] = {}
    for kind in ("observations", "next_observations"):
        seen = getattr(buffer, kind)
        arrays |= {f"{kind}/{key}": array for key, array in seen.items()} if isinstance(seen, dict) else {kind: seen}
    return arrays


def _counts(model: BaseAlgorithm) -> list[str]:
    names = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate")
    return [name for name in names if hasattr(model, name)]
