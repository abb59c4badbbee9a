"""Decisions before the first request, so that nobody waits for what is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.simulator import simulate
from gpusched_env.simulator.policy import can_decide
from gpusched_experiments.report.warm_up import tiny_instance
from gpusched_experiments.service.client import ServicePolicy

if TYPE_CHECKING:
    from gpusched_experiments.service.decision import Decider


def warm_up_service(decider: Decider) -> None:
    """Run every policy once on a tiny instance through requests and answers."""
    instance = tiny_instance()
    for name in decider.policies.names:
        if can_decide(decider.policies.make(name), instance):
            asking = ServicePolicy("", name, instance, post=lambda _, body: decider(body))
            simulate(instance, asking, record=False)
