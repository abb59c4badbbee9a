"""An instance as a table, for notebooks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpusched_env.notebook import facts_table

if TYPE_CHECKING:
    from gpusched_env.model.instance import Instance


def instance_table(instance: Instance) -> str:
    """Say in an HTML table how large the instance is and what energy costs."""
    nodes = Counter(f"{node.gpus} x {node.gpu_type}" for node in instance.nodes)
    tenants = [("tenants", ", ".join(tenant.name for tenant in instance.tenants))] if instance.tenants else []
    facts = [
        ("nodes", f"{len(instance.nodes):,}: " + ", ".join(f"{count} of {kind}" for kind, count in nodes.items())),
        ("GPUs", f"{sum(node.gpus for node in instance.nodes):,}"),
        ("jobs", f"{len(instance.jobs):,} of {len(set(instance.jobs.application.tolist()))} applications"),
        ("submitted", f"from {instance.jobs.submission_s.min():,.0f} s to {instance.jobs.submission_s.max():,.0f} s"),
        ("configurations", f"{len(instance.configurations)}"),
        ("energy price, PUE", f"{instance.energy_price_eur_per_kwh:g} €/kWh, {instance.pue:g}"),
        *tenants,
    ]
    return facts_table(f"Instance {instance.name or 'without a name'}, seed {instance.seed}", facts)
