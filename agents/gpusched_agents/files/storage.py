"""An agent as a folder: weights.npz, and agent.json that describes it. Reading a folder runs no code in it."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpusched_agents.files.arrays_file import arrays_bytes, read_arrays
from gpusched_agents.files.description import AgentDescription, description_text, read_description
from gpusched_agents.files.hub import HUB, PLACE, hub_folder
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_env.errors import InputError, nearest_first
from gpusched_env.files import new_folder, write_atomically

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def weights_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Return `weights`, float32 and finite, as the bytes of a file; equal arrays have equal bytes."""
    _check(weights)
    return arrays_bytes(weights)


def read_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Read the bytes of `weights_bytes`."""
    try:
        weights = read_arrays(data)
    except ValueError as error:
        raise InputError("weights", str(error), "a whole file of NumPy's with arrays of float32") from error
    _check(weights)
    return weights


def check_shapes(weights: Mapping[str, NDArray[np.float32]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that `weights` have the names and shapes of a network's arrays; the error names the first that has not."""
    for name in sorted(shapes.keys() - weights.keys()):
        raise InputError(f"weights.{name}", None, f"an array of shape {shapes[name]}: it is missing")
    for name in sorted(weights.keys() - shapes.keys()):
        raise InputError(f"weights.{name}", "...", f"no such array; one of {', '.join(sorted(shapes))}")
    for name, shape in shapes.items():
        if weights[name].shape != tuple(shape):
            raise InputError(f"weights.{name}", f"shape {weights[name].shape}", f"shape {tuple(shape)}")


def _check(weights: Mapping[str, NDArray[np.float32]]) -> None:
    if not weights:
        raise InputError("weights", dict(weights), "one array or more")
    for name, array in weights.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError("weights", name, "names of letters, digits, dots, dashes and underscores")
        if not isinstance(array, np.ndarray) or array.dtype != np.float32:
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise InputError(f"weights.{name}", str(kind), "an array of float32")
        if not np.isfinite(array).all():
            raise InputError(f"weights.{name}", "NaN or inf", "finite numbers")


Shapes = dict[str, tuple[int, ...]]


def weight_shapes(spec: AgentSpec, network: NetworkConfig) -> Shapes:
    """Return the shapes of a network's arrays by name: matrices are (outputs, inputs)."""
    from gpusched_baselines.adaptation_env.controls import control_count  # noqa: PLC0415 - only for weights
    from gpusched_baselines.adaptation_env.observation import ROW, feature_count  # noqa: PLC0415

    hidden = network.hidden
    if spec.network == "controls":
        types = len(spec.gpu_types)
        codes = network.job_codes
        inputs = feature_count(types, 0 if codes else network.job_features, network.controls) + codes
        sizes = [inputs, *[hidden] * network.layers, control_count(types, network.controls)]
        layers = [_layer(str(index), sizes[index + 1], sizes[index]) for index in range(network.layers + 1)]
        if codes:
            layers.append({**_layer("code", codes, ROW), "code.score": (codes,)})
        return {name: shape for layer in layers for name, shape in layer.items()}
    return _control_set(spec, network)


def _control_set(spec: AgentSpec, network: NetworkConfig) -> Shapes:
    from gpusched_agents.network.type_set import CONTEXT, PRICES  # noqa: PLC0415 - as above
    from gpusched_baselines.adaptation_env.controls import control_count  # noqa: PLC0415
    from gpusched_baselines.adaptation_env.features import TYPES  # noqa: PLC0415

    ends = {
        "price": (TYPES + CONTEXT + len(spec.gpu_types), PRICES),
        "common": (CONTEXT, control_count(0, network.controls)),
    }
    shapes: Shapes = {}
    for head, (inputs, outputs) in ends.items():
        sizes = [inputs, *[network.hidden] * network.layers, outputs]
        for index in range(network.layers + 1):
            shapes |= _layer(f"{head}.{index}", sizes[index + 1], sizes[index])
    return shapes | ({"known": (network.contexts, CONTEXT), "radius": (1,)} if network.contexts else {})


def _layer(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


DESCRIPTION, WEIGHTS = AGENT_FILES = ("agent.json", "weights.npz")
A_FOLDER = f"an agent's folder, with {DESCRIPTION} and {WEIGHTS}"
OF_SB3 = "a .zip that Stable-Baselines3 saved is sb3:FILE.zip"


def save_agent(
    folder: str | Path, description: AgentDescription, weights: Mapping[str, NDArray[np.float32]]
) -> AgentDescription:
    """Write an agent to `folder`, all of it or nothing; `load_agent` reads it.

    Args:
        folder: A new or empty folder, or one that holds only an agent, which is replaced.
        description: Its description; hash and size of the weights are filled in.
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
        InputError: There is no such folder, or it is not an agent; a file is missing, not whole, of another version, or
            not the one that was written with the other. The error names the file, the field and the value.
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
    """Read the description of the agent in `folder`, without the weights."""
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
    raise InputError("agent", str(archive), f"{A_FOLDER}; {OF_SB3}" if zipped else f"{A_FOLDER}, not a file")


PREFIX = "agent:"
SHIPPED = Path(__file__).parents[1] / "shipped"


def shipped_agents() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{DESCRIPTION}")))


def track_agents() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"tracks/*/{DESCRIPTION}")))


def find_agent(text: str) -> Path:
    """Find the folder of an agent; only loading it checks its content.

    Args:
        text: `agent:NAME` or `agent:DIR`, or the same without `agent:`. A shipped name has precedence over a folder of
            that name in the present one, which is `./NAME`. DIR may be `hf://OWNER/REPO[@REVISION][/SUBFOLDER]`, a
            folder of the Hugging Face hub, whose two files are downloaded.
    """
    name = text.removeprefix(PREFIX)
    if name.startswith(HUB):
        return hub_folder(name, AGENT_FILES)
    if name in shipped_agents():
        return SHIPPED / name
    if name in track_agents():
        return SHIPPED / "tracks" / name
    if name and _is_there(name):
        return Path(name)
    shipped = nearest_first(PREFIX + name, [f"{PREFIX}{each}" for each in (*shipped_agents(), *track_agents())], 300)
    raise InputError("agent", text, f"{f'one of {shipped}; or ' if shipped else ''}{A_FOLDER}, or {PLACE}")


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists() or Path(f"{name}.zip").exists()
    except OSError:  # such as a name that is too long
        return False
