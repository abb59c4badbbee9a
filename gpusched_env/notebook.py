"""Small HTML tables of values for notebooks, with all markup escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

CELL = "text-align:left;padding:1px 10px 1px 0;border:0"


def facts_table(title: str, facts: Iterable[tuple[str, object]], below: str = "") -> str:
    rows = "".join(
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(str(fact))}</td></tr>'
        for name, fact in facts
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{below}</div>"


def dotted_names(values: Mapping[str, object], section: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from dotted_names(value, f"{section}{name}.")
        else:
            yield f"{section}{name}", value


def instance_table(instance: Any) -> str:
    """Return an HTML table with the size of the instance, the price of energy and its mechanisms."""
    nodes = Counter(f"{node.gpus} x {node.gpu_type}" for node in instance.nodes)
    names = ", ".join(own.mechanism for own in instance.mechanisms)
    facts = [
        ("nodes", f"{len(instance.nodes):,}: " + ", ".join(f"{count} of {kind}" for kind, count in nodes.items())),
        ("GPUs", f"{sum(node.gpus for node in instance.nodes):,}"),
        ("jobs", f"{len(instance.jobs):,} of {len(set(instance.jobs.application.tolist()))} applications"),
        ("submitted", f"from {instance.jobs.submission_s.min():,.0f} s to {instance.jobs.submission_s.max():,.0f} s"),
        ("configurations", f"{len(instance.configurations)}"),
        ("energy price, PUE", f"{instance.energy_price_eur_per_kwh:g} €/kWh, {instance.pue:g}"),
        *([("mechanisms", names)] if names else []),
    ]
    return facts_table(f"Instance {instance.name or 'without a name'}, seed {instance.seed}", facts)
