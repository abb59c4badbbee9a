"""Turn what Stable-Baselines3 saved into an agent's folder (extra `agents`).

Its archives hold pickled objects, and unpickling runs whatever code they carry; an agent's folder holds none.
"""

from __future__ import annotations

import hashlib
import io
import warnings
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from gymnasium import spaces

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.files.storage import save_agent
from gpusched_agents.network.policies import export_model
from gpusched_agents.training.algorithms import CLASSES
from gpusched_env.errors import InputError
from gpusched_env.observation import observation_space
from gpusched_env.provenance import provenance

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.spec import AgentSpec

PARTS = {"data", "policy.pth"}
PACKAGES = ("stable-baselines3", "sb3-contrib", "torch")


class UnsafeLoadWarning(UserWarning):
    """A file is about to be unpickled, which runs the code that it carries."""


def convert_sb3_zip(
    archive: str | Path, algorithm: str, folder: str | Path, spec: AgentSpec, *, name: str
) -> AgentDescription:
    """Write the agent that Stable-Baselines3 saved in `archive` to `folder`.

    Args:
        archive: A .zip file that `model.save` wrote. Reading it runs the code that it carries: convert only files that
            you trust.
        algorithm: What wrote it: `a2c`, `dqn`, `maskable-ppo` or `ppo`.
        folder: A new or empty folder, or one that holds nothing but an agent, which is replaced.
        spec: What it was trained for; the archive does not say.
        name: Name of the agent.

    Returns:
        The description as it was written.

    Warns:
        UnsafeLoadWarning: Always.

    Raises:
        InputError: There is no such archive, it is not whole or not of this algorithm, its policy is none of ours, it
            was not trained for `spec`, or the folder holds something else.
    """
    if algorithm not in CLASSES:
        raise InputError("algorithm", algorithm, f"one of {', '.join(CLASSES)}")
    data = read_archive(Path(archive))
    text = f"{archive} is unpickled, which runs the code that it carries: convert only files that you trust"
    warnings.warn(UnsafeLoadWarning(text), stacklevel=2)
    try:
        model = CLASSES[algorithm][0].load(io.BytesIO(data), device="cpu")
    except Exception as error:  # what a pickle runs may raise anything
        allowed = f"an archive that {algorithm} saved ({type(error).__name__}: {error})"
        raise InputError("archive", str(archive), allowed) from error
    network, config, weights = export_model(model)
    _check_fit(model, network, spec)
    described = AgentDescription(
        name=name,
        algorithm=algorithm,
        spec=spec,
        config=config,
        provenance=provenance(
            None,
            converted_from=Path(archive).name,
            archive_sha256=hashlib.sha256(data).hexdigest(),
            steps=model.num_timesteps,
            seed=model.seed,
            packages={package: version(package) for package in PACKAGES},
        ),
    )
    return save_agent(folder, described, weights)


def read_archive(path: Path) -> bytes:
    """Return the bytes of an archive that has the parts of a saved model.

    Raises:
        InputError: There is no such archive, or it is not whole.
    """
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            missing = sorted(PARTS - set(archive.namelist()))
    except OSError as error:
        raise InputError("archive", str(path), f"a file that can be read ({error.strerror or error})") from error
    except zipfile.BadZipFile as error:
        raise InputError("archive", str(path), f"a whole .zip file that Stable-Baselines3 saved ({error})") from error
    if missing:
        raise InputError(
            "archive", str(path), f"a .zip file that Stable-Baselines3 saved; this one has no {missing[0]}"
        )
    return data


def _check_fit(model: BaseAlgorithm, network: str, spec: AgentSpec) -> None:
    """Check that the model may be what `spec` says: its network, and the sizes of what it sees and chooses from."""
    if network != spec.network:
        raise InputError("spec.network", spec.network, f"{network}, which the archive holds")
    sees = observation_space(len(spec.configurations), len(spec.gpu_types))
    if model.observation_space != sees:
        raise InputError("spec", str(model.observation_space), f"that of the model's training, which sees {sees}")
    if model.action_space != spaces.Discrete(1 + len(spec.configurations)):
        raise InputError(
            "spec", str(model.action_space), f"Discrete({1 + len(spec.configurations)}), one action for each"
        )
