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
from gpusched_env.simulator import Policy, State
from gpusched_env.simulator.policy import AS_A_POLICY, AskedAs, check_fit, memory_columns
from gpusched_env.version import VERSION
from gpusched_experiments.report.cell import each_once
from gpusched_experiments.report.code_version import agent_version, code_version
from gpusched_operations.service.answers import answer, decided
from gpusched_operations.service.cluster import ClusterNames
from gpusched_operations.service.deferral import LEAST_EUR, settle_deferrals
from gpusched_operations.service.facts import DecisionFacts
from gpusched_operations.service.fields import DEFAULT, NO_WAITING, DecideRequest, RequestLimits, input_error
from gpusched_operations.service.memory import Memory, SessionState
from gpusched_operations.service.present import present_state
from gpusched_operations.service.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.random import Generator

    from gpusched_env.arrays import Floats


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
            listed = [*usual_policy_names(), NO_WAITING, *(n for n in known_policies() if is_agent(n))]
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

    def told(self, deferred: Floats | None = None) -> dict[str, Any]:
        return decided(self.state, self.request, self.names, self.order, deferred)


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
        told = self.decide(request)
        after = time.perf_counter()
        text = json.dumps(told, allow_nan=False)
        spent = {"parse": parsed - begin, "decide": after - parsed, "answer": time.perf_counter() - after}
        milliseconds = json.dumps({name: round(1000.0 * seconds, 3) for name, seconds in spent.items()})
        return f'{text[:-1]}, "milliseconds": {milliseconds}}}'.encode(), DecisionFacts.of(request, told, spent)

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
        deferred = _decide(opened.state, opened.policy, opened.rng, request)
        return (
            head
            | opened.told(deferred)
            | {"memory": opened.session.taken_from(opened.state, opened.rng).text(self.key)}
        )

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


def _decide(state: State, policy: Policy, rng: Generator, request: DecideRequest) -> Floats | None:
    """Decide a round; return what `settle_deferrals` does where the policy defers jobs."""
    state.begin_round(policy.preemption)
    policy.decide(state.view, rng)
    least_eur, deferred = -np.inf if request.as_simulated else LEAST_EUR, None
    if getattr(policy, "defers", False):
        deferred = settle_deferrals(state.board, least_eur)
    state.commit_round()
    return deferred


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
