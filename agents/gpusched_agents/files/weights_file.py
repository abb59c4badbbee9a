"""An agent's weights as the bytes of a safetensors file: arrays and their names, nothing that runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def weights_bytes(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Write `weights`: the same arrays give the same bytes.

    Args:
        weights: Arrays of any shapes, float32 and finite, by names of letters, digits, dots, dashes and underscores.

    Raises:
        InputError: There are none, or an array or a name is another one.
    """
    _check(weights)
    # safetensors copies memory as it lies, so strided views must be laid out first.
    return save({name: np.array(weights[name], order="C") for name in sorted(weights)})


def read_weights(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Read what `weights_bytes` wrote; the arrays are the caller's own.

    Raises:
        InputError: It is no safetensors file, or holds other arrays than float32 and finite ones.
    """
    try:
        weights = load(data)
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a kind of number that NumPy does not have
        raise InputError("weights", str(error), "a whole safetensors file with arrays of float32") from error
    _check(weights)
    return {name: array.copy() for name, array in weights.items()}


def check_shapes(weights: Mapping[str, NDArray[np.float32]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that `weights` are those of a network, whose arrays have these names and shapes.

    Raises:
        InputError: An array is missing, unknown, or has another shape; names the first.
    """
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
