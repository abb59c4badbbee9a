"""Archives of Stable-Baselines3, and beside them the parameters of their environments (extra `agents`)."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from gpusched_agents.any_policy import parameters_path
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_env.workload import Scenario

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

OF_MANY = ("autoreset_mode", "max_episode_steps", "num_envs", "render_mode", "step_limit", "threads")
"""Parameters that change no decision: of vector environments, pictures and the end of episodes."""


def save_sb3(model: BaseAlgorithm, file: str | Path) -> None:
    """Save a model, and next to it the id and the parameters of its environment; `sb3:FILE` then decides with these.

    Args:
        model: A model whose environments `gymnasium.make`, `make_vec_env` or `make_sb3_vec_env` made.
        file: The archive; `.zip` is added where it is missing. The parameters are in the file with `.env.json` behind
            its name. Both are written to temporary files and renamed.

    Raises:
        InputError: The environments were made in another way, or JSON cannot hold one of the parameters.
    """
    described, archive, content = environment_of(model), archive_of(file), io.BytesIO()
    model.save(content)
    digest = hashlib.sha256(content.getvalue()).hexdigest()
    write_atomically(archive, content.getvalue())
    write_atomically(parameters_path(archive), json.dumps({**described, "archive_sha256": digest}, indent=1) + "\n")


class SaveSb3(BaseCallback):
    """A callback that saves the model with `save_sb3` each time it is called.

    Use it within another callback: `EvalCallback(..., callback_on_new_best=SaveSb3(file))` or
    `EveryNTimesteps(n_steps, SaveSb3(file))`.

    Args:
        file: The archive, as for `save_sb3`.
    """

    def __init__(self, file: str | Path) -> None:
        super().__init__()
        self.file = file

    def _init_callback(self) -> None:
        environment_of(self.model)  # an error comes before the training

    def _on_step(self) -> bool:
        save_sb3(self.model, self.file)
        return True


def archive_of(file: str | Path) -> Path:
    return Path(file) if Path(file).suffix == ".zip" else Path(f"{file}.zip")


def environment_of(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the id and the parameters of the model's environment, in types of JSON."""
    env: Any = model.get_env()
    spec = None if env is None else env.get_attr("spec")[0]
    if spec is None:
        made = "environments of gymnasium.make, make_vec_env or make_sb3_vec_env"
        raise InputError("model.env", "environments without an id", made)
    given = {name: value for name, value in spec.kwargs.items() if name not in OF_MANY}
    return {"id": spec.id, "parameters": {name: _plain(name, value) for name, value in given.items()}}


def parameters_of(archive: Path, data: bytes) -> dict[str, Any]:
    """Return the parameters beside an archive; where there are none, or those of another one, none, with a warning.

    Args:
        archive: The archive.
        data: Its content.
    """
    file = parameters_path(archive)
    text = f"no environment parameters beside {archive}; defaults are assumed"
    if file.is_file():
        try:
            described = parse_json(file.read_bytes())
            parameters: dict[str, Any] = dict(described["parameters"])
            digest = described["archive_sha256"]
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(str(file), str(error), "what gpusched_agents.save_sb3 wrote") from error
        if digest == hashlib.sha256(data).hexdigest():
            return parameters
        text = f"the environment parameters beside {archive} are those of another archive; defaults are assumed"
    warnings.warn_explicit(text, UserWarning, "load_sb3", 0)  # with no line of source
    return {}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Scenario):
        return value.model_dump(mode="json", exclude_defaults=True)
    try:
        return json.loads(json.dumps(value, default=_converted))
    except (TypeError, ValueError) as error:
        raise InputError(name, value, "what JSON can hold: numbers, texts, lists and mappings") from error


def _converted(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path | range):
        return str(value) if isinstance(value, Path) else list(value)
    raise TypeError(type(value).__name__)
