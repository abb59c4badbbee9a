"""What a service counts, in the form that Prometheus reads: requests, times, jobs by action, workers and connections.

All is counted where requests come in, so one service has one set of figures, however many processes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpusched_env.version import VERSION
from gpusched_operations.service.facts import OTHER, DecisionFacts

PREFIX = "gpusched_service"
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the bins of times [s]."""
BYTES = tuple(1024.0 * 4.0**i for i in range(8))
"""Upper ends of the bins of sizes: 1 KiB to 16 MiB."""
JOBS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is looked up whenever it is asked for.

    Args:
        name: Its name after the prefix; one that ends in `_total` only rises.
        said: What it says.
        number: Gives it.
    """

    name: str
    said: str
    number: Callable[[], float]


def new_registry() -> CollectorRegistry:
    """Return a registry of its own, without the times at which each figure was made."""
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    return CollectorRegistry()


class ServiceMetrics:
    """The figures of one service.

    Args:
        paths: Paths that are told apart; requests to others are counted as `other`.
        figures: What is looked up.
    """

    def __init__(self, paths: Collection[str], figures: Collection[Figure] = ()) -> None:
        self.paths = frozenset(paths)
        self._registry = registry = new_registry()
        asked = ("path", "policy", "status")
        self._requests = Counter(f"{PREFIX}_requests", "Requests that were answered.", asked, registry=registry)
        self._took = Histogram(
            f"{PREFIX}_request_seconds", "Time from the header of a request to its answer.", ("path",),
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._steps = Histogram(
            f"{PREFIX}_decision_seconds", "Time of a decision: reading the request, deciding, writing the answer.",
            ("policy", "step"), buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._bytes = Histogram(
            f"{PREFIX}_request_bytes", "Size of the body of a request.", ("path",), buckets=BYTES, registry=registry
        )
        self._jobs = Histogram(f"{PREFIX}_request_jobs", "Jobs of a request.", buckets=JOBS, registry=registry)
        self._actions = Counter(
            f"{PREFIX}_jobs", "Jobs in answers, by what they got.", ("policy", "action"), registry=registry
        )
        self._nodes = Gauge(f"{PREFIX}_nodes", "Nodes of the last request that was decided.", registry=registry)
        self._gpus = Gauge(f"{PREFIX}_gpus", "GPUs of the last request that was decided.", registry=registry)
        Gauge(f"{PREFIX}_info", "The release.", ("version",), registry=registry).labels(VERSION).set(1)
        registry.register(_Figures(figures))

    def count(
        self, path: str, status: int, seconds: float, policy: str, size: int | None, facts: DecisionFacts | None
    ) -> None:
        """Count a request.

        Args:
            policy: The policy that it asked, or `other`; empty: it asked none.
            size: Size of its body [bytes]; None: it was not read to its end.
            facts: Of its decision; None: there is none.
        """
        path = path if path in self.paths else OTHER
        self._requests.labels(path, policy, str(status)).inc()
        self._took.labels(path).observe(seconds)
        if size is not None:
            self._bytes.labels(path).observe(size)
        if facts is not None:
            self._jobs.observe(facts.jobs)
            self._nodes.set(facts.nodes)
            self._gpus.set(facts.gpus)
            for step, spent in facts.seconds.items():
                self._steps.labels(policy, step).observe(spent)
            for action, number in facts.actions.items():
                self._actions.labels(policy, action).inc(number)

    def text(self) -> bytes:
        return prometheus_client.generate_latest(self._registry)


class _Figures(Collector):
    """Looks figures up."""

    def __init__(self, figures: Collection[Figure]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        for figure in self._figures:
            kind = CounterMetricFamily if figure.name.endswith("_total") else GaugeMetricFamily
            yield kind(f"{PREFIX}_{figure.name}", figure.said, value=figure.number())
