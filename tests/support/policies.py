"""Policies for tests that run all of them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from gpusched_baselines import make_policy

if TYPE_CHECKING:
    from gpusched_env import Policy


def quick_policy(name: str, constructions: int = 20) -> Policy:
    """Make the policy `name`; one that constructs rounds at random does so a few times only."""
    policy: Any = make_policy(name)
    randomised = any(field.name == "constructions" for field in fields(policy))
    return replace(policy, constructions=constructions) if randomised else policy
