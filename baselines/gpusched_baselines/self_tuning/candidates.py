"""What self-tuning tries: STS-X with constant controls, and rules.

A choice is 0 for STS-X or the number of a rule, then the values of the controls from -1 to 1, (1 + K,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.index_rules.policy import atc_co_located
from gpusched_baselines.shared_gpus.fill import Fill
from gpusched_baselines.tuned import TunedStsX
from gpusched_env import JobPolicy
from gpusched_env.simulator.kernels import Floats

RULES: tuple[Callable[[], JobPolicy], ...] = (atc_co_located, Fill)
"""Rules that decide jobs in the order of STS-X, by pressure, and place all of them; they have no controls."""


def policy_of(choice: Floats, gpu_types: Sequence[str]) -> JobPolicy:
    return _made(choice.tobytes(), tuple(gpu_types))


@lru_cache(maxsize=64)
def _made(choice: bytes, gpu_types: tuple[str, ...]) -> JobPolicy:
    number, *constants = np.frombuffer(choice).tolist()
    if number > 0:
        return RULES[int(number) - 1]()
    return TunedStsX(constants=tuple(zip(control_names(gpu_types), constants, strict=True)))


def has_controls(choice: Floats) -> bool:
    return bool(choice[0] == 0)


def a_rule(choice: Floats, rng: np.random.Generator) -> Floats:
    """Return the choice of any of the rules."""
    changed = np.zeros_like(choice)
    changed[0] = 1 + rng.integers(len(RULES))
    return changed


def directions(gpu_types: int) -> Floats:
    """Return directions in which controls are changed, (M, K): each alone, and both prices of a type or of sizes."""
    alone = np.eye(len(control_names([""] * gpu_types)))
    sizes = 2 * gpu_types
    together = [alone[v] + alone[v + gpu_types] for v in range(gpu_types)] + [alone[sizes] + alone[sizes + 1]]
    return np.concatenate([alone, together])
