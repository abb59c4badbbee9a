"""A cluster at one moment: what runs and waits, what policies would do now, and an instance of what is left to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.model import EpochDistribution, Instance
from gpusched_operations.live.job_rules import JobRequest, JobRules
from gpusched_operations.live.request import NO_GPU, LiveRequest, request_of
from gpusched_operations.live.state import LiveCluster
from gpusched_operations.service.decision import Decider, OpenRequest, PolicyCatalogue
from gpusched_operations.service.forecasting import Forecaster, ForecastRequest
from gpusched_operations.service.problem import Problem

AS_IT_IS = "as it is"
"""Name of the answer that changes nothing."""

FULL = "jobs that it may not stop hold all GPUs, so that all others wait"
"""Why a policy that stops jobs is not asked."""

USUAL = "edf"
"""The policy of the request where none of those that were named can be asked; it stops no jobs."""

FORECAST_S = 20.0
"""Time after which no other rollout of a policy's forecast begins [s]."""


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """What a policy would do now.

    Attributes:
        policy: Its name.
        answer: The answer of the decision service; None: it cannot decide here.
        error: Why it cannot.
        forecast: The answer of the service to a request for a forecast; None: there is none.
        request: What it was asked; None: it was not.
    """

    policy: str
    answer: dict[str, Any] | None
    error: str = ""
    forecast: dict[str, Any] | None = None
    request: LiveRequest | None = None

    @property
    def told(self) -> int:
        return 0 if self.request is None else len(self.request.jobs)

    def jobs(self) -> dict[str, dict[str, Any]]:
        return {} if self.answer is None else {job["id"]: job for job in self.answer["jobs"]}

    def waits_s(self, now_s: float) -> dict[str, tuple[float | None, ...]]:
        """Return quantiles of the time until each job starts first, by id [s of the model]; None: after all."""
        rows = [] if self.forecast is None else self.forecast["jobs"]
        return {
            row["id"]: tuple(None if at is None else max(0.0, at - now_s) for at in row["start_s"])
            for row in rows
            if "start_s" in row
        }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        cluster: The cluster.
        rules: What its jobs are.
        request: What the first policy was asked; that of another policy if jobs that it may not stop hold all GPUs.
        answers: What each policy would do, in the order in which they were asked; before them what is done now.
        instance: What is left to do; None: no job can be told.
    """

    cluster: LiveCluster
    rules: JobRules
    request: LiveRequest
    answers: tuple[PolicyAnswer, ...]
    instance: Instance | None

    @property
    def now_s(self) -> float:
        return float(self.request.fields["now_s"])

    def entries(self) -> Mapping[str, dict[str, Any]]:
        return {entry["id"]: entry for each in self._requests() for entry in each.fields["jobs"]}

    def jobs(self) -> Mapping[str, JobRequest]:
        return {name: what for each in self._requests() for name, what in each.jobs.items()}

    def _requests(self) -> list[LiveRequest]:
        return [*(each.request for each in self.answers if each.request is not None), self.request]


def take_snapshot(
    cluster: LiveCluster,
    rules: JobRules,
    policies: Sequence[str],
    decider: Decider,
    *,
    partition: str | None = None,
    samples: int = 0,
) -> Snapshot:
    """Ask policies what they would do in a cluster now.

    Jobs that run and may not be stopped are told to policies that stop none. For the others their GPUs are not there.

    Args:
        partition: The only partition that policies are told; None: all.
        samples: Rollouts of each policy's forecast; 0: no forecast.

    Raises:
        InputError: There is no node with GPUs, or no such policy.
    """
    made: dict[bool, LiveRequest | None] = {}
    asked: list[LiveRequest | None] = []
    for name in policies:
        preemptive = bool(decider.policies.make(name).preemption)
        if preemptive not in made:
            made[preemptive] = _request(cluster, rules, name, partition, preemptive=preemptive)
        asked.append(_for_policy(made[preemptive], name))
    request = next((each for each in asked if each is not None), None)
    opener = decider
    if request is None:
        request = request_of(cluster, rules, USUAL, partition=partition, preemptive=False, with_nodes=False)
        opener = Decider(PolicyCatalogue.of(USUAL), decider.key, decider.limits)
    answers = [
        PolicyAnswer(name, None, FULL if request.jobs else NO_GPU) if each is None else _asked(decider, each, samples)
        for name, each in zip(policies, asked, strict=True)
    ]
    as_it_is = PolicyAnswer(AS_IT_IS, _kept(opener, request.fields), request=request)
    return Snapshot(cluster, rules, request, (as_it_is, *answers), what_is_left(opener, request.fields))


def _request(
    cluster: LiveCluster, rules: JobRules, policy: str, partition: str | None, *, preemptive: bool
) -> LiveRequest | None:
    made = request_of(cluster, rules, policy, partition=partition, preemptive=preemptive, with_nodes=False)
    return made if made.fields["cluster"]["nodes"] else None


def _for_policy(request: LiveRequest | None, policy: str) -> LiveRequest | None:
    return None if request is None else replace(request, fields=request.fields | {"policy": policy})


def _kept(decider: Decider, fields: dict[str, Any]) -> dict[str, Any] | None:
    opened = _opened(decider, fields)
    if opened is None:
        return None
    opened.state.begin_round(False)
    opened.state.commit_round()
    return opened.told()


def _opened(decider: Decider, fields: dict[str, Any]) -> OpenRequest | None:
    try:
        return decider.open(decider.request(fields))
    except InputError:  # the first policy cannot decide on such a cluster, which its own answer tells
        return None


def _asked(decider: Decider, request: LiveRequest, samples: int) -> PolicyAnswer:
    fields, told = request.fields, None
    name = fields["policy"]
    try:
        answer = decider.ask(fields)
        if samples and fields["jobs"]:
            for many in (1, samples):  # compiling is no part of the time that all of them may take
                body = fields | {"forecast": {"samples": many, "longest_s": FORECAST_S}}
                told = Forecaster(decider).forecast(decider.request(body, ForecastRequest))
    except InputError as error:
        return PolicyAnswer(name, None, str(error), request=request)
    return PolicyAnswer(name, answer, forecast=told, request=request)


def what_is_left(decider: Decider, fields: dict[str, Any]) -> Instance | None:
    """Return the instance of what is left to do: an empty cluster, to which all jobs of a request come at time 0.

    Maximum epochs are those that are left, due dates and prices count from now on, and `epochs_needed` is what is
    expected to be left, given the epochs done. A job that runs is placed again there, with what is left, on any GPUs.

    Returns:
        The instance; None: no job fits anything now, or the request's policy cannot decide on such a cluster.
    """
    opened = _opened(decider, fields)
    if opened is None:
        return None
    order, now_s = opened.order, opened.request.now_s
    instance = Problem(opened.request, opened.names, order).instance(np.arange(len(order)))
    jobs = instance.jobs
    done = np.array([opened.request.jobs[i].epochs_done or 0.0 for i in order]) / jobs.max_epochs
    left: list[EpochDistribution] = []
    places: list[int] = []
    needed: list[float] = []
    for fraction, place in zip(done.tolist(), jobs.distribution.tolist(), strict=True):
        distribution = given_done(jobs.distributions[place], fraction)
        places.append(len(left))
        left.append(distribution)
        needed.append(float(distribution.survival @ np.diff(distribution.edges)))
    max_epochs = jobs.max_epochs * (1.0 - done)
    table = replace(
        jobs,
        submission_s=np.zeros(len(jobs)),
        due_s=np.maximum(0.0, jobs.due_s - now_s),
        max_epochs=max_epochs,
        epochs_needed=max_epochs * np.array(needed),
        distribution=np.array(places),
        distributions=tuple(left),
    )
    made, series = replace(instance, jobs=table), instance.of(PriceSeries)
    return made if series is None else made.with_mechanisms(series.from_then(now_s))


def given_done(distribution: EpochDistribution, done: float) -> EpochDistribution:
    """Return the distribution of what is left, as a part of what can be left, of a job that has done a part of it.

    Args:
        done: The part of the maximum epochs that is done, from 0 to below 1.
    """
    if done <= 0.0:
        return distribution
    edges, survival = distribution.edges, distribution.survival
    first = int(np.searchsorted(edges, done, side="right")) - 1
    if survival[first] <= 0.0:  # it has done more than it could need
        return EpochDistribution.certain()
    rest = (edges[first + 1 :] - done) / (1.0 - done)
    rest[-1] = 1.0
    return EpochDistribution(np.concatenate([[0.0], rest]), survival[first:] / survival[first])
