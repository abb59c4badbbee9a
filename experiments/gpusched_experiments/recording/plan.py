"""What is recorded: policies that can drive the environment, and how it asks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, cast

from gpusched_agents.any_policy import make_any_policy
from gpusched_env.envs.rollout import asking_of
from gpusched_env.errors import MissingExtraError
from gpusched_env.simulator import Asking, JobPolicy
from gpusched_env.simulator.policy import AS_A_POLICY

RANDOM = "random"
"""Name of the policy that takes one of the allowed actions, each as likely."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded of one policy.

    Attributes:
        name: Its name.
        policy: The policy; None for `RANDOM`.
        settings: How the environment asks it, as keywords of the environment, where that differs from the defaults.
    """

    name: str
    policy: JobPolicy | None
    settings: Mapping[str, Any]


def recording_of(name: str) -> Recording:
    """Return what is recorded of the policy `name`, an agent's (`agent:NAME`, `agent:DIR`), or `RANDOM`.

    Raises:
        InputError: There is none of this name, or it cannot drive the environment.
    """
    if name == RANDOM:
        return Recording(name, None, _settings(AS_A_POLICY))
    policy = make_any_policy(name)
    return Recording(name, cast("JobPolicy", policy), _settings(asking_of(policy)))


def dataset_id(namespace: str, policy: str) -> str:
    """Return the name by which Minari loads a dataset: `dataset_id("busy", "edf")` is `busy/edf-v0`."""
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in policy)
    return f"{namespace}/{plain}-v0"


def check_minari() -> None:
    """Check that datasets can be written.

    Raises:
        MissingExtraError: What the extra `minari` brings is not installed.
    """
    for package in ("minari", "h5py"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "minari", "datasets")


def _settings(asking: Asking) -> dict[str, Any]:
    usual = Asking()
    values = {field.name: getattr(asking, field.name) for field in fields(Asking)}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}
