"""Which policies a service answers for: reference policies, shipped agents, and agents named at its start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent, known_policies, make_any_policy
from gpusched_agents.files.storage import PREFIX, find_agent, load_description
from gpusched_baselines.registry import POLICIES, usual_policy_names
from gpusched_env.errors import InputError
from gpusched_experiments.report.code_version import agent_version, code_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.simulator import Policy


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of a service, by the names that requests use.

    Args:
        names: Names of the policies: `NAME`, `agent:NAME`.
        agents: Folders of agents that the operator names, by name: `agent:NAME` in requests.

    Raises:
        InputError: There is no such policy, an agent is not whole, or two have one name.
    """

    names: tuple[str, ...]
    agents: Mapping[str, str]

    @classmethod
    def of(cls, names: str = "all", agents: Mapping[str, str] | None = None) -> PolicyCatalogue:
        """Take the policies of a list with commas, `usual`, or `all`; agents of the operator's own come to them."""
        own = dict(agents or {})
        listed = [name.strip() for name in names.split(",")]
        if listed == ["all"]:
            listed = list(_answering())
        elif listed == ["usual"]:
            listed = [*usual_policy_names(), *(n for n in known_policies() if is_agent(n))]
        for name in listed:
            if name not in _answering():
                raise InputError("--policies", name, f"all, usual, or some of {', '.join(_answering())}")
        for name in own:
            if not name or f"{PREFIX}{name}" in known_policies():
                raise InputError("--agent", name, "a name that no shipped agent has")
        made = cls((*dict.fromkeys(listed), *(f"{PREFIX}{name}" for name in own)), own)
        for name in own:
            _check(made, name)
        return made

    def make(self, name: str) -> Policy:
        """Make a policy, once for all requests: policies keep nothing of a run.

        Raises:
            InputError: The service has none with this name.
        """
        if name not in self.names:
            raise InputError("policy", name, f"one of {', '.join(self.names)}")
        return _made(self._given(name))

    def version(self, name: str) -> str:
        """Give a fingerprint of the code and the files that decide."""
        return f"{code_version()}-{agent_version(self._given(name))}" if is_agent(name) else code_version()

    def entries(self) -> list[dict[str, object]]:
        """Describe every policy, for `GET /v1/policies`."""
        return [self._entry(name) for name in self.names]

    def _given(self, name: str) -> str:
        """Give the name under which the other packages know a policy."""
        own = self.agents.get(name.removeprefix(PREFIX)) if is_agent(name) else None
        return name if own is None else f"{PREFIX}{own}"

    def _entry(self, name: str) -> dict[str, object]:
        if is_agent(name):
            spec = load_description(find_agent(self._given(name))).spec
            line = f"Learned; for up to {spec.max_configurations} {', '.join(spec.kinds)} configurations"
        else:
            line = POLICIES[name].line
        policy = self.make(name)
        return {"name": name, "line": line, "preemption": bool(policy.preemption), "version": self.version(name)}


def _answering() -> tuple[str, ...]:
    """Give the policies that can answer: not those that replay what really ran, which no request tells."""
    return tuple(name for name in known_policies() if is_agent(name) or not POLICIES[name].replays)


def _check(policies: PolicyCatalogue, name: str) -> None:
    """Check that an agent of the operator's own can be loaded, before anything is compiled."""
    try:
        policies.make(f"{PREFIX}{name}")
    except InputError as error:
        raise InputError(f"--agent {name}", error.value, error.allowed) from None


@cache
def _made(given: str) -> Policy:
    return make_any_policy(given)
