"""From a request to its answer: a pure function, but for what is compiled and looked up once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from gpusched_agents.any_policy import is_agent, known_policies, make_any_policy
from gpusched_agents.files.storage import PREFIX, find_agent, load_description
from gpusched_baselines.registry import POLICIES, usual_policy_names
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import check_fit, memory_columns
from gpusched_env.version import VERSION
from gpusched_experiments.report.code_version import agent_version, code_version
from gpusched_experiments.service import present as costs
from gpusched_experiments.service.cluster import ClusterNames
from gpusched_experiments.service.fields import DEFAULT, DecideRequest, Limits, input_error
from gpusched_experiments.service.memory import Carried, Memory
from gpusched_experiments.service.present import present_state
from gpusched_experiments.service.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator

    from gpusched_env.simulator import Board, Policy, State
    from gpusched_experiments.service.fields import JobFields, RunningFields


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of a service, by the names that requests use.

    Args:
        names: Names of the policies: `NAME`, `agent:NAME`.
        agents: Folders of agents that the operator names, by name: `agent:NAME` in requests.

    Raises:
        InputError: There is no such policy, an agent is not whole, or two have one name.
    """

    names: tuple[str, ...]
    agents: Mapping[str, str]

    @classmethod
    def of(cls, names: str = "all", agents: Mapping[str, str] | None = None) -> PolicyCatalogue:
        """Take the policies of a list with commas, `usual`, or `all`; agents of the operator's own come to them."""
        own = dict(agents or {})
        listed = [name.strip() for name in names.split(",")]
        if listed == ["all"]:
            listed = list(_answering())
        elif listed == ["usual"]:
            listed = [*usual_policy_names(), *(n for n in known_policies() if is_agent(n))]
        for name in listed:
            if name not in _answering():
                raise InputError("--policies", name, f"all, usual, or some of {', '.join(_answering())}")
        for name in own:
            if not name or f"{PREFIX}{name}" in known_policies():
                raise InputError("--agent", name, "a name that no shipped agent has")
        made = cls((*dict.fromkeys(listed), *(f"{PREFIX}{name}" for name in own)), own)
        for name in own:
            _check(made, name)
        return made

    def make(self, name: str) -> Policy:
        """Make a policy, once for all requests: policies keep nothing of a run.

        Raises:
            InputError: The service has none with this name.
        """
        if name not in self.names:
            raise InputError("policy", name, f"one of {', '.join(self.names)}")
        return _made(self._given(name))

    def version(self, name: str) -> str:
        """Give a fingerprint of the code and the files that decide."""
        return f"{code_version()}-{agent_version(self._given(name))}" if is_agent(name) else code_version()

    def entries(self) -> list[dict[str, object]]:
        """Describe every policy, for `GET /v1/policies`."""
        return [self._entry(name) for name in self.names]

    def _given(self, name: str) -> str:
        """Give the name under which the other packages know a policy."""
        own = self.agents.get(name.removeprefix(PREFIX)) if is_agent(name) else None
        return name if own is None else f"{PREFIX}{own}"

    def _entry(self, name: str) -> dict[str, object]:
        if is_agent(name):
            spec = load_description(find_agent(self._given(name))).spec
            line = f"Learned; for up to {spec.max_configurations} {', '.join(spec.kinds)} configurations"
        else:
            line = POLICIES[name].line
        policy = self.make(name)
        return {"name": name, "line": line, "preemption": bool(policy.preemption), "version": self.version(name)}


def _answering() -> tuple[str, ...]:
    """Give the policies that can answer: not those that replay what really ran, which no request tells."""
    return tuple(name for name in known_policies() if is_agent(name) or not POLICIES[name].replays)


def _check(policies: PolicyCatalogue, name: str) -> None:
    """Check that an agent of the operator's own can be loaded, before anything is compiled."""
    try:
        policies.make(f"{PREFIX}{name}")
    except InputError as error:
        raise InputError(f"--agent {name}", error.value, error.allowed) from None


@cache
def _made(given: str) -> Policy:
    return make_any_policy(given)


WHY = "no node that is there can hold what it may use"


def nothing(request: DecideRequest) -> dict[str, Any]:
    """Answer a request in which nothing is to be decided: without jobs, or with none that fits anything now."""
    return {
        "jobs": [_left_out(job) for job in request.jobs],
        "running": 0,
        "waiting": len(request.jobs),
        "ask_again_in_s": None,
        "ask_again_at_s": None,
        "expected_cost_eur": 0.0,
        "expected_energy_eur": 0.0,
        "expected_tardiness_eur": 0.0,
        "energy_eur_per_h": 0.0,
        "memory": request.memory,
    }


def answer(state: State, request: DecideRequest, names: ClusterNames, order: list[int]) -> dict[str, Any]:
    """Give the answer after the round, its jobs as in the request.

    Those whose place there is not in `order` fit nothing now and wait.
    """
    board, now = state.board, request.now_s
    active = board.active[: len(order)].tolist()
    there = board.jobs[active]
    expected = costs.expected_costs(board)
    jobs: list[Any] = [_left_out(job) for job in request.jobs]
    for job, index, each in zip(active, order, expected.tolist(), strict=True):
        jobs[index] = _job(board, job, each, request, names, index)
    wakes = there[:, at.WAKE_S]
    wake = float(np.min(wakes, initial=np.inf, where=wakes > now))
    again = wake if np.isfinite(wake) else None
    energy, tardiness = (float(np.nansum(expected[:, column])) for column in (costs.ENERGY, costs.TARDINESS))
    running = int(np.sum(there[:, at.CONFIG] >= 0.0))
    return {
        "jobs": jobs,
        "running": running,
        "waiting": len(jobs) - running,
        "ask_again_in_s": None if again is None else again - now,
        "ask_again_at_s": again,
        "expected_cost_eur": energy + tardiness,
        "expected_energy_eur": energy,
        "expected_tardiness_eur": tardiness,
        "energy_eur_per_h": 3600.0 * float(board.clock[at.BILL_RATE]),
    }


def _left_out(job: JobFields) -> dict[str, Any]:
    return {"id": job.id, "ask_again_at_s": None, "action": "wait", "configuration": None, "why": WHY}


def _job(
    board: Board, job: int, expected: list[float], request: DecideRequest, names: ClusterNames, index: int
) -> dict[str, Any]:
    """Say what a job gets: `start`, `keep`, `change`, `stop` or `wait`."""
    row, given = board.jobs[job], request.jobs[index]
    config, wake = int(row[at.CONFIG]), float(row[at.WAKE_S])
    base = {"id": given.id, "ask_again_at_s": wake if np.isfinite(wake) and wake > request.now_s else None}
    if config < 0:
        return base | {"action": "wait" if given.running is None else "stop", "configuration": None}
    configuration = names.configurations[config]
    nodes, node = [], int(row[at.NODE])
    while node >= 0:
        nodes.append(request.cluster.nodes[node].name)
        node = int(board.nodes[node, at.NEXT]) if configuration.nodes > 1 else -1
    slot = int(row[at.SLOT])
    held = given.running
    same = held is not None and _same(held, configuration.name, nodes, slot)
    return base | {
        "action": "keep" if same else "start" if held is None else "change",
        "configuration": configuration.name,
        "gpu_type": configuration.gpu_type,
        "nodes": nodes,
        "gpus_per_node": configuration.gpus_per_node,
        "share": configuration.share,
        "gpu": None if slot < 0 else slot,
        "ready_s": float(row[at.READY_S]),
        "expected_end_s": expected[costs.END_S],
        "expected_energy_eur": expected[costs.ENERGY],
        "expected_tardiness_eur": expected[costs.TARDINESS],
    }


def _same(held: RunningFields, configuration: str, nodes: list[str], slot: int) -> bool:
    place = held.configuration == configuration and set(held.nodes) == set(nodes)
    return place and slot == (-1 if held.gpu is None else held.gpu)


@dataclass(frozen=True)
class Decider:
    """Answers requests.

    Args:
        policies: The policies that may be asked.
        key: Signs what policies remember.
        limits: What requests may hold at most.
    """

    policies: PolicyCatalogue
    key: bytes
    limits: Limits = DEFAULT

    def __call__(self, body: bytes) -> bytes:
        """Give the answer to a request, both as JSON.

        Raises:
            InputError: The request is not allowed; names the field by its path.
        """
        begin = time.perf_counter()
        request = self.parse(body)
        parsed = time.perf_counter()
        answer = self.decide(request)
        decided = time.perf_counter()
        text = json.dumps(answer, allow_nan=False)
        written = time.perf_counter()
        spent = {"parse": parsed - begin, "decide": decided - parsed, "answer": written - decided}
        milliseconds = json.dumps({name: round(1000.0 * seconds, 3) for name, seconds in spent.items()})
        return f'{text[:-1]}, "milliseconds": {milliseconds}}}'.encode()

    def parse(self, body: bytes) -> DecideRequest:
        """Read a request.

        Raises:
            InputError: It is no JSON, or a field is not allowed.
        """
        if len(body) > self.limits.request_bytes:
            raise InputError("body", f"{len(body):,} bytes", f"at most {self.limits.request_bytes:,} bytes")
        try:
            request = DecideRequest.model_validate_json(body)
        except ValidationError as error:
            raise input_error(error) from None
        for name, given, most in (
            ("jobs", request.jobs, self.limits.jobs),
            ("cluster.nodes", request.cluster.nodes, self.limits.nodes),
        ):
            if len(given) > most:
                raise InputError(name, f"{len(given):,} entries", f"at most {most:,} entries")
        return request

    def decide(self, request: DecideRequest) -> dict[str, Any]:
        """Decide as the simulator would, and say it by name.

        Raises:
            InputError: The request is not allowed, or its policy cannot decide on such a cluster.
        """
        policy = self.policies.make(request.policy)
        names = ClusterNames.of(request)
        version = self.policies.version(request.policy)
        place = _fingerprint(request, names, version)
        before = None if request.memory is None else self._memory(request.memory, request.policy)
        ids = _ids(request)
        head = {"policy": request.policy, "version": VERSION, "code": version, "now_s": request.now_s}
        if not request.jobs:
            return head | nothing(request)
        order = sorted(range(len(ids)), key=lambda i: request.jobs[i].submission_s)
        problem = Problem(request, names, order)
        order = problem.order
        if not order:
            return head | nothing(request)
        submission_s = [request.jobs[i].submission_s for i in order]
        carried = Carried(policy, request.policy, place, [ids[i] for i in order], submission_s, before)
        instance = problem.instance(carried.like)
        check_fit([policy], instance)
        columns = memory_columns(policy, instance)
        state = present_state(request, names, order, carried.there, instance, columns)
        rng = carried.put_into(state, request)
        _decide(state, policy, rng)
        told = answer(state, request, names, order)
        return head | told | {"memory": carried.taken_from(state, rng).text(self.key)}

    def _memory(self, text: str, policy: str) -> Memory:
        found = Memory.read(text, self.key)
        if found.policy != policy:
            raise InputError("policy", policy, f"{found.policy}, whose memory the request brings; or memory = null")
        return found


def _decide(state: State, policy: Policy, rng: Generator) -> None:
    """Make one round, as `simulate` does."""
    state.begin_round(policy.preemption)
    policy.decide(state.view, rng)
    state.commit_round()


def _ids(request: DecideRequest) -> list[str]:
    ids = [job.id for job in request.jobs]
    first = {name: i for i, name in reversed(list(enumerate(ids)))}
    for i, name in enumerate(ids):
        if first[name] != i:
            raise InputError(f"jobs[{i}].id", name, f"an id of its own: jobs[{first[name]}] has it")
    return ids


def _fingerprint(request: DecideRequest, names: ClusterNames, version: str) -> str:
    """Give a number for all that indices in a policy's memory stand for."""
    parts = (
        version,
        [v.name for v in names.gpu_types],
        [(node.name, node.gpu_type, node.gpus) for node in request.cluster.nodes],
        [c.name for c in names.configurations],
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
