"""HiveD's public cases: which pods go where, which wait, which they preempt, and which are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_reproductions.systems.hived.cells import Answer
from gpusched_reproductions.systems.hived.scheduler import Scheduler
from gpusched_reproductions.systems.validation import Check, Measured

DATA = Path("../shared/data/hived")
SOURCE = "github.com/microsoft/hivedscheduler 66f26ac (MIT), its algorithm's tests and design example"
BACKTRACKING = ("pod39", "pod40")
ALLOWED = {"0.0.3.2", "0.0.3.3", "0.0.4.3"}
"""Two pods on an empty cluster, and the nodes that they may use: of what is split for the second only the last will do.
(The cases do not say which nodes their authors allow; these are the ones that they expect to be used.)"""


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases: gangs, pods, what is expected of them and which of them are refused."""

    gangs: dict[str, list[list[int]]]
    pods: dict[str, dict[str, Any]]
    in_order: list[str]
    refused: list[list[str]]
    placements: dict[str, dict[str, Any]]
    victims: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Cases:
        """Read the file of cases."""
        config = json.loads(path.read_text(encoding="utf-8"))
        names = ("gangs", "pods", "should_succeed", "should_be_refused", "expected_placement", "expected_victims")
        return cls(*(config[name] for name in names))

    def expected(self, pod: str) -> Answer:
        """Return what is expected of a pod."""
        place = self.placements.get(pod, {"node": "", "gpus": []})
        return Answer(place["node"], tuple(place["gpus"]), frozenset(self.victims.get(pod, ())))


def run(quick: bool) -> Measured:  # noqa: ARG001 - it takes no time
    """Schedule the pods of the cases on the cluster of the design example."""
    config, cases = read_cluster(), Cases.read(DATA / "cases.json")
    placed, last = in_order(config, cases), backtracking(config, cases)
    agree = sum(answer == cases.expected(pod) for pod, answer in placed.items())
    all_of = float(len(placed))
    back = sum(answer == cases.expected(pod) for pod, answer in last.items())
    refused = float(sum(refusals(config, cases).values()) + refuses_too_much(config))
    cases_refused = float(len(cases.refused) + 1)
    return Measured(
        (
            Check("pods 1-9 and 16-25 as expected", float(agree), all_of, all_of, all_of, SOURCE),
            Check("pods 39 and 40 as expected", float(back), 2.0, 2.0, 2.0, SOURCE),
            Check("requests and assignments refused as expected", refused, cases_refused, cases_refused, cases_refused),
        )
    )


def read_cluster() -> Any:
    """Read the configuration of the design example's cluster."""
    import yaml  # type: ignore[import-untyped] # noqa: PLC0415 - only this part needs it

    return yaml.safe_load((DATA / "cluster.yaml").read_text(encoding="utf-8"))


def in_order(config: Mapping[str, Any], cases: Cases) -> dict[str, Answer]:
    """Schedule the pods that must be scheduled, one after the other."""
    scheduler = Scheduler(config)
    return {pod: _ask(scheduler, cases, pod, None) for pod in cases.in_order}


def backtracking(config: Mapping[str, Any], cases: Cases) -> dict[str, Answer]:
    """Schedule the pods of `BACKTRACKING` on the empty cluster."""
    scheduler = Scheduler(config)
    return {pod: _ask(scheduler, cases, pod, ALLOWED) for pod in BACKTRACKING}


def refusals(config: Mapping[str, Any], cases: Cases) -> dict[str, bool]:
    """Return for every group of pods that must be refused, by its first, whether one of it is."""
    found = {}
    for pods in cases.refused:
        scheduler = Scheduler(config)
        found[pods[0]] = False
        for pod in pods:
            try:
                _ask(scheduler, cases, pod, None)
            except InputError:
                found[pods[0]] = True
    return found


def refuses_too_much(config: Mapping[str, Any]) -> bool:
    """Return whether virtual clusters that do not fit are refused: with one more cell than there is room for."""
    more = copy.deepcopy(dict(config))
    more["virtualClusters"]["VC1"]["virtualCells"][0]["cellNumber"] += 3
    try:
        Scheduler(more)
    except InputError:
        return True
    return False


def _ask(scheduler: Scheduler, cases: Cases, pod: str, allowed: set[str] | None) -> Answer:
    config = cases.pods[pod]
    return scheduler.schedule(pod, config, cases.gangs[config["gang"]], allowed)
