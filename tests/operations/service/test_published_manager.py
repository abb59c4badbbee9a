"""Requests as a job manager on two machines sends them in the published form: odd ones, and the rounds of two days."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.pool import Reply, reply_to
from gpusched_operations.service.published_form import reply_in_form, request_of
from gpusched_operations.service.published_request import TIME, WEIGHTS_EUR_PER_S

MINUTE, HOUR = 60.0, 3600.0
NOON_S = datetime(2026, 6, 3, 12, tzinfo=UTC).timestamp()
OLD, NEW = "P600", "A40"
TYPES = {"slow": OLD, "fast": NEW}
COSTS = {OLD: {"1": 0.04, "2": 0.07}, NEW: {"1": 0.25, "2": 0.45}}
IMAGE = {NEW: {"1": 6.0, "2": 4.0}, OLD: {"1": 90.0, "2": 50.0}}
TEXT = {NEW: {"1": 5.0, "2": 8.0}, OLD: {"1": 9.0, "2": 17.0}}
SHIPPED = {NEW: {"1": 0.15, "2": 0.28, "4": 0.54}, "L40S": {"1": 0.18, "2": 0.34, "4": 0.65}}
POLICIES = "fifo,edf,priority,greedy,random-greedy,sts:published,sts-x"


def clock(minute: float) -> str:
    return datetime.fromtimestamp(round(NOON_S + minute * MINUTE), UTC).strftime(TIME)


def job(epochs: float, due: float, priority: int = 3, times: Any = IMAGE, submitted: float = 0.0) -> dict[str, Any]:
    """Make a job that is due at a minute; so are all times here."""
    at = {"SubmissionTime": clock(submitted), "Deadline": clock(due)}
    return {**at, "Priority": priority, "Epochs": str(epochs), "ProfilingData": times}


def form(jobs: dict[str, Any], held: Any = None, free: tuple[int, int] = (2, 2), **more: Any) -> dict[str, Any]:
    """Make a request; what jobs hold is written as node and number of GPUs."""
    nodes = {
        name: {"GPUtype": TYPES[name], "free_nGPUs": gpus, "total_nGPUs": 2, "cost": 0.1}
        for name, gpus in zip(TYPES, free, strict=True)
    }
    current = {
        name: {"node": node, "GPUtype": TYPES[node], "nGPUs": gpus} for name, (node, gpus) in (held or {}).items()
    }
    plain = {"jobs": jobs, "nodes": nodes, "GPUcosts": COSTS, "currentScheduling": current, "method": "RG"}
    return {**plain, "currentTime": clock(0.0), **more}


@pytest.fixture(scope="module")
def decide():
    decider = Decider(PolicyCatalogue.of(POLICIES), b"a key", RequestLimits())
    return lambda body: reply_to(decider, body)


@pytest.fixture(scope="module")
def answered(decide):
    """Return what sends a request and gives status and answer."""

    def ask(data: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        reply = reply_in_form(json.dumps(data).encode(), decide)
        return reply.status, json.loads(reply.body)

    return ask


def placed(answer: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {name: (each["node"], each["nGPUs"]) for name, each in answer["jobs"].items()}


ONLY_NEW = {NEW: IMAGE[NEW]}


def nobody(_: bytes) -> Reply:
    raise AssertionError


@pytest.mark.parametrize(
    "data",
    [
        form({"a": job(50, 120)}, free=(0, 0)),
        form({"a": job(50, 120)}, nodes={}) | {"jobs": {}},
        form({}),
        form({"a": job(0, 120)}),
        form({"a": job(50, 120, times=ONLY_NEW)}, free=(2, 0)),
    ],
    ids=["nothing free", "no nodes", "no jobs", "no epochs left", "its type is busy"],
)
def test_where_nothing_can_run_the_plan_is_empty(data: dict[str, Any]):
    reply = reply_in_form(json.dumps(data).encode(), nobody)
    assert (reply.status, json.loads(reply.body)["jobs"]) == (201, {})
    assert json.loads(reply.body)["estimated_rescheduling_time"] == "inf"


def test_costs_of_some_numbers_of_gpus_are_taken_and_those_between_and_beyond_are_on_their_line():
    nodes = {"n": {"GPUtype": NEW, "free_nGPUs": 5, "total_nGPUs": 5}}
    jobs = {"a": job(50, 120, times=ONLY_NEW)}
    (told,) = request_of(form(jobs, nodes=nodes, GPUcosts=SHIPPED))["cluster"]["gpu_types"]
    assert told["node_eur_per_h"] == pytest.approx([0.15, 0.28, 0.41, 0.54, 0.67])
    (told,) = request_of(form(jobs, nodes=nodes, GPUcosts={NEW: {"2": 0.4, "1": None}}))["cluster"]["gpu_types"]
    assert told["node_eur_per_h"] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_node_without_costs_that_no_job_can_use_refuses_nothing(answered):
    status, answer = answered(form({"a": job(50, 120, times=ONLY_NEW)}, GPUcosts=SHIPPED))
    assert (status, list(answer["jobs"])) == (201, ["a"])
    assert answered(form({"a": job(50, 120)}, GPUcosts=SHIPPED))[0] == 484


@pytest.mark.parametrize(
    "odd",
    [
        job(50, 120, times={"L40S": {"1": 3.0}}),
        job(50, 120, times={NEW: {"1": None}, OLD: {}}),
        job(50, 120, times={NEW: {"8": 1.0}}),
        job(0, 120),
    ],
    ids=["a type that no node has", "no number", "more GPUs than there are", "no epochs left"],
)
def test_a_job_that_can_not_be_placed_waits_and_the_others_run(answered, odd: dict[str, Any]):
    status, answer = answered(form({"odd": odd, "a": job(50, 120)}))
    assert (status, list(answer["jobs"])) == (201, ["a"])


@pytest.mark.parametrize(
    "held",
    [
        {"a": {"node": "fast", "GPUtype": NEW, "nGPUs": 1}},
        {"a": {"node": "fast", "GPUtype": OLD, "nGPUs": 2}},
        {"a": {"node": "gone", "GPUtype": NEW, "nGPUs": 2}},
        {"a": {"node": "nan", "GPUtype": "nan", "nGPUs": 0}},
    ],
    ids=["no time on it", "another type", "a node that is gone", "waits"],
)
def test_a_job_that_holds_what_it_has_no_time_for_counts_as_waiting(answered, held: dict[str, Any]):
    times = {NEW: {"2": 4.0}}
    free = 2 - (held["a"]["nGPUs"] if held["a"]["node"] == "fast" else 0)
    status, answer = answered(form({"a": job(64, 30, times=times)}, free=(2, free), currentScheduling=held))
    assert (status, placed(answer)) == (201, {"a": ("fast", 2)})


def test_an_answer_can_be_sent_back_as_the_current_schedule_though_it_names_no_gpu_type(answered):
    jobs = {"a": job(64, 30), "b": job(40, 45)}
    _, answer = answered(form(jobs))
    _, again = answered(form(jobs, currentScheduling=answer["jobs"], free=(2, 0)))
    assert placed(again) == placed(answer)


@pytest.mark.parametrize("method", ["FIFO", "EDF", "PS", "G", "RG", "STS", "sts-x", "STS-X", "greedy"])
def test_every_method_and_every_policy_of_the_service_can_be_chosen(answered, method: str):
    status, answer = answered(form({"a": job(50, 120)}, method=method))
    assert (status, list(answer["jobs"])) == (201, ["a"])


@pytest.mark.parametrize("method", ["STS-Y", "sts_x", "RG_sim", "", None, 5])
def test_another_method_is_refused_by_name(answered, method: Any):
    status, answer = answered(form({"a": job(50, 120)}, method=method))
    assert (status, answer["field"], answer["value"]) == (422, "method", method)
    assert "STS" in answer["allowed"]


def test_a_job_that_is_late_after_the_first_end_is_in_time_at_it_and_late_at_its_own(answered):
    """Two jobs on one GPU each of the fast node: 64 epochs of 6 s, and 200 of which the last end after 20 minutes."""
    held = {"short": ("fast", 1), "long": ("fast", 1)}
    jobs = {"short": job(64, 30, times={NEW: {"1": 6.0}}), "long": job(200, 10, 5, times={NEW: {"1": 6.0}})}
    _, answer = answered(form(jobs, held, free=(0, 0), method="EDF"))
    assert answer["estimated_rescheduling_time"] == clock(6.4)
    assert answer["jobs"]["long"]["expected_tardiness"] == 0.0
    assert answer["jobs"]["long"]["expected_tardiness_at_end"] == pytest.approx(10.0 / 60.0)
    assert answer["estimated_cost"] == pytest.approx(0.45 * 384.0 / HOUR)
    energy = 0.45 / 2.0 * (384.0 + 1200.0) / HOUR  # each pays half of the node
    assert answer["estimated_cost_to_ends"] == pytest.approx(energy + 600.0 * WEIGHTS_EUR_PER_S[5])


def test_a_job_that_is_late_at_the_first_end_is_late_by_that_time(answered):
    jobs = {"short": job(64, 30, times={NEW: {"1": 6.0}}), "long": job(200, 4, 5, times={NEW: {"1": 6.0}})}
    _, answer = answered(form(jobs, dict.fromkeys(jobs, ("fast", 1)), free=(0, 0), method="EDF"))
    assert answer["jobs"]["long"]["expected_tardiness"] == pytest.approx(2.4 / 60.0)
    assert answer["estimated_cost"] == pytest.approx(0.45 * 384.0 / HOUR + 144.0 * WEIGHTS_EUR_PER_S[5])


def published_cost(
    jobs: dict[str, Any], left: dict[str, float], plan: dict[str, tuple[str, int]], now: float
) -> tuple[float, float]:
    """Return the first end [minutes] and the cost until then that the published service estimates of a plan."""
    seconds = {name: jobs[name]["ProfilingData"][TYPES[node]][str(gpus)] for name, (node, gpus) in plan.items()}
    first_s = min(seconds[name] * left[name] for name in plan)
    busy = {node: sum(gpus for at, gpus in plan.values() if at == node) for node in TYPES}
    energy = sum(COSTS[TYPES[node]][str(gpus)] * first_s / HOUR for node, gpus in busy.items() if gpus)
    late = 0.0
    for name in plan:
        due_s = datetime.strptime(jobs[name]["Deadline"], TIME).replace(tzinfo=UTC).timestamp() - NOON_S
        late += WEIGHTS_EUR_PER_S[jobs[name]["Priority"]] * max(now * MINUTE + first_s - due_s, 0.0)
    return now + first_s / MINUTE, energy + late


FIRST_DAY = {
    "a": job(72, 30, 4, submitted=0.0), "b": job(48, 30, 4, submitted=1.0),
    "urgent": job(120, 18, 5, submitted=4.0), "text": job(400, 400, 1, TEXT, submitted=9.0),
    "last": job(30, 60, 2, submitted=15.0),
}  # fmt: skip
SECOND_DAY = {
    "p": job(90, 12, 5), "q": job(25, 12, 5, submitted=0.5), "l": job(200, 480, 1, TEXT, submitted=1.0),
    "m": job(150, 480, 1, TEXT, submitted=2.0), "urgent": job(40, 30, 5, submitted=6.0),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "rounds"), [(FIRST_DAY, 11), (SECOND_DAY, 9)], ids=["first day", "second day"])
def test_in_every_round_of_a_manager_the_cost_is_that_of_the_published_objective(answered, jobs, rounds: int):
    """A manager asks at every submission and end, does what it is told, and sends back what is left and held."""
    now, left, held, asked = 0.0, {name: float(each["Epochs"]) for name, each in jobs.items()}, {}, 0
    comes = {name: (datetime.strptime(each["SubmissionTime"], TIME).replace(tzinfo=UTC).timestamp() - NOON_S) / MINUTE
             for name, each in jobs.items()}  # fmt: skip
    while left:
        there = {name: epochs for name, epochs in left.items() if comes[name] <= now}
        own = {node: sum(gpus for at, gpus in held.values() if at == node) for node in TYPES}
        told = {name: jobs[name] | {"Epochs": epochs} for name, epochs in there.items()}
        free = tuple(2 - own[node] for node in TYPES)
        status, answer = answered(form(told, held, free=free, currentTime=clock(now)))
        asked += 1
        assert status == 201
        held = placed(answer)
        first, cost = published_cost(jobs, there, held, round(now * MINUTE) / MINUTE)
        assert answer["estimated_cost"] == pytest.approx(cost, abs=1e-6)
        then = min([first, *(at for at in comes.values() if at > now)])
        for name, (node, gpus) in held.items():
            left[name] -= (then - now) * MINUTE / jobs[name]["ProfilingData"][TYPES[node]][str(gpus)]
        left = {name: epochs for name, epochs in left.items() if epochs > 1e-6}
        held, now = {name: each for name, each in held.items() if name in left}, then
    assert asked == rounds
