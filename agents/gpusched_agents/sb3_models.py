"""Models that Stable-Baselines3 and sb3-contrib saved, as policies (extra `agents`).

Their archives hold pickled objects, and reading one runs any code in it; an agent's folder holds none. The policies use
only plain arrays: the weights of the model's perceptrons.
"""

from __future__ import annotations

import io
import lzma
import warnings
import zipfile
import zlib
from dataclasses import fields
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
from gpusched_agents.sb3_files import parameters_of
from gpusched_baselines.adaptation_env.controls import ROUNDS
from gpusched_env.errors import InputError
from gpusched_env.observation import PARTS
from gpusched_env.parsing import parse_json
from gpusched_env.simulator import Asking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stable_baselines3.common.base_class import BaseAlgorithm

SAVED = {"data", "policy.pth"}


UNREADABLE = (ValueError, RuntimeError, OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
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


def load_sb3(text: str, *, rounds: int | None = None) -> ControlPolicy | JobModelPolicy:
    """Load a model that `model.save` wrote as a policy of the name `text`.

    A model of an adaptation environment becomes a `ControlPolicy`. A model of an environment that asks for every job,
    flat or not, becomes a `JobModelPolicy`. Both decide with the parameters that `save_sb3` wrote beside the archive.

    Args:
        text: `sb3:FILE.zip`, or the file. Reading it runs the code in it: load only files that you trust.
        rounds: Rounds of a step, as in the training of a model that adapts, ≥ 1; None: as written, else 16.

    Warns:
        UnsafeLoadWarning: Always.
        UserWarning: There are no parameters beside it; defaults are assumed.

    Raises:
        InputError: There is no such file, it is not whole, or its model is not a perceptron of these environments.
    """
    path = archive_path(text)
    data = read_archive(path)
    model = _load(path, data)
    known = parameters_of(path, data) if rounds is None or not isinstance(model.action_space, spaces.Box) else {}
    return policy_of_model(model, text, known | ({} if rounds is None else {"rounds": rounds}))


def policy_of_model(model: BaseAlgorithm, text: str, parameters: Mapping[str, Any]) -> ControlPolicy | JobModelPolicy:
    """Return a model as a policy of the name `text`, with these parameters of its environment; see `load_sb3`."""
    actor: ControlActor | LstmActor = actor_of_model(model)
    if isinstance(model, sb3_contrib.RecurrentPPO):
        actor = lstm_of_model(model)
    if isinstance(model.action_space, spaces.Box):
        controls = control_set(actor.inputs, actor.outputs)
        if controls is None:
            raise InputError("model.action_space", model.action_space, "that of an adaptation environment")
        rounds = parameters.get("rounds", ROUNDS)
        return ControlPolicy(name=text, actor=actor, rounds=rounds, controls=controls)
    if isinstance(actor, LstmActor):
        raise InputError("model.action_space", model.action_space, LSTM)
    space = model.observation_space
    parts = (jobs_last if isinstance(actor, JobSetActor) else tuple)(space) if isinstance(space, spaces.Dict) else None
    if parts is not None and {*parts, "jobs"} != set(PARTS):
        raise InputError("model.observation_space", space, "that of GpuClusterEnv")
    asking = Asking(**{field.name: parameters[field.name] for field in fields(Asking) if field.name in parameters})
    masks = isinstance(model, sb3_contrib.MaskablePPO)
    return JobModelPolicy(name=text, actor=actor, parts=parts, masks=masks, asking=asking)


def _load(path: Path, data: bytes) -> BaseAlgorithm:
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
    warnings.warn_explicit(UnsafeLoadWarning(text), None, "load_sb3", 0)  # with no line of source
    try:
        model: BaseAlgorithm = algorithm.load(io.BytesIO(data), device="cpu")
    except Exception as error:  # the code in a pickle may raise anything
        allowed = f"an archive that Stable-Baselines3 saved ({type(error).__name__}: {error})"
        raise InputError("archive", str(path), allowed) from error
    return model
