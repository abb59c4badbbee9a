"""From a request to its answer: a pure function, but for what is compiled and looked up once.

Also which policies a service answers for: reference policies, shipped agents, and agents named at its start.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import ValidationError

from gpusched_agents.any_policy import full_name, is_agent, is_own_policy, known_policies, make_any_policy, shown_name
from gpusched_agents.files.storage import PREFIX, find_agent, load_description
from gpusched_baselines.registry import POLICIES, usual_policy_names
from gpusched_env.errors import InputError, nearest_first
from gpusched_env.simulator import Board, Policy, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import places_of
from gpusched_env.simulator.policy import AS_A_POLICY, AskedAs, check_fit, memory_columns
from gpusched_env.version import VERSION
from gpusched_experiments.report.cell import each_once
from gpusched_experiments.report.code_version import agent_version, code_version
from gpusched_operations.service.cluster import ClusterNames
from gpusched_operations.service.facts import DecisionFacts
from gpusched_operations.service.fields import DEFAULT, DecideRequest, RequestLimits, input_error
from gpusched_operations.service.memory import Memory, SessionState
from gpusched_operations.service.present import END_S, ENERGY, TARDINESS, expected_costs, present_state
from gpusched_operations.service.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.random import Generator


@dataclass(frozen=True)
class PolicyCatalogue:
    """The policies of a service, by the names that requests use.

    Args:
        names: Names of the policies: `NAME`, `agent:NAME`.
        agents: Folders of agents that the operator names, by name: `agent:NAME` in requests.
        files: Files of policies of the operator's own, as `FILE.py:NAME`, by the policies' names.

    Raises:
        InputError: There is no such policy, an agent is not whole, or two have one name.
    """

    names: tuple[str, ...]
    agents: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, names: str = "all", agents: Mapping[str, str] | None = None) -> PolicyCatalogue:
        """Take the policies of a list with commas, `usual`, or `all`; agents of the operator's own come to them."""
        own = dict(agents or {})
        listed = [name.strip() for name in names.split(",")]
        if listed == ["all"]:
            listed = list(_answering())
        elif listed == ["usual"]:
            listed = [*usual_policy_names(), *(n for n in known_policies() if is_agent(n))]
        shown = [shown_name(name) for name in listed]
        each_once("--policies", shown)
        files = {name: full_name(given) for name, given in zip(shown, listed, strict=True) if is_own_policy(given)}
        listed = shown
        for name in listed:
            if name not in files and name not in _answering():
                near = nearest_first(name, _answering())
                raise InputError("--policies", name, f"all, usual, FILE.py:Class of your own, or some of {near}")
        for name in files.keys() & {*_answering(), *(f"{PREFIX}{name}" for name in own)}:
            raise InputError("--policies", files[name], f"a policy whose name is not {name}, which another one has")
        for name in own:
            if not name or f"{PREFIX}{name}" in known_policies():
                raise InputError("--agent", name, "a name that no shipped agent has")
        made = cls((*listed, *(f"{PREFIX}{name}" for name in own)), own, files)
        for name in own:
            try:
                made.make(f"{PREFIX}{name}")
            except InputError as error:
                raise InputError(f"--agent {name}", error.value, error.allowed) from None
        return made

    def make(self, name: str) -> Policy:
        """Make a policy, once for all requests: policies keep nothing of a run."""
        if name not in self.names:
            raise InputError("policy", name, f"one of {', '.join(self.names)}")
        return _made(self._given(name))

    def version(self, name: str) -> str:
        given = self._given(name)
        return f"{code_version()}-{agent_version(given)}" if is_agent(given) else code_version()

    def entries(self) -> list[dict[str, object]]:
        return [
            {
                "name": name,
                "line": self._line(name),
                "preemption": bool(self.make(name).preemption),
                "version": self.version(name),
            }
            for name in self.names
        ]

    def _given(self, name: str) -> str:
        agent = self.agents.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
        return self.files.get(name, name) if agent is None else f"{PREFIX}{agent}"

    def _line(self, name: str) -> str:
        if not is_agent(self._given(name)):
            return POLICIES[name].line
        if is_own_policy(self._given(name)):
            return "Of the operator's own"
        spec = load_description(find_agent(self._given(name))).spec
        return f"Learned; for up to {spec.max_configurations} {', '.join(spec.kinds)} configurations"


def _answering() -> tuple[str, ...]:
    """Return the policies that can answer: not those that replay what really ran, or that number jobs by the run."""
    return tuple(
        name
        for name in known_policies()
        if is_agent(name) or not (POLICIES[name].replays or POLICIES[name].simulated_only)
    )


_made = cache(make_any_policy)
R = TypeVar("R", bound=DecideRequest)

WAITS = ("id", "ask_again_at_s", "action", "configuration", "why")
WHY = "no node that is there can hold what it may use"


def answer(
    request: DecideRequest, jobs: Iterable[dict[str, Any]], timer_s: float, costs_eur: tuple[float, float], rate: float
) -> dict[str, Any]:
    """Return the answer.

    Args:
        jobs: What jobs get that fit something now; all others wait.
        timer_s: The first time at which one asked to be looked at again [s]; inf: none.
        costs_eur: Expected cost of energy, and of tardiness [€].
        rate: Cost of energy now [€/s].
    """
    given = {job["id"]: job for job in jobs}
    told = [
        given.get(job.id) or dict.fromkeys(WAITS) | {"id": job.id, "action": "wait", "why": WHY} for job in request.jobs
    ]
    running = sum(job["configuration"] is not None for job in told)
    again = timer_s if np.isfinite(timer_s) else None
    return {
        "jobs": told,
        "running": running,
        "waiting": len(told) - running,
        "ask_again_in_s": None if again is None else again - request.now_s,
        "ask_again_at_s": again,
        "expected_cost_eur": sum(costs_eur),
        "expected_energy_eur": costs_eur[0],
        "expected_tardiness_eur": costs_eur[1],
        "energy_eur_per_h": 3600.0 * rate,
    }


def _decided(state: State, request: DecideRequest, names: ClusterNames, order: list[int]) -> dict[str, Any]:
    """Return the answer after the round: of the jobs at these places in the request what they got."""
    board = state.board
    active, expected = board.active[: len(order)], expected_costs(board)
    timers = board.jobs[active, at.TIMER_S]
    jobs = (
        _job(board, job, each, request, names, index)
        for job, index, each in zip(active.tolist(), order, expected.tolist(), strict=True)
    )
    energy, tardiness = (float(np.nansum(expected[:, column])) for column in (ENERGY, TARDINESS))
    timer_s = float(np.min(timers, initial=np.inf, where=timers > request.now_s))
    return answer(request, jobs, timer_s, (energy, tardiness), float(board.clock[at.BILL_RATE]))


def _job(
    board: Board, job: int, expected: list[float], request: DecideRequest, names: ClusterNames, index: int
) -> dict[str, Any]:
    """Return what a job gets: `start`, `keep`, `change`, `stop` or `wait`."""
    row, given = board.jobs[job], request.jobs[index]
    config, timer = int(row[at.CONFIG]), float(row[at.TIMER_S])
    base = {"id": given.id, "ask_again_at_s": timer if np.isfinite(timer) and timer > request.now_s else None}
    if config < 0:
        return base | {"action": "wait" if given.running is None else "stop", "configuration": None}
    configuration = names.configurations[config]
    nodes = [request.cluster.nodes[node].name for node in places_of(board, job, old=False)]
    slot = int(row[at.SLOT])
    held = given.running
    now = configuration.name, sorted(nodes), None if slot < 0 else slot
    same = held is not None and (held.configuration, sorted(held.nodes), held.gpu) == now
    return base | {
        "action": "keep" if same else "start" if held is None else "change",
        "configuration": configuration.name,
        "gpu_type": configuration.gpu_type,
        "nodes": nodes,
        "gpus_per_node": configuration.gpus_per_node,
        "share": configuration.share,
        "gpu": now[2],
        "ready_s": float(row[at.READY_S]),
        "expected_end_s": expected[END_S],
        "expected_energy_eur": expected[ENERGY],
        "expected_tardiness_eur": expected[TARDINESS],
    }


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request as a state of the simulator, before its round.

    Attributes:
        request: The request.
        names: Its cluster.
        order: Places in the request of the jobs that fit something now, sorted by submission, (J,).
        policy: The policy that it asks.
        session: What goes on from one decision to the next; `session.there` are their indices in the state, (J,).
        state: The state at `now_s`; nothing is decided yet.
        rng: The policy's randomness.
    """

    request: DecideRequest
    names: ClusterNames
    order: list[int]
    policy: Policy
    session: SessionState
    state: State
    rng: Generator

    def told(self) -> dict[str, Any]:
        return _decided(self.state, self.request, self.names, self.order)


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
    limits: RequestLimits = DEFAULT

    def __call__(self, body: bytes) -> bytes:
        return self.answered(body)[0]

    def answered(self, body: bytes) -> tuple[bytes, DecisionFacts]:
        """Return the answer to a request, both as JSON, and what is counted of it; raises what a call raises."""
        begin = time.perf_counter()
        request: DecideRequest = self.parse(body)
        parsed = time.perf_counter()
        answer = self.decide(request)
        decided = time.perf_counter()
        text = json.dumps(answer, allow_nan=False)
        written = time.perf_counter()
        spent = {"parse": parsed - begin, "decide": decided - parsed, "answer": written - decided}
        milliseconds = json.dumps({name: round(1000.0 * seconds, 3) for name, seconds in spent.items()})
        return f'{text[:-1]}, "milliseconds": {milliseconds}}}'.encode(), DecisionFacts.of(request, answer, spent)

    def parse(self, body: bytes) -> DecideRequest:
        return self.read(body, DecideRequest)

    def read(self, body: bytes, kind: type[R]) -> R:
        """Read a request of a kind; raises what `parse` raises."""
        if len(body) > self.limits.request_bytes:
            raise InputError("body", f"{len(body):,} bytes", f"at most {self.limits.request_bytes:,} bytes")
        return self._checked(kind.model_validate_json, body)

    def ask(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request whose fields are Python's objects; raises what a call raises."""
        return self.decide(self.request(fields))

    def request(self, fields: Mapping[str, Any], kind: type[R] = DecideRequest) -> R:  # type: ignore[assignment]
        """Make a request of a kind from its fields as Python's objects; raises what `parse` raises."""
        return self._checked(kind.model_validate, fields)

    def _checked(self, make: Callable[[Any], R], source: object) -> R:
        try:
            request = make(source)
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
        """Decide as the simulator would, and say it by name."""
        opened = self.open(request)
        head = {name: getattr(request, name) for name in ("policy", "now_s")}
        head |= {"version": VERSION, "code": self.policies.version(request.policy)}
        if opened is None:  # nothing is to be decided: no jobs, or none that fits anything now
            return head | answer(request, (), np.inf, (0.0, 0.0), 0.0) | {"memory": request.memory}
        _decide(opened.state, opened.policy, opened.rng)
        return head | opened.told() | {"memory": opened.session.taken_from(opened.state, opened.rng).text(self.key)}

    def open(self, request: DecideRequest) -> OpenRequest | None:
        """Make the state that a request tells, before its round begins; None if no job fits anything now."""
        policy = self.policies.make(request.policy)
        before = None if request.memory is None else Memory.read(request.memory, self.key)
        if before is not None and before.policy != request.policy:
            allowed = f"{before.policy}, whose memory the request brings; or memory = null"
            raise InputError("policy", request.policy, allowed)
        return open_request(request, policy, self.policies.version(request.policy), before)


def open_request(
    request: DecideRequest, policy: Policy, version: str, before: Memory | None = None
) -> OpenRequest | None:
    """Make the state that a request tells, before its round begins; None if no job fits anything now.

    Args:
        request: The request; neither its `memory` nor the name of its policy is read.
        version: A fingerprint of the code that does.
        before: What goes on from the decision before; None for the first.
    """
    names = ClusterNames.of(request)
    place = _fingerprint(request, names, version)
    ids = _ids(request)
    order = sorted(range(len(ids)), key=lambda i: request.jobs[i].submission_s)
    problem = Problem(request, names, order)
    order = problem.order
    if not order:
        return None
    submission_s = [request.jobs[i].submission_s for i in order]
    session = SessionState(policy, request.policy, place, [ids[i] for i in order], submission_s, before)
    instance = problem.instance(session.like)
    check_fit([policy], instance)
    columns = memory_columns(policy, instance)
    asking = policy.asking if isinstance(policy, AskedAs) else AS_A_POLICY
    state = present_state(request, names, order, session.there, instance, columns, asking)
    return OpenRequest(request, names, order, policy, session, state, session.put_into(state, request))


def _decide(state: State, policy: Policy, rng: Generator) -> None:
    state.begin_round(policy.preemption)
    policy.decide(state.view, rng)
    state.commit_round()


def _ids(request: DecideRequest) -> list[str]:
    ids = [job.id for job in request.jobs]
    if len(set(ids)) < len(ids):
        i, name = next((i, name) for i, name in enumerate(ids) if name in ids[:i])
        raise InputError(f"jobs[{i}].id", name, f"an id of its own: jobs[{ids.index(name)}] has it")
    return ids


def _fingerprint(request: DecideRequest, names: ClusterNames, version: str) -> str:
    parts = (
        version,
        [v.name for v in names.gpu_types],
        [(node.name, node.gpu_type, node.gpus) for node in request.cluster.nodes],
        [c.name for c in names.configurations],
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
