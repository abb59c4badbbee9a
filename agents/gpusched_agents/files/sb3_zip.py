"""Models that Stable-Baselines3 and sb3-contrib saved, as policies: `sb3:model.zip` (extra `agents`).

Their archives hold pickled objects, and reading one runs whatever code it carries. What decides afterwards are plain
arrays: perceptrons are taken out of the model.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import sb3_contrib
import stable_baselines3
import torch
from gymnasium import spaces

from gpusched_agents.any_policy import archive_path
from gpusched_agents.files.convert import UnsafeLoadWarning, read_archive
from gpusched_agents.network.job_model import JobModelPolicy
from gpusched_agents.steering.actor import LstmActor, MlpActor
from gpusched_agents.steering.knob_policy import KnobPolicy, knob_set
from gpusched_env.errors import InputError
from gpusched_env.observation import PARTS

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

# By the module of its policy's class: the algorithm.
BY_POLICY = {
    "stable_baselines3.sac.policies": stable_baselines3.SAC,
    "stable_baselines3.td3.policies": stable_baselines3.TD3,
    "stable_baselines3.dqn.policies": stable_baselines3.DQN,
    "sb3_contrib.tqc.policies": sb3_contrib.TQC,
    "sb3_contrib.common.maskable.policies": sb3_contrib.MaskablePPO,
    "sb3_contrib.common.recurrent.policies": sb3_contrib.RecurrentPPO,
}
ON_POLICY = "stable_baselines3.common.policies"
ACTIVATIONS = {torch.nn.Tanh: "tanh", torch.nn.ReLU: "relu"}
TAKEN = "a perceptron (MlpPolicy or MultiInputPolicy) of PPO, A2C, SAC, TD3, TQC, DQN or MaskablePPO"
LSTM = "MlpLstmPolicy of RecurrentPPO with one layer, on a steering environment"


def load_sb3(text: str, *, rounds: int = 16) -> KnobPolicy | JobModelPolicy:
    """Load a model that `model.save` wrote as a policy of the name `text`.

    One of a steering environment becomes a `KnobPolicy`. One of an environment that asks for every job, flat or not,
    becomes a `JobModelPolicy`, which is asked as these environments ask by default.

    Args:
        text: `sb3:FILE.zip`, or the file. Reading it runs the code that it carries: load only files that you trust.
        rounds: Rounds of a step, as in the training of one that steers, ≥ 1.

    Warns:
        UnsafeLoadWarning: Always.

    Raises:
        InputError: There is no such file, it is not whole, or its model is no perceptron of these environments.
    """
    model = _load(archive_path(text))
    actor: MlpActor | LstmActor = actor_of_model(model)
    if isinstance(model, sb3_contrib.RecurrentPPO):
        actor = lstm_of_model(model)
    if isinstance(model.action_space, spaces.Box):
        knobs = knob_set(actor.inputs, actor.outputs)
        if knobs is None:
            raise InputError("model.action_space", model.action_space, "that of a steering environment")
        return KnobPolicy(name=text, actor=actor, rounds=rounds, knobs=knobs)
    if not isinstance(actor, MlpActor):
        raise InputError("model.action_space", model.action_space, LSTM)
    flat = not isinstance(model.observation_space, spaces.Dict)
    parts = None if flat else tuple(model.observation_space.spaces)  # type: ignore[attr-defined]
    if parts is not None and set(parts) != set(PARTS):
        raise InputError("model.observation_space", model.observation_space, "that of GpuClusterEnv")
    return JobModelPolicy(name=text, actor=actor, parts=parts, masks=isinstance(model, sb3_contrib.MaskablePPO))


def _load(path: Path) -> BaseAlgorithm:
    data = read_archive(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            described = json.loads(archive.read("data"))
        module = described["policy_class"]["__module__"]
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InputError("archive", str(path), f"an archive that Stable-Baselines3 saved ({error!r})") from error
    algorithm: Any = BY_POLICY.get(module)
    if module == ON_POLICY:
        algorithm = stable_baselines3.PPO if "clip_range" in described else stable_baselines3.A2C
    if algorithm is None:
        raise InputError("archive", f"{path}: a policy of {module or 'no known class'}", TAKEN)
    text = f"{path} is unpickled, which runs the code that it carries: load only files that you trust"
    warnings.warn(UnsafeLoadWarning(text), stacklevel=3)
    try:
        model: BaseAlgorithm = algorithm.load(io.BytesIO(data), device="cpu")
    except Exception as error:  # what a pickle runs may raise anything
        allowed = f"an archive that Stable-Baselines3 saved ({type(error).__name__}: {error})"
        raise InputError("archive", str(path), allowed) from error
    return model


def actor_of_model(model: BaseAlgorithm) -> MlpActor:
    """Take the perceptron with which a model acts out of it: mean actions, logits or values.

    Raises:
        InputError: The model has none, or one with other layers than linear ones between tanh or ReLU.
    """
    policy: Any = model.policy
    if hasattr(policy, "mlp_extractor"):  # PPO, A2C, MaskablePPO; of RecurrentPPO what is behind the LSTM
        layers, squash = [*policy.mlp_extractor.policy_net, policy.action_net], bool(policy.squash_output)
    elif hasattr(policy, "q_net"):  # DQN
        layers, squash = list(policy.q_net.q_net), False
    elif hasattr(policy.actor, "latent_pi"):  # SAC, TQC
        layers, squash = [*policy.actor.latent_pi, policy.actor.mu], True
    else:  # TD3, whose last layer is tanh
        layers, squash = list(policy.actor.mu)[:-1], True
    kinds = {type(layer) for layer in layers} - {torch.nn.Linear}
    acting = next(part for part in (getattr(policy, "q_net", None), getattr(policy, "actor", None), policy) if part)
    extractor = type(acting.features_extractor).__name__
    if len(kinds) > 1 or not kinds <= set(ACTIVATIONS) or extractor not in {"FlattenExtractor", "CombinedExtractor"}:
        raise InputError("model.policy", f"{type(policy).__name__} with {extractor}", TAKEN)
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    activation = ACTIVATIONS[kinds.pop()] if kinds else "tanh"
    return MlpActor(tuple((_array(one.weight), _array(one.bias)) for one in linear), activation, squash)


def lstm_of_model(model: BaseAlgorithm) -> LstmActor:
    """Take the LSTM with which a recurrent model acts out of it, with the perceptron behind it.

    Raises:
        InputError: It has several layers.
    """
    policy: Any = model.policy
    lstm = policy.lstm_actor
    if lstm.num_layers > 1:
        raise InputError("model.policy", f"an LSTM of {lstm.num_layers} layers", LSTM)
    bias: NDArray[np.float32] = _array(lstm.bias_ih_l0) + _array(lstm.bias_hh_l0)
    return LstmActor(_array(lstm.weight_ih_l0), _array(lstm.weight_hh_l0), bias, actor_of_model(model))


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().to(torch.float32).cpu().numpy().copy()
    return array
