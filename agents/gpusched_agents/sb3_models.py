"""Models that Stable-Baselines3 and sb3-contrib saved, as policies (extra `agents`).

Their archives hold pickled objects, and reading one runs any code in it; an agent's folder holds none. The policies use
only plain arrays: the weights of the model's perceptrons.
"""

from __future__ import annotations

import io
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sb3_contrib
import stable_baselines3
from gymnasium import spaces

from gpusched_agents.any_policy import archive_path
from gpusched_agents.network.actors import ControlActor, JobSetActor, LstmActor
from gpusched_agents.network.control_models import LSTM, TAKEN, actor_of_model, jobs_last, lstm_of_model
from gpusched_agents.network.control_policy import ControlPolicy, control_set
from gpusched_agents.policy import JobModelPolicy
from gpusched_env.errors import InputError
from gpusched_env.observation import PARTS
from gpusched_env.parsing import parse_json

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

SAVED = {"data", "policy.pth"}


UNREADABLE = (ValueError, RuntimeError, OSError, EOFError, zlib.error, zipfile.BadZipFile)
"""What reading an archive raises: also where it is encrypted, or compressed in a way that Python does not know."""


class UnsafeLoadWarning(UserWarning):
    """A file is about to be unpickled, which runs the code in it."""


def read_archive(path: Path) -> bytes:
    """Return the bytes of an archive that has the parts of a saved model."""
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            missing = sorted(SAVED - set(archive.namelist()))
    except OSError as error:
        raise InputError("archive", str(path), f"a file that can be read ({error.strerror or error})") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InputError("archive", str(path), f"a whole .zip file that Stable-Baselines3 saved ({error})") from error
    if missing:
        raise InputError(
            "archive", str(path), f"a .zip file that Stable-Baselines3 saved; this one has no {missing[0]}"
        )
    return data


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


def load_sb3(text: str, *, rounds: int = 16) -> ControlPolicy | JobModelPolicy:
    """Load a model that `model.save` wrote as a policy of the name `text`.

    A model of an adaptation environment becomes a `ControlPolicy`. A model of an environment that asks for every job,
    flat or not, becomes a `JobModelPolicy`, with the default settings of these environments.

    Args:
        text: `sb3:FILE.zip`, or the file. Reading it runs the code in it: load only files that you trust.
        rounds: Rounds of a step, as in the training of a model that adapts, ≥ 1.

    Warns:
        UnsafeLoadWarning: Always.

    Raises:
        InputError: There is no such file, it is not whole, or its model is not a perceptron of these environments.
    """
    model = _load(archive_path(text))
    actor: ControlActor | LstmActor = actor_of_model(model)
    if isinstance(model, sb3_contrib.RecurrentPPO):
        actor = lstm_of_model(model)
    if isinstance(model.action_space, spaces.Box):
        controls = control_set(actor.inputs, actor.outputs)
        if controls is None:
            raise InputError("model.action_space", model.action_space, "that of an adaptation environment")
        return ControlPolicy(name=text, actor=actor, rounds=rounds, controls=controls)
    if isinstance(actor, LstmActor):
        raise InputError("model.action_space", model.action_space, LSTM)
    space = model.observation_space
    parts = (jobs_last if isinstance(actor, JobSetActor) else tuple)(space) if isinstance(space, spaces.Dict) else None
    if parts is not None and {*parts, "jobs"} != set(PARTS):
        raise InputError("model.observation_space", space, "that of GpuClusterEnv")
    return JobModelPolicy(name=text, actor=actor, parts=parts, masks=isinstance(model, sb3_contrib.MaskablePPO))


def _load(path: Path) -> BaseAlgorithm:
    data = read_archive(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            described = parse_json(archive.read("data"))
        module = described["policy_class"]["__module__"]
    except (*UNREADABLE, LookupError, TypeError) as error:
        raise InputError("archive", str(path), f"an archive that Stable-Baselines3 saved ({error!r})") from error
    algorithm: Any = BY_POLICY.get(module)
    if module == ON_POLICY:
        algorithm = stable_baselines3.PPO if "clip_range" in described else stable_baselines3.A2C
    if algorithm is None:
        raise InputError("archive", f"{path}: a policy of {module or 'no known class'}", TAKEN)
    text = f"{path} is unpickled, which runs the code in it: load only files that you trust"
    warnings.warn(UnsafeLoadWarning(text), stacklevel=3)  # to the caller of `load_sb3`
    try:
        model: BaseAlgorithm = algorithm.load(io.BytesIO(data), device="cpu")
    except Exception as error:  # the code in a pickle may raise anything
        allowed = f"an archive that Stable-Baselines3 saved ({type(error).__name__}: {error})"
        raise InputError("archive", str(path), allowed) from error
    return model
