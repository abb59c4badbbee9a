"""Policies by name: shipped ones, agents (`agent:NAME`, `agent:DIR`), `sb3:FILE.zip`, `tuned:FILE`, `FILE.py:NAME`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from gpusched_agents.files.hub import PLACE
from gpusched_agents.files.own_code import OWN, is_own, lacks_module, load_own_policy, whole_name
from gpusched_agents.files.storage import PREFIX, shipped_agents
from gpusched_baselines.registry import POLICIES, make_policy
from gpusched_env.errors import InputError, nearest_first
from gpusched_env.simulator import Policy

SB3 = "sb3:"
TUNED = "tuned:"
OR_AN_AGENT = f"; or agent:NAME, agent:DIR or agent:{PLACE}, sb3:FILE.zip, tuned:FILE, or {OWN}"


_LOADERS = {
    TUNED: "gpusched_baselines.tuned:load_tuned",
    SB3: "gpusched_agents:load_sb3",  # through the package: its error names the missing extra
    PREFIX: "gpusched_agents.policy:load_policy",
}
"""What loads a policy from files, as `module:function`, by the beginning of its name; imported at first use."""


def is_agent(name: str) -> bool:
    """Return whether `name` names files that decide: `agent:NAME`, `sb3:FILE.zip`, `tuned:FILE` or `FILE.py:NAME`."""
    return name.startswith(tuple(_LOADERS)) or is_own_policy(name)


def is_own_policy(name: str) -> bool:
    """Return whether `name` names code of the user: `FILE.py`, `FILE.py:NAME` or `MODULE:NAME`."""
    return name not in POLICIES and not name.startswith(tuple(_LOADERS)) and is_own(name)


def runs_code(name: str) -> bool:
    """Return whether making the policy runs code in the files that it names, which may be anybody's."""
    return name.startswith(SB3) or is_own_policy(name)


def full_name(name: str) -> str:
    """Return the name that means the same in every folder and process."""
    return whole_name(name) if is_own_policy(name) else name


def shown_name(name: str) -> str:
    """Return the name that tables show: of code of the user the policy's own."""
    return make_any_policy(name).name if is_own_policy(name) else name


def maker_of(name: str) -> str:
    """Return what makes the policy `name`, a known name or that of an agent, as `module:function`."""
    if is_own_policy(name):
        return "gpusched_agents.files.own_code:load_own_policy"
    prefix = next((each for each in _LOADERS if name.startswith(each)), None)
    return f"gpusched_baselines.{POLICIES[name].place}" if prefix is None else _LOADERS[prefix]


def archive_path(name: str) -> Path:
    """Return the file that `sb3:FILE` names; like Stable-Baselines3 it adds .zip to a name without it."""
    path = Path(name.removeprefix(SB3))
    found = path if path.suffix == ".zip" or path.is_file() else Path(f"{path}.zip")
    if not found.is_file():
        raise InputError("archive", str(path), "a .zip file that Stable-Baselines3 saved; there is no such file")
    return found


def parameters_path(archive: Path) -> Path:
    """Return the file that has the parameters of the environment of an archive, if it is there."""
    return archive.with_name(f"{archive.name}.env.json")


def known_policies() -> tuple[str, ...]:
    return (*POLICIES, *(f"{PREFIX}{name}" for name in shipped_agents()))


def make_any_policy(name: str) -> Policy:
    """Make the reference policy `name` with its defaults, or load the agent `agent:NAME` or `agent:DIR`.

    `FILE.py:NAME` and `MODULE:NAME` are code of the user, which runs: a policy, or a class of policies that is made
    without arguments. `FILE.py` alone takes its `POLICY`.
    DIR may be a folder of the Hugging Face hub (`gpusched_agents.files.hub`), whose two files are downloaded.
    `tuned:FILE` is STS-X with the constants that `gpusched tune` found. `sb3:FILE.zip` is a model that
    Stable-Baselines3 saved. Reading it runs the code in it; a warning reports that
    (`gpusched_agents.sb3_models.load_sb3`).

    Raises:
        InputError: There is no such policy, agent or file, or it is not whole.
        MissingExtraError: The name is `sb3:FILE.zip`, and torch or Stable-Baselines3 is not installed; or it is of the
            hub, and huggingface_hub is not installed.
    """
    if is_own_policy(name):
        if lacks_module(name):
            near = nearest_first(name, known_policies())
            raise InputError("policy", name, f"one of {near}{OR_AN_AGENT}; there is no module {name.partition(':')[0]}")
        return load_own_policy(name)
    if is_agent(name):
        module, _, function = maker_of(name).partition(":")
        loaded: Policy = getattr(import_module(module), function)(name.removeprefix(TUNED))
        return loaded
    try:
        return make_policy(name)
    except InputError as error:
        raise InputError(error.field, error.value, f"{error.allowed}{OR_AN_AGENT}") from error
