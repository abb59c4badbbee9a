"""HiveD's published answers beside our allocator's: the pods of its tests, and random requests to its program."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_reproductions.data_sources import DATA
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.hived import episodes
from gpusched_reproductions.systems.hived.cells import Allocator, Request
from gpusched_reproductions.systems.hived.configuration import cluster_of, read_cluster

CASES = DATA / "hived"
SOURCE = "github.com/microsoft/hivedscheduler 66f26ac (MIT), hived_algorithm_test.go and its design configuration"
QUICK_EPISODES = 5  # of each kind

PREEMPTION = tuple(f"pod{i}" for i in range(28, 36))
"""The pods of its test of preemption; before pod34 pod28 ends, and pod35 ends waiting."""
SUGGESTED = {"pod36": {"0.0.1.0"}, "pod37": {"0.0.3.0"}, "pod38": {"0.0.3.1"}}
BACKTRACKING = {
    "pod39": {"0.0.3.2", "0.0.3.3"},
    "pod40": {"0.0.4.3"},
    "pod41": {"0.0.3.2", "0.0.3.3", "0.0.4.3"},
}
"""The nodes that its tests suggest for a pod; all without an entry. (They are not in `cases.json`.)"""
MODES = {
    "one": ("guaranteed gangs of one priority", 100.0),
    "oppo": ("and opportunistic gangs", 99.8),
    "full": ("and three priorities, lazy preemption and pinned cells", 99.8),
}
"""What the random episodes ask for, and the share of their steps that should agree at least [%]."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The pods of HiveD's tests.

    Attributes:
        gangs: Pods, and GPUs of each of them, by gang.
        pods: What each pod asks for.
        in_order: Pods that its first test schedules, in this order.
        refused: Groups of pods of which one is refused.
        placements: Node and GPUs of the pods that are placed.
        victims: Pods that end for a pod.
    """

    gangs: dict[str, list[list[int]]]
    pods: dict[str, dict[str, Any]]
    in_order: list[str]
    refused: list[list[str]]
    placements: dict[str, dict[str, Any]]
    victims: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Cases:
        config = json.loads(path.read_text(encoding="utf-8"))
        names = ("gangs", "pods", "should_succeed", "should_be_refused", "expected_placement", "expected_victims")
        return cls(*(config[name] for name in names))

    def expected(self, pod: str) -> str:
        if pod in self.placements:
            return f"{self.placements[pod]['node']} {self.placements[pod]['gpus']}"
        victims = {self.pods[victim]["gang"] for victim in self.victims.get(pod, ())}
        return f"after {', '.join(sorted(victims))}" if victims else "waits"

    def request(self, pod: str) -> Request:
        config = self.pods[pod]
        sizes = [gpus for count, gpus in self.gangs[config["gang"]] for _ in range(count)]
        return Request(
            config["virtual_cluster"],
            tuple(sizes),
            config["priority"],
            config["gpu_type"],
            config["pinned_cell"],
            config["lazy_preemption"],
        )


class Pods:
    """Pods that come one after the other: the first of a gang schedules it."""

    def __init__(self, config: Mapping[str, Any], cases: Cases) -> None:
        self.allocator = Allocator(cluster_of(config))
        self.cases = cases
        self.come: Counter[tuple[str, int]] = Counter()

    def ask(self, pod: str, suggested: set[str] | None = None, *, preempt: bool = True) -> str:
        """Schedule a pod, and return what comes of it, as a text."""
        gang, gpus = self.cases.pods[pod]["gang"], self.cases.pods[pod]["gpus"]
        request = self.cases.request(pod)
        if self.come[gang, gpus] == request.sizes.count(gpus):
            raise InputError("pod", pod, f"one of {request.sizes.count(gpus)} pods of {gpus} GPUs in {gang}")
        if suggested is not None:
            request = replace(request, suggested=frozenset(suggested))
        answer = self.allocator.schedule(gang, request, preempt=preempt)
        if not answer.places:
            return f"after {', '.join(sorted(answer.victims))}" if answer.victims else "waits"
        own = [place for place in answer.places if len(place[1]) == gpus]
        node, numbers = own[self.come[gang, gpus]]
        self.come[gang, gpus] += 1
        return f"{node} {list(numbers)}"


def run(quick: bool) -> Measured:
    """Answer HiveD's test cases, and the random episodes beside the answers of its program."""
    config, cases = read_cluster(CASES / "cluster.yaml"), Cases.read(CASES / "cases.json")
    answers = list(pod_answers(config, cases))
    agree, of_all = float(sum(answer == cases.expected(pod) for pod, answer in answers)), float(len(answers))
    checks = [Check("pods of its tests", agree, of_all, of_all, of_all, SOURCE, "prediction")]
    same, steps = Counter[str](), Counter[str]()
    cluster, done = cluster_of(config), Counter[str]()
    for number, episode in enumerate(episodes.read(CASES / "random_episodes.jsonl.gz")):
        mode = episode["Mode"]
        done[mode] += 1
        if not quick or done[mode] <= QUICK_EPISODES:
            for step in episodes.replay(episode, cluster, number):
                steps[mode] += 1
                same[mode] += step.ours == step.published
    source = "its Go program on its design configuration; 75 random episodes of up to 30 requests and releases each"
    for mode, (title, least) in MODES.items():
        share = 100.0 * same[mode] / steps[mode]
        what = f"answers to random requests that agree, {title} [%]"
        checks.append(Check(what, share, least, 100.0, 100.0, source, "prediction"))
    return Measured(tuple(checks))


def pod_answers(config: Mapping[str, Any], cases: Cases) -> Iterator[tuple[str, str]]:
    """Yield the pods of its tests that need no bad node and no other configuration, with our answers."""
    pods = Pods(config, cases)
    yield from ((pod, pods.ask(pod)) for pod in cases.in_order)
    pods = Pods(config, cases)
    for pod in PREEMPTION:
        yield pod, pods.ask(pod)
        if pod == "pod33":
            pods.allocator.remove(cases.pods["pod28"]["gang"])
    pods = Pods(config, cases)
    for pod, suggested in SUGGESTED.items():
        yield pod, pods.ask(pod, suggested)
        if pod == "pod36":  # its test only asks, and does not place it
            pods.allocator.remove(cases.pods[pod]["gang"])
            pods.come.clear()
    pods = Pods(backtracking(config), cases)
    yield from ((pod, pods.ask(pod, suggested)) for pod, suggested in BACKTRACKING.items())


def backtracking(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with which its test of backtracking runs: pairs of nodes in place of single ones."""
    other = copy.deepcopy(dict(config))
    cells = other["virtualClusters"]["VC1"]["virtualCells"]
    cells[0]["cellNumber"], cells[3]["cellNumber"] = 0, 3
    return other
