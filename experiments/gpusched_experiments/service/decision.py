"""From a request to its answer: a pure function, but for what is compiled and looked up once."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpusched_env.errors import InputError
from gpusched_env.simulator.policy import check_fit, memory_columns
from gpusched_env.version import VERSION
from gpusched_experiments.service.answer import answer, nothing
from gpusched_experiments.service.carried import Carried
from gpusched_experiments.service.cluster import ClusterNames
from gpusched_experiments.service.fields import DecideRequest
from gpusched_experiments.service.limits import DEFAULT, Limits
from gpusched_experiments.service.memory import Memory
from gpusched_experiments.service.present import present_state
from gpusched_experiments.service.problem import Problem
from gpusched_experiments.service.problems import input_error

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import Policy, State
    from gpusched_experiments.service.catalogue import PolicyCatalogue


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
