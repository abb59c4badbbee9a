"""Policies by name: reference policies, agents (`agent:NAME`, `agent:DIR`), and models (`sb3:FILE.zip`)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from gpusched_agents.files.storage import PREFIX, shipped_agents
from gpusched_baselines.registry import POLICIES, make_policy
from gpusched_env.errors import InputError
from gpusched_env.simulator import Policy

SB3 = "sb3:"
OR_AN_AGENT = ", or agent:NAME or agent:DIR, or sb3:FILE.zip"


def is_agent(name: str) -> bool:
    """Return whether `name` is that of an agent: `agent:NAME`, `agent:DIR` or `sb3:FILE.zip`."""
    return name.startswith((PREFIX, SB3))


def archive_path(name: str) -> Path:
    """Return the file that `sb3:FILE` names; Stable-Baselines3 adds .zip to a name without it, and so does this.

    Raises:
        InputError: There is no such file.
    """
    path = Path(name.removeprefix(SB3))
    found = path if path.suffix == ".zip" or path.is_file() else Path(f"{path}.zip")
    if not found.is_file():
        raise InputError("archive", str(path), "a .zip file that Stable-Baselines3 saved")
    return found


def known_policies() -> tuple[str, ...]:
    """List every policy that has a name of its own: reference policies, those without a part, and shipped agents."""
    return (*POLICIES, *(f"{PREFIX}{name}" for name in shipped_agents()))


def make_any_policy(name: str) -> Policy:
    """Make the reference policy `name` with its defaults, or load the agent `agent:NAME` or `agent:DIR`.

    `sb3:FILE.zip` is a model that Stable-Baselines3 saved; reading it runs the code that it carries, which a warning
    says (`gpusched_agents.sb3_models.load_sb3`).

    Raises:
        InputError: There is no such policy, agent or file, or it is not whole.
        MissingExtraError: Such a model is to be read, and torch or Stable-Baselines3 is not installed.
    """
    if name.startswith(SB3):
        model: Policy = import_module("gpusched_agents").load_sb3(name)  # from there: it says which extra is missing
        return model
    if is_agent(name):
        # Only those who name an agent wait for what runs it to be imported.
        agent: Policy = import_module("gpusched_agents.policy").load_policy(name)
        return agent
    try:
        return make_policy(name)
    except InputError as error:
        raise InputError(error.field, error.value, f"{error.allowed}{OR_AN_AGENT}") from error
