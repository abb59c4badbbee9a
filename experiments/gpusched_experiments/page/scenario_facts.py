"""What provenance says of a scenario: its TOML, and what is modelled in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.workload import Scenario, scenario_toml
from gpusched_experiments.report.billing import Billing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model import Instance


def scenario_of(facts: Mapping[str, Any]) -> Scenario | None:
    """Give the scenario that these facts hold; None if they hold none that this release can read."""
    settings = facts.get("scenario")
    try:
        return Scenario().replace(settings) if isinstance(settings, dict) else None
    except (InputError, ValueError):
        return None


def scenario_text(facts: Mapping[str, Any]) -> str:
    """Give the scenario as TOML; empty if there is none."""
    scenario = scenario_of(facts)
    return "" if scenario is None else scenario_toml(scenario)


def modelled_of(instance: Instance, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what is modelled: what the command said of it, and what the instance shows."""
    said = facts.get("modelled", ())
    jobs = instance.jobs
    sentences = [str(sentence) for sentence in said] if isinstance(said, list | tuple) else []
    rented = Billing.of(scenario_of(facts)).said()
    sentences += rented
    if not rented:
        sentences.append(
            f"Energy costs {instance.energy_price_eur_per_kwh:g} €/kWh at a PUE of {instance.pue:g}; a node draws "
            "power while any of its GPUs is busy, and none otherwise."
        )
    late = float(jobs.tardiness_weight_eur_per_s.mean()) * 3600.0
    if late > 0.0:
        sentences.append(f"A job costs {late:.3g} € for every hour by which it ends after its due date, on average.")
    if bool(jobs.restart_s.any()):
        sentences.append("A job that changes its GPUs or node makes no progress while it restarts.")
    return tuple(sentences)
