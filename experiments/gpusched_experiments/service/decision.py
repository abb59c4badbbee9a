"""From a request to its answer: a pure function, but for what is compiled and looked up once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import check_fit, memory_columns
from gpusched_env.version import VERSION
from gpusched_experiments.service import costs
from gpusched_experiments.service.catalogue import PolicyCatalogue
from gpusched_experiments.service.cluster import ClusterNames
from gpusched_experiments.service.fields import DecideRequest
from gpusched_experiments.service.limits import Limits
from gpusched_experiments.service.memory import Memory, generator_of, random_state
from gpusched_experiments.service.present import present_state
from gpusched_experiments.service.problem import Problem
from gpusched_experiments.service.problems import input_error

if TYPE_CHECKING:
    from gpusched_env.simulator import Board, Policy, State


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
    limits: Limits = Limits()

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
            return head | _nothing(request.memory)
        problem = Problem(request, names)
        instance = problem.instance()
        check_fit([policy], instance)
        ids = [ids[i] for i in problem.order]
        state = present_state(request, names, problem.order, instance, memory_columns(policy, instance))
        rng = _remember(state, ids, before, place, request)
        _decide(state, policy, rng)
        after = _to_remember(state, ids, before, (request.policy, place), rng)
        return head | _answer(state, request, names, problem.order) | {"memory": after.text(self.key)}

    def _memory(self, text: str, policy: str) -> Memory:
        found = Memory.read(text, self.key)
        if found.policy != policy:
            raise InputError("policy", policy, f"{found.policy}, whose memory the request brings; or memory = null")
        return found


def _decide(state: State, policy: Policy, rng: np.random.Generator) -> None:
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


def _remember(
    state: State, ids: list[str], before: Memory | None, place: str, request: DecideRequest
) -> np.random.Generator:
    """Put the policy's memory and the wake-ups back where they were, and count jobs on; give its randomness."""
    board = state.board
    count = board.count
    count[at.IDLE] = request.idle_rounds
    if before is None:
        return np.random.default_rng(request.seed)
    row_of = {name: row for row, name in enumerate(before.ids)}
    rows = np.array([row_of.get(name, -1) for name in ids])
    known = np.flatnonzero(rows >= 0)
    board.jobs[1 + known, at.WAKE_S] = before.wake_s[rows[known]]
    if before.place == place and before.rows.shape[1] == board.memory.shape[1]:
        board.memory[0] = before.rows[0]
        board.memory[1 + known] = before.rows[1 + rows[known]]
    submitted = before.submitted + len(ids) - len(known)
    count[at.SUBMITTED], count[at.DONE] = 1 + submitted, 1 + submitted - len(ids)
    count[at.ROUND] = before.rounds
    return generator_of(before.random)


def _to_remember(
    state: State, ids: list[str], before: Memory | None, names: tuple[str, str], rng: np.random.Generator
) -> Memory:
    board = state.board
    return Memory(
        *names,
        ids=ids,
        wake_s=board.jobs[1:, at.WAKE_S],
        rows=board.memory,
        rounds=int(board.count[at.ROUND]),
        submitted=int(board.count[at.SUBMITTED]) - 1,
        random=random_state(rng),
    )


def _nothing(memory: str | None) -> dict[str, Any]:
    """Answer a request without jobs."""
    return {
        "jobs": [],
        "running": 0,
        "waiting": 0,
        "ask_again_in_s": None,
        "ask_again_at_s": None,
        "expected_cost_eur": 0.0,
        "expected_energy_eur": 0.0,
        "expected_tardiness_eur": 0.0,
        "energy_eur_per_h": 0.0,
        "memory": memory,
    }


def _answer(state: State, request: DecideRequest, names: ClusterNames, order: list[int]) -> dict[str, Any]:
    board, now = state.board, request.now_s
    expected = costs.expected_costs(board)
    jobs: list[Any] = [None] * len(order)
    for job, index in enumerate(order, start=1):
        jobs[index] = _job(board, job, expected[job - 1].tolist(), request, names, index)
    wakes = board.jobs[1:, at.WAKE_S]
    wake = float(np.min(wakes, initial=np.inf, where=wakes > now))
    again = wake if np.isfinite(wake) else None
    energy, tardiness = (float(np.nansum(expected[:, column])) for column in (costs.ENERGY, costs.TARDINESS))
    running = int(np.sum(board.jobs[1:, at.CONFIG] >= 0.0))
    return {
        "jobs": jobs,
        "running": running,
        "waiting": len(order) - running,
        "ask_again_in_s": None if again is None else again - now,
        "ask_again_at_s": again,
        "expected_cost_eur": energy + tardiness,
        "expected_energy_eur": energy,
        "expected_tardiness_eur": tardiness,
        "energy_eur_per_h": 3600.0 * float(board.clock[at.BILL_RATE]),
    }


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
    same = held is not None and row[at.BASE_S] == held.since_s and _same(held, configuration.name, nodes, slot)
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


def _same(held: Any, configuration: str, nodes: list[str], slot: int) -> bool:
    place = held.configuration == configuration and set(held.nodes) == set(nodes)
    return place and slot == (-1 if held.gpu is None else held.gpu)
