"""Mixtures: scenarios whose workloads are each of one of several others."""

from __future__ import annotations

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.scenario.scenario_file import load_scenario


def variants_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return the scenarios of a mixture, with its name; of a scenario that is none, itself alone.

    Raises:
        InputError: There is no such scenario, it is a mixture too, or a setting is not allowed.
    """
    return tuple(_variant(scenario, number) for number in range(len(scenario.mixture))) or (scenario,)


def variant_of(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario of a seed's workload: number seed modulo how many there are of a mixture.

    Raises:
        InputError: As for `variants_of`, but only this one is loaded.
    """
    return _variant(scenario, seed % len(scenario.mixture)) if scenario.mixture else scenario


def _variant(mixture: Scenario, number: int) -> Scenario:
    where, variant = f"mixture[{number}]", mixture.mixture[number]
    try:
        other = mixture if variant.scenario is None else load_scenario(variant.scenario)
    except InputError as error:
        raise InputError(f"{where}.scenario: {error.field}", error.value, error.allowed) from None
    if other is not mixture and other.mixture:
        raise InputError(f"{where}.scenario", variant.scenario, "a scenario that is not a mixture itself")
    common: dict[str, object] = {"name": mixture.name, "mixture": None, "compare": mixture.compare}
    if other is not mixture:
        common["jobs.count"] = min(mixture.jobs.count, other.jobs.count)
    try:
        made = other.replace({**common, **variant.settings})
    except InputError as error:
        raise InputError(f"{where}.settings: {error.field}", error.value, error.allowed) from None
    if made.mixture or made.name != mixture.name:
        raise InputError(f"{where}.settings", dict(variant.settings), "neither name nor mixture")
    return made
