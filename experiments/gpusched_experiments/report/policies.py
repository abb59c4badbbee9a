"""The policies that experiments run: reference policies and trained agents, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_agents.files.find_agent import PREFIX, shipped_agents
from gpusched_agents.policy import load_policy
from gpusched_baselines.registry import ABLATIONS, make_policy, policy_names

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy


def is_agent(name: str) -> bool:
    """Say whether `name` is that of an agent: `agent:NAME` or `agent:DIR`."""
    return name.startswith(PREFIX)


def known_policies() -> tuple[str, ...]:
    """List every policy that has a name of its own: reference policies, those without a part, and shipped agents."""
    return (*policy_names(), *ABLATIONS, *(f"{PREFIX}{name}" for name in shipped_agents()))


def policy_of(name: str) -> Policy:
    """Make a reference policy with its defaults, or load an agent.

    Raises:
        InputError: There is no such policy or agent, or the agent is not whole.
    """
    return load_policy(name) if is_agent(name) else make_policy(name)
