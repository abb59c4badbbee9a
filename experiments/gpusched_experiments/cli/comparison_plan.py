"""What a comparison runs: the options, else the scenario's section `compare`, else the defaults."""

import os
from dataclasses import dataclass

from gpusched_agents.any_policy import OR_AN_AGENT, is_agent, make_any_policy
from gpusched_baselines.registry import policy_names, usual_policy_names
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import Policy
from gpusched_env.workload import Scenario, parse_seeds
from gpusched_experiments.cli.policies import parse_policies

USUAL_SEEDS = "0-39"
USUAL_SEEDS_OF_A_TRACE = "0-4"  # its runs are long, and its jobs the same for every seed
USUAL_REFERENCE = "edf"
MOST_WORKERS = 4  # by default


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """Everything that is decided before the first run.

    Attributes:
        scenario: The scenario; its section `compare` names the policies and seeds as they are run, so that the
            scenario alone is enough to compare the same again.
        policies: The policies, with different names.
        seeds: The seeds, each once.
        reference: Name of the policy that savings are measured against, one of the policies.
        workers: Number of processes, ≥ 1.
    """

    scenario: Scenario
    policies: tuple[Policy, ...]
    seeds: tuple[int, ...]
    reference: str
    workers: int

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.policies) * len(self.seeds)

    @property
    def title(self) -> str:
        """Say what is run."""
        return f"{len(self.policies)} policies, {len(self.seeds)} seeds"

    @classmethod
    def of(
        cls, scenario: Scenario, policies: str | None, seeds: str | None, reference: str | None, workers: int | None
    ) -> "ComparisonPlan":
        """Put options and scenario together; an option that is None was not given.

        Raises:
            InputError: A value is not allowed; names the option or the setting that it stands in.
        """
        chosen = _policies_of_file(scenario) if policies is None else parse_policies(policies)
        names = [policy.name for policy in chosen]
        text = _seeds_of_file(scenario) if seeds is None else seeds.strip()
        numbers = parse_seeds(text, "--seeds")
        if workers is not None:
            checks.whole("--workers", workers)
        against = _reference(scenario, reference, names)
        used = {"policies": names, "seeds": text, "reference": reference, "workers": workers}
        values = {f"compare.{name}": value for name, value in used.items() if value is not None}
        return cls(
            scenario=scenario.replace(values),
            policies=chosen,
            seeds=numbers,
            reference=against,
            workers=workers or scenario.compare.workers or min(MOST_WORKERS, os.cpu_count() or 1),
        )


def _policies_of_file(scenario: Scenario) -> tuple[Policy, ...]:
    known = policy_names()
    names = usual_policy_names() if scenario.compare.policies is None else scenario.compare.policies
    for index, name in enumerate(names):
        if name not in known and not is_agent(name):
            raise InputError(f"compare.policies[{index}]", name, f"one of {', '.join(known)}{OR_AN_AGENT}")
    return tuple(make_any_policy(name) for name in names)


def _seeds_of_file(scenario: Scenario) -> str:
    usual = USUAL_SEEDS if scenario.trace is None else USUAL_SEEDS_OF_A_TRACE
    return scenario.compare.seeds or usual


def _reference(scenario: Scenario, wanted: str | None, names: list[str]) -> str:
    field, name = ("--reference", wanted) if wanted is not None else ("compare.reference", scenario.compare.reference)
    if name is None:
        return USUAL_REFERENCE if USUAL_REFERENCE in names else names[0]
    if name not in names:
        raise InputError(field, name, f"one of the policies compared: {', '.join(names)}")
    return name
