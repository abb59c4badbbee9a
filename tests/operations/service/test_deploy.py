"""What is given to operators: queries name figures that are exported, and commands have the options that there are."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from commands import gpusched
from gpusched_operations.live.state import Clock

pytest.importorskip("prometheus_client", reason="needs the extra `serve`")
from gpusched_operations.live.metrics import LiveMetrics
from gpusched_operations.service.metrics import ServiceMetrics
from gpusched_operations.service.server import PATHS, figures_of

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
UNITS = sorted(DEPLOY.glob("*.service"))
PROGRAM = "/opt/gpusched/bin/gpusched"
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
QUERIES += [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]


def exported() -> dict[str, set[str]]:
    """Return the labels of every series that a service and a driver export, by its name."""
    pool: Any = SimpleNamespace(waiting=0, replaced=0, alive=lambda: 1)
    registries = (
        ServiceMetrics(PATHS, figures_of(pool, lambda: 0))._registry, LiveMetrics(Clock(), drives=True)._registry
    )  # fmt: skip
    found: dict[str, set[str]] = {}
    for registry in registries:
        for collector in list(registry._collector_to_names):
            labels = set(getattr(collector, "_labelnames", ()))
            for name in registry._collector_to_names[collector] or [m.name for m in collector.collect()]:
                found[name] = labels
                if name.endswith("_bucket"):
                    found[name] |= {"le"}
            for metric in collector.collect():
                found |= {sample.name: found.get(sample.name, labels) for sample in metric.samples}
    return found


def selectors() -> Iterator[tuple[str, str]]:
    for query in QUERIES:
        yield from re.findall(r"(gpusched_\w+)(?:\{(.*?)\})?", query)


def test_every_query_names_figures_and_labels_that_are_exported():
    there = exported()
    named = list(selectors())
    assert {name for name, _ in named} - there.keys() == set()
    for name, inside in named:
        assert set(re.findall(r"(\w+)\s*=", inside)) <= there[name], name
    for query in QUERIES:
        of_query = set().union(*(there[name] for name, _ in re.findall(r"(gpusched_\w+)(\{)?", query)))
        for grouped in re.findall(r"by \((.*?)\)", query):
            assert {label.strip() for label in grouped.split(",")} <= of_query, query


def test_the_dashboard_is_one():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))  # no panel covers another
    assert max(x for x, _ in cells) == 23  # a dashboard has 24 columns
    for panel in PANELS:
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = re.findall(r"by \((.*?)\)", target["expr"])
            assert labels <= {label.strip() for group in grouped for label in group.split(",")}, panel["title"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_run_commands_with_options_that_there_are(unit: Path):
    lines = [line for line in unit.read_text(encoding="utf-8").splitlines() if line.startswith("Exec")]
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line.partition("=")[2].replace("%i", "gpu"))
        assert program == PROGRAM
        assert gpusched(*arguments, "--help").exit_code == 0, line
