"""STS-X with constant controls, and the search for the best constants."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import OF_ENERGY, Controls, adaptation_of, control_names, controls_of
from gpusched_baselines.sts_x.plan import Adaptation
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env import Instance, Policy, simulate
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import checks
from gpusched_env.parsing import parse_json
from gpusched_env.provenance import provenance
from gpusched_env.simulator.kernels import Board, Floats, View, at

FIRST_STEP = 0.3  # standard deviation of the first changes of the controls, which are from -1 to 1
LONGER, SHORTER = 1.5, 1.5**-0.25  # the step after a change that is cheaper, and after another one


@dataclass(frozen=True, slots=True)
class TunedStsX(StsX):
    """STS-X with constant controls: those that an action of the adaptation environment sets, the same in all rounds.

    Args:
        constants: Names of controls (`adaptation_env.controls.control_names`) and their values, from -1 to 1; those
            that are not named are 0, and those of GPU types that a cluster does not have are not used.
        name: Name, as tables show it.
    """

    constants: tuple[tuple[str, float], ...] = ()
    name: str = "tuned"

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:
        configs = board.facts.configs
        return adaptation_of(_controls(self.constants, view.gpu_types, configs.tobytes()), board, rate)


@lru_cache(maxsize=64)
def _controls(constants: tuple[tuple[str, float], ...], gpu_types: tuple[str, ...], configs: bytes) -> Controls:
    """Return constants as controls, for the configurations in `configs`; the same in every round of a run."""
    rows = np.frombuffer(configs, dtype=np.int64).reshape(-1, at.CONFIG_COLUMNS)
    return controls_of(action_of(dict(constants), gpu_types), rows, len(gpu_types))


def action_of(constants: Mapping[str, float], gpu_types: Sequence[str], controls: str = "") -> NDArray[np.float64]:
    """Return the constants as an action for a cluster with these GPU types, (`control_count`,).

    Without a name of the set of controls it is `energy` if one of its own is among the constants, else `round`.
    """
    controls = controls or ("energy" if any(name in constants for name in OF_ENERGY) else "round")
    return np.array([constants.get(name, 0.0) for name in control_names(gpu_types, controls)])


def load_tuned(path: str | Path) -> TunedStsX:
    try:
        constants = parse_json(Path(path).read_bytes())["constants"].items()
        values = tuple((str(name), float(value)) for name, value in constants)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("tuned", str(path), f"a file that `gpusched tune` wrote ({error})") from None
    for name, value in values:
        if not -1.0 <= value <= 1.0:
            raise InputError(f"{path}: {name}", value, "a number from -1 to 1")
    return TunedStsX(constants=values, name=f"tuned:{path}")


def save_tuned(path: str | Path, constants: Mapping[str, float], **facts: Any) -> None:
    document = {"constants": dict(constants), "provenance": provenance(**facts)}
    write_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def cost_of(policy: Policy, instance: Instance) -> float:
    """Return the total cost of a policy on an instance [€]."""
    return simulate(instance, policy, record=False).total_eur


def search(
    cost: Callable[[NDArray[np.float64]], float], size: int, evaluations: int, seed: int, first: float | None = None
) -> tuple[NDArray[np.float64], float]:
    """Search for the controls that cost least, from 0 on: a (1+1) evolution strategy with the one-fifth rule.

    Args:
        cost: The cost of controls, (size,), from -1 to 1.
        evaluations: Calls of `cost`, ≥ 0, but one if the cost of 0 is not known.
        first: The cost of 0, if it is known; then it is not evaluated.

    Returns:
        The best controls found, (size,), and their cost.
    """
    rng, left = np.random.default_rng(checks.whole("seed", seed, 0)), checks.whole("evaluations", evaluations, 0)
    best, step = np.zeros(size), FIRST_STEP
    if first is None:
        first, left = cost(best), left - 1
    least = first
    for _ in range(left):
        changed: NDArray[np.float64] = np.clip(best + step * rng.standard_normal(size), -1.0, 1.0)
        found = cost(changed)
        if found < least:
            best, least = changed, found
        step *= LONGER if found == least else SHORTER
    return best, least
