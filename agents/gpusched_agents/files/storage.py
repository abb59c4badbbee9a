"""An agent as a folder: weights.safetensors, and agent.json that describes it. Reading one runs nothing of it."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_agents.files.description import description_text, read_description
from gpusched_agents.files.weights_file import check_shapes, read_weights, weight_shapes, weights_bytes
from gpusched_env.errors import InputError
from gpusched_env.files import new_folder, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from gpusched_agents.files.description import AgentDescription

DESCRIPTION, WEIGHTS = AGENT_FILES = ("agent.json", "weights.safetensors")
A_FOLDER = f"an agent's folder, with {DESCRIPTION} and {WEIGHTS}"
CONVERT = "gpusched_agents.files.convert.convert_sb3_zip makes one of a Stable-Baselines3 .zip"


def save_agent(
    folder: str | Path, description: AgentDescription, weights: Mapping[str, NDArray[np.float32]]
) -> AgentDescription:
    """Write an agent to `folder`, all of it or nothing; `load_agent` gives it back.

    Args:
        folder: A new or empty folder, or one that holds nothing but an agent, which is replaced.
        description: What is to be known of it; hash and size of the weights are filled in.
        weights: The arrays of its network, float32 and finite, by name.

    Returns:
        The description as it was written.

    Raises:
        InputError: The arrays are not those of its network, not finite or not float32, or the folder holds something
            else or cannot be written.
    """
    data = weights_bytes(weights)
    check_shapes(weights, weight_shapes(description.spec, description.network))
    written = replace(description, weights_sha256=hashlib.sha256(data).hexdigest(), weights_bytes=len(data))
    text = description_text(written)
    with new_folder(folder, ours=AGENT_FILES) as draft:
        write_atomically(draft / WEIGHTS, data)
        write_atomically(draft / DESCRIPTION, text)
    return written


def load_agent(folder: str | Path) -> tuple[AgentDescription, dict[str, NDArray[np.float32]]]:
    """Read the agent that `save_agent` wrote to `folder`.

    Raises:
        InputError: There is no such folder, or it is no agent; a file is missing, not whole, of another version, or
            not the one that was written with the other. Names the file, the field and the value.
    """
    description = load_description(folder)
    path = Path(folder) / WEIGHTS
    try:
        size = path.stat().st_size
        if size != description.weights_bytes:
            raise InputError(str(path), f"{size} bytes", f"{description.weights_bytes} bytes, as {DESCRIPTION} says")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of an agent's folder") from error
    if hashlib.sha256(data).hexdigest() != description.weights_sha256:
        raise InputError(str(path), "other content", f"the weights that {DESCRIPTION} was written with (by their hash)")
    try:
        weights = read_weights(data)
        check_shapes(weights, weight_shapes(description.spec, description.network))
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from error
    return description, weights


def load_description(folder: str | Path) -> AgentDescription:
    """Read the description of the agent in `folder`; the weights are left alone.

    Raises:
        InputError: There is no such folder, or its agent.json is missing or not as `save_agent` wrote it.
    """
    source = Path(folder)
    _check_folder(source)
    path = source / DESCRIPTION
    try:
        return read_description(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of an agent's folder") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: file", str(error), "a whole JSON file, as save_agent writes it") from error
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.value, error.allowed) from error


def _check_folder(source: Path) -> None:
    try:
        if source.is_dir():
            return
        # Stable-Baselines3 adds .zip to a name without it.
        archive = next((path for path in (source, Path(f"{source}.zip")) if path.is_file()), None)
        zipped = archive is not None and (archive.suffix == ".zip" or zipfile.is_zipfile(archive))
    except OSError as error:
        raise InputError("agent", str(source), f"{A_FOLDER} ({error.strerror or error})") from error
    if archive is None:
        raise InputError("agent", str(source), A_FOLDER)
    raise InputError("agent", str(archive), f"{A_FOLDER}; {CONVERT}" if zipped else f"{A_FOLDER}, not a file")


PREFIX = "agent:"
SHIPPED = Path(__file__).parents[1] / "shipped"


def shipped_agents() -> tuple[str, ...]:
    """List the names of the shipped agents."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{DESCRIPTION}")))


def find_agent(text: str) -> Path:
    """Find the folder of an agent; whether it is one shows when it is loaded.

    Args:
        text: `agent:NAME` or `agent:DIR`, or the same without `agent:`. A shipped name wins over a folder of that
            name in the present one, which is `./NAME`.

    Raises:
        InputError: There is no shipped agent of that name, and no such path.
    """
    name = text.removeprefix(PREFIX)
    if name in shipped_agents():
        return SHIPPED / name
    if name and _is_there(name):
        return Path(name)
    shipped = ", ".join(f"{PREFIX}{name}" for name in shipped_agents())
    raise InputError("agent", text, f"{f'one of {shipped} (shipped), or ' if shipped else ''}{A_FOLDER}")


def _is_there(name: str) -> bool:
    """Say whether there is such a folder, or a file that `load_agent` has more to say about."""
    try:
        return Path(name).exists() or Path(f"{name}.zip").exists()
    except OSError:  # such as a name that is too long
        return False
