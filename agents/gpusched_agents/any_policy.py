"""The one door for a name that is a policy's or an agent's: `NAME`, `agent:NAME` or `agent:DIR`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gpusched_agents.files.find_agent import PREFIX, shipped_agents
from gpusched_baselines.registry import POLICIES, make_policy
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy

OR_AN_AGENT = ", or agent:NAME or agent:DIR"


def is_agent(name: str) -> bool:
    """Say whether `name` is that of an agent: `agent:NAME` or `agent:DIR`."""
    return name.startswith(PREFIX)


def known_policies() -> tuple[str, ...]:
    """List every policy that has a name of its own: reference policies, those without a part, and shipped agents."""
    return (*POLICIES, *(f"{PREFIX}{name}" for name in shipped_agents()))


def make_any_policy(name: str) -> Policy:
    """Make the reference policy `name` with its defaults, or load the agent `agent:NAME` or `agent:DIR`.

    Raises:
        InputError: There is no such policy or agent, or the agent is not whole.
    """
    if is_agent(name):
        # Only those who name an agent wait for what runs it to be imported.
        agent: Policy = import_module("gpusched_agents.policy").load_policy(name)
        return agent
    try:
        return make_policy(name)
    except InputError as error:
        raise InputError(error.field, error.value, f"{error.allowed}{OR_AN_AGENT}") from error
