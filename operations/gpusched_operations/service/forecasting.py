"""`POST /v1/forecast`: what will come of the jobs of a request, and what would if something were otherwise."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from gpusched_env.child_processes import usable_cores
from gpusched_env.errors import InputError
from gpusched_env.version import VERSION
from gpusched_operations.forecast.draws import ArrivalModel, stratified
from gpusched_operations.forecast.forecast import (
    MOST_SAMPLES,
    Forecast,
    ForecastSettings,
    forecast,
    jobs_to_come,
    json_cluster,
    json_difference,
    json_rows,
)
from gpusched_operations.service.answers import WHY
from gpusched_operations.service.fields import (
    MOST_CELLS,
    MOST_JOBS,
    DecideRequest,
    Fields,
    Gpus,
    Name,
    NodeFields,
    Positive,
    SiteFields,
    names_of,
)
from gpusched_operations.service.gpu_names import known_type

if TYPE_CHECKING:
    from gpusched_operations.service.decision import Decider, OpenRequest

FORECAST = b"forecast\n"
"""Begins a body that asks for a forecast where bodies of all kinds come: no JSON begins so."""
MOST_WHAT_IFS = 20
TIME_SHARE = 0.5
"""Part of the longest time of an answer after which no other rollout begins."""

Probability = Annotated[float, Field(gt=0.0, lt=1.0)]


class ArrivalFields(Fields):
    """Jobs to come during the forecast."""

    per_hour: Positive = Field(description="How many jobs come in an hour, on average.")
    like: list[Name] | None = Field(
        default=None,
        max_length=MOST_JOBS,
        description="Ids of the jobs of the request that they are like, each as likely; null: all of them.",
    )


class MoreNodesFields(Fields):
    """Nodes that a what-if adds."""

    gpu_type: Name = Field(description="A GPU type of the cluster.")
    count: int = Field(default=1, ge=1, le=1_000, description="How many nodes.")
    gpus: Gpus | None = Field(
        default=None, description="GPUs of each; by default those of the largest node of this type in the cluster."
    )


class WhatIfFields(Fields):
    """Something that is otherwise than the request says."""

    name: Name = Field(description="Its name in the answer.")
    policy: Name | None = Field(default=None, description="Another policy, which begins without a memory.")
    nodes_more: list[MoreNodesFields] = Field(default=[], max_length=100, description="Nodes that are added.")
    site: SiteFields | None = Field(default=None, description="Another cap on the power of all nodes.")


class ForecastFields(Fields):
    """How the forecast is made."""

    samples: int = Field(default=100, ge=1, le=MOST_SAMPLES, description="Number of rollouts.")
    quantiles: list[Probability] = Field(
        default=[0.1, 0.5, 0.9], min_length=1, max_length=99, description="Probabilities, rising."
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of what is drawn.")
    horizon_s: Positive | None = Field(
        default=None, description="How long after now_s rollouts stop [s]; null: once the jobs are over."
    )
    longest_s: Positive | None = Field(
        default=None,
        description="Time after which no other rollout begins [s]: the answer says how many there were. A service has "
        "a limit of its own.",
    )
    arrivals: ArrivalFields | None = Field(default=None, description="Jobs to come; null: none come.")
    what_if: list[WhatIfFields] = Field(
        default=[], max_length=MOST_WHAT_IFS, description="Further forecasts, with the same draws."
    )


class ForecastRequest(DecideRequest):
    """A request for a decision, and how what comes after it is forecast."""

    forecast: ForecastFields = ForecastFields()


class Forecaster:
    """Answers requests for forecasts.

    Args:
        decider: Opens the requests.
        longest_s: Time after which no other rollout of an answer begins, whatever the request says [s].
    """

    def __init__(self, decider: Decider, longest_s: float = math.inf) -> None:
        self._decider, self._longest_s = decider, longest_s

    def __call__(self, body: bytes) -> bytes:
        begin = time.perf_counter()
        answer = self.forecast(self._decider.read(body, ForecastRequest))
        return json.dumps(answer | {"seconds": round(time.perf_counter() - begin, 3)}, allow_nan=False).encode()

    def forecast(self, request: ForecastRequest) -> dict[str, Any]:
        """Forecast what will come of the jobs, and what would in every what-if."""
        given = request.forecast
        if len(request.jobs) * given.samples > MOST_CELLS:
            allowed = f"at most {MOST_CELLS:,} / {len(request.jobs)} jobs"
            raise InputError("forecast.samples", given.samples, allowed)
        longest_s = min(math.inf if given.longest_s is None else given.longest_s, self._longest_s)
        each_s = longest_s / (1 + len(given.what_if))
        settings = ForecastSettings(
            given.samples,
            tuple(given.quantiles),
            given.seed,
            given.horizon_s,
            each_s if math.isfinite(each_s) else None,
        )
        quantiles = stratified(given.seed, given.samples, len(request.jobs))
        case = _Case(self._decider, request, settings, quantiles)
        found = case.forecast()
        others = []
        for i, what in enumerate(given.what_if):
            try:
                other = _Case(
                    self._decider, _changed(request, what, self._decider.limits.nodes), settings, quantiles, case.coming
                )
                others.append((what.name, other, other.forecast()))
            except InputError as error:
                raise InputError(f"forecast.what_if[{i}]: {error.field}", error.value, error.allowed) from None
        head = {name: getattr(request, name) for name in ("policy", "now_s")}
        head |= {"version": VERSION, "code": self._decider.policies.version(request.policy)}
        head |= {"quantiles": list(given.quantiles), "seed": given.seed, "coming": case.coming or 0}
        return (
            head
            | case.told(found)
            | {
                "what_if": [
                    {"name": name, "policy": other.request.policy}
                    | other.told(each)
                    | {"difference": None if each is None or found is None else json_difference(each, found)}
                    for name, other, each in others
                ]
            }
        )


class _Case:
    """The request as it is, or one of its what-ifs."""

    def __init__(
        self,
        decider: Decider,
        request: ForecastRequest,
        settings: ForecastSettings,
        quantiles: Any,
        coming: int | None = None,
    ) -> None:
        self.request, self.coming, self._settings = request, coming, settings
        self._quantiles = quantiles
        self._opened: OpenRequest | None = decider.open(request)

    def forecast(self) -> Forecast | None:
        """Make the rollouts; None if no job fits anything."""
        opened = self._opened
        if opened is None:
            return None
        arrivals, horizon_s = self._arrivals(opened), self._settings.horizon_s
        if arrivals is not None and self.coming is None:
            most = math.inf if horizon_s is None else horizon_s
            self.coming = jobs_to_come(opened.state, opened.policy, opened.rng, arrivals, most, self._settings.samples)
        own = np.ascontiguousarray(self._quantiles[:, opened.order])
        return forecast(
            opened.state,
            opened.policy,
            opened.rng,
            self._settings,
            arrivals,
            quantiles=own,
            coming=self.coming,
            threads=usable_cores(),
        )

    def _arrivals(self, opened: OpenRequest) -> ArrivalModel | None:
        given = self.request.forecast.arrivals
        if given is None:
            return None
        places = {self.request.jobs[index].id: place for place, index in enumerate(opened.order)}
        names = list(places) if given.like is None else given.like
        known = {job.id for job in self.request.jobs}
        for i, name in enumerate(names):
            if name not in known:
                raise InputError(f"forecast.arrivals.like[{i}]", name, "the id of one of jobs")
        active = opened.state.board.active
        like = np.array([active[places[name]] for name in names if name in places], dtype=np.int64)
        if not len(like):
            raise InputError("forecast.arrivals.like", names, "one job or more that fits something")
        return ArrivalModel(given.per_hour / 3600.0, like)

    def told(self, found: Forecast | None) -> dict[str, Any]:
        ids = [job.id for job in self.request.jobs]
        if found is None or self._opened is None:
            return {"samples": 0, "jobs": [{"id": name, "why": WHY} for name in ids], "cluster": None}
        rows = dict(zip(self._opened.order, json_rows(found), strict=True))
        jobs = [{"id": name} | rows.get(i, {"why": WHY}) for i, name in enumerate(ids)]
        outcomes = found.outcomes
        full = float(np.mean(outcomes.came == found.coming)) if found.coming else 0.0
        return {
            "samples": found.samples,
            "jobs": jobs,
            "cluster": json_cluster(found),
            "stalled": float(np.mean(outcomes.stalled)),
            "arrivals_ran_out": full,
        }


def _changed(request: ForecastRequest, what: WhatIfFields, most_nodes: int) -> ForecastRequest:
    """Return the request with what is otherwise; it may have so many nodes."""
    changes: dict[str, Any] = {}
    if what.policy is not None and what.policy != request.policy:
        changes |= {"policy": what.policy, "memory": None}
    if what.site is not None:
        changes["site"] = what.site
    if what.nodes_more:
        nodes = list(request.cluster.nodes)
        for i, more in enumerate(what.nodes_more):
            if len(nodes) + more.count > most_nodes:
                raise InputError(f"nodes_more[{i}].count", more.count, f"at most {most_nodes:,} nodes in all")
            nodes += _new_nodes(request, more, f"nodes_more[{i}]", len(nodes))
        changes["cluster"] = request.cluster.model_copy(update={"nodes": nodes})
    return request.model_copy(update=changes)


def _new_nodes(request: ForecastRequest, more: MoreNodesFields, where: str, first: int) -> list[NodeFields]:
    names = names_of(request.cluster.gpu_types)
    gpu_type = known_type(more.gpu_type, names)
    if gpu_type not in names:
        raise InputError(f"{where}.gpu_type", more.gpu_type, f"one of {', '.join(names)}")
    alike = [node for node in request.cluster.nodes if node.gpu_type == gpu_type]
    if more.gpus is None and not alike:
        raise InputError(f"{where}.gpus", None, f"a number: the cluster has no node of {more.gpu_type}")
    gpus = max(node.gpus for node in alike) if more.gpus is None else more.gpus
    return [NodeFields(name=f"what-if-{first + k}", gpu_type=gpu_type, gpus=gpus) for k in range(more.count)]
