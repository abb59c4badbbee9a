"""What self-tuning tries: variants of STS-X, each with constant controls, and rules.

A choice is the number of a variant or a rule, then the values of the controls from -1 to 1, (1 + K,). So 0 is STS-X.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.registry import make_policy
from gpusched_baselines.tuned import TunedStsX
from gpusched_env import JobPolicy
from gpusched_env.simulator.kernels import Floats

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"compares_placements": False},
    {"type_priced": False},
    {"counts_restarts": False},
    {"cluster_slack": False},
    {"consolidates": False},
)
"""Settings of STS-X; the first ones are its defaults."""
RULES = ("atc-co-located", "fill", "edf-preemptive")
"""Rules that place all active jobs in every round, as STS-X does; they have no controls."""


def policy_of(choice: Floats, gpu_types: Sequence[str]) -> JobPolicy:
    return _made(choice.tobytes(), tuple(gpu_types))


@lru_cache(maxsize=64)
def _made(choice: bytes, gpu_types: tuple[str, ...]) -> JobPolicy:
    number, *constants = np.frombuffer(choice).tolist()
    if number >= len(VARIANTS):
        rule: Any = make_policy(RULES[int(number) - len(VARIANTS)])
        return rule
    named = tuple(zip(control_names(gpu_types), constants, strict=True))
    return TunedStsX(**VARIANTS[int(number)], constants=named)


def has_controls(choice: Floats) -> bool:
    return bool(choice[0] < len(VARIANTS))


def others(choice: Floats) -> list[Floats]:
    """Return the same choice with every other variant, then the rules."""
    found = []
    for number in range(len(VARIANTS) + len(RULES)):
        changed = choice.copy()
        changed[0] = number
        changed[1:] *= number < len(VARIANTS)
        if number != choice[0]:
            found.append(changed)
    return found


def directions(gpu_types: int) -> Floats:
    """Return directions in which controls are changed, (M, K): each alone, and both prices of a type or of sizes."""
    alone = np.eye(len(control_names([""] * gpu_types)))
    sizes = 2 * gpu_types
    together = [alone[v] + alone[v + gpu_types] for v in range(gpu_types)] + [alone[sizes] + alone[sizes + 1]]
    return np.concatenate([alone, together])
