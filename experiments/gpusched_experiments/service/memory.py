"""What a policy remembers from one decision to the next, as a text that only this service's like can write.

Policies keep numbers, some of which are indices that compiled code uses as they are. So the text is signed: what comes
back is what some service with the same key has written, or is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.network.knob_policy import KnobPolicy
from gpusched_agents.network.steering import SteeringPolicy
from gpusched_baselines.shared_gpus.fill import Fill
from gpusched_baselines.steering_env.features import RECENT
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.simulator import Policy, State
    from gpusched_experiments.service.fields import DecideRequest

SIGNATURE_BYTES = 32
FORMAT = b"2"  # is signed too: what was written in another format is refused
OF_JOBS = 4  # columns of what is kept of every job, beside the policy's memory
USUAL = 1.0  # the pace of a job alone, which is not written
ALLOWED = "null, or the memory that a service with the same key and version answered to a request of this policy"


@dataclass(frozen=True, slots=True)
class Memory:
    """What is carried from one decision to the next.

    Attributes:
        policy: Name of the policy.
        place: Fingerprint of the cluster and its configurations: of another one only wake-ups count.
        ids: The jobs, sorted by submission, (J,); for a policy that looks back, the latest that are over too.
        wake_s: When each asked to be looked at again, (J,).
        pace: The pace that each had at the end of the round, or last had, (J,).
        submission_s: When each was submitted, (J,); 0 for a policy that does not look back.
        weight: Their weights, (J,), likewise.
        rows: The policy's memory: of the run, then of each job, (1 + J, M).
        rounds: Decisions so far.
        submitted: Jobs that were ever there.
        random: State of the randomness.
    """

    policy: str
    place: str
    ids: Sequence[str]
    wake_s: NDArray[np.float64]
    pace: NDArray[np.float64]
    submission_s: NDArray[np.float64]
    weight: NDArray[np.float64]
    rows: NDArray[np.float64]
    rounds: int
    submitted: int
    random: dict[str, Any]

    def text(self, key: bytes) -> str:
        """Write it, signed with `key`. Columns that are 0 for all jobs are left out."""
        pace = np.where(self.pace == USUAL, 0.0, self.pace)
        of_jobs = np.column_stack([self.wake_s, pace, self.submission_s, self.weight])
        table = np.column_stack([np.vstack([np.zeros(OF_JOBS), of_jobs]), self.rows])
        columns = np.flatnonzero(np.any(table != 0.0, axis=0))
        head = {
            "policy": self.policy,
            "place": self.place,
            "ids": list(self.ids),
            "width": table.shape[1],
            "columns": columns.tolist(),
            "rounds": self.rounds,
            "submitted": self.submitted,
            "random": self.random,
        }
        payload = json.dumps(head).encode() + b"\n" + np.ascontiguousarray(table[:, columns], dtype="<f8").tobytes()
        return base64.b64encode(_signature(key, payload) + payload).decode()

    @classmethod
    def read(cls, text: str, key: bytes) -> Memory:
        """Read what `text` wrote with the same key.

        Raises:
            InputError: It is nothing that a service with this key wrote.
        """
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("memory", text, ALLOWED) from None
        signature, payload = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, _signature(key, payload)):
            raise InputError("memory", text, ALLOWED)
        line, _, numbers = payload.partition(b"\n")
        head = json.loads(line)
        table = np.zeros((1 + len(head["ids"]), head["width"]))
        table[:, head["columns"]] = np.frombuffer(numbers, dtype="<f8").reshape(len(table), len(head["columns"]))
        told = {name: head[name] for name in ("policy", "place", "ids", "rounds", "submitted", "random")}
        wake_s, pace, submission_s, weight = table[1:, :OF_JOBS].T
        pace = np.where(pace == 0.0, USUAL, pace)
        return cls(wake_s=wake_s, pace=pace, submission_s=submission_s, weight=weight, rows=table[:, OF_JOBS:], **told)


def _signature(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, FORMAT + payload, hashlib.sha256)


def random_state(rng: np.random.Generator) -> dict[str, Any]:
    """Give the state of a generator as JSON can hold it."""
    state: Any = rng.bit_generator.state
    words = {name: hex(value) for name, value in state["state"].items()}
    return {**words, "has_uint32": int(state["has_uint32"]), "uinteger": int(state["uinteger"])}


def generator_of(state: dict[str, Any]) -> np.random.Generator:
    """Make the generator with a state that `random_state` gave."""
    bits = np.random.PCG64(0)
    told: Any = {
        "bit_generator": "PCG64",
        "state": {name: int(state[name], 16) for name in ("state", "inc")},
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }
    bits.state = told
    return np.random.Generator(bits)


MOST_WEIGHTS = 5_000
"""Jobs that are over of which a policy that looks at their weights sees the latest."""

AGENTS = (SteeringPolicy, KnobPolicy)  # which observe what the latest submissions need
NO_JOB = -1  # stands in place of the jobs that are over where a policy looks at none


def jobs_over(policy: Policy) -> int:
    """Say at how many jobs that are over a policy looks: Fill at their weights, an agent at what they needed."""
    return MOST_WEIGHTS if isinstance(policy, Fill) else RECENT if isinstance(policy, AGENTS) else 0


@dataclass(frozen=True)
class Carried:
    """What goes on from one decision to the next.

    A policy that looks at jobs that are over has the latest of them among the others, in the order of submission. For
    all other policies there is one such job before the others, which has the run's own row of their memory.

    Args:
        policy: The policy.
        name: Its name in requests.
        place: Fingerprint of the cluster.
        ids: The jobs that are there, sorted by submission, (J,).
        submission_s: When they were submitted, (J,).
        before: What the request brings.

    Attributes:
        kept: The jobs that are over: their rows in `before`, (K,).
        over: Their indices in the instance, rising, (K,).
        there: Indices of those that are there, (J,).
    """

    policy: Policy
    name: str
    place: str
    ids: Sequence[str]
    submission_s: Sequence[float]
    before: Memory | None
    kept: NDArray[np.int64] = field(init=False)
    over: NDArray[np.int64] = field(init=False)
    there: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        before, row_of, most = self.before, self._row_of, jobs_over(self.policy)
        kept, places = [NO_JOB], [0]
        if most > 0:
            present = set(self.ids)
            kept = [row for name, row in row_of.items() if name not in present][-most:]
            keys = [(s, row_of.get(name, len(row_of))) for s, name in zip(self.submission_s, self.ids, strict=True)]
            places = [bisect_left(keys, (before.submission_s[row], row)) for row in kept] if before else []
        over = np.array(places, dtype=np.int64) + np.arange(len(kept))
        object.__setattr__(self, "kept", np.array(kept, dtype=np.int64))
        object.__setattr__(self, "over", over)
        object.__setattr__(self, "there", np.delete(np.arange(len(kept) + len(self.ids)), over))

    @property
    def like(self) -> NDArray[np.int64]:
        """Give for every job of the instance its place in `ids`; if it is over, that of one beside it."""
        places = np.zeros(len(self.over) + len(self.there), dtype=np.int64)
        places[self.there] = np.arange(len(self.there))
        return np.maximum.accumulate(places)

    @property
    def _row_of(self) -> dict[str, int]:
        return {} if self.before is None else {name: row for row, name in enumerate(self.before.ids)}

    @property
    def _submitted(self) -> int:
        """Count the jobs that were ever there."""
        former = 0 if self.before is None else self.before.submitted
        return former + len(set(self.ids) - self._row_of.keys())

    def put_into(self, state: State, request: DecideRequest) -> np.random.Generator:
        """Put memory and wake-ups back where they were, and count jobs on; give the randomness."""
        board, before, over, row_of = state.board, self.before, self.over, self._row_of
        board.count[at.IDLE] = request.idle_rounds
        board.jobs[over, at.WEIGHT], board.jobs[over, at.CHEAPEST] = 0.0, -1.0
        if before is None:
            return np.random.default_rng(request.seed)
        looks_back, known = jobs_over(self.policy) > 0, [i for i, name in enumerate(self.ids) if name in row_of]
        rows, jobs = np.array([row_of[self.ids[i]] for i in known], dtype=np.int64), self.there[known]
        board.jobs[jobs, at.WAKE_S], board.jobs[jobs, at.PACE] = before.wake_s[rows], before.pace[rows]
        if looks_back:
            board.jobs[over, at.WEIGHT] = before.weight[self.kept]
            board.jobs[over, at.SUBMISSION] = np.minimum(before.submission_s[self.kept], request.now_s)
        if before.rows.shape[1] == board.memory.shape[1]:
            same = before.place == self.place
            if same or looks_back:
                board.memory[over] = before.rows[1 + self.kept]
            if same:
                board.memory[jobs] = before.rows[1 + rows]
        # One job that is over may stand for all: with each of them, submissions and ends rise by one.
        board.count[at.DONE] += 2 * (self._submitted - len(self.ids))
        board.count[at.ROUND] = before.rounds
        return generator_of(before.random)

    def taken_from(self, state: State, rng: np.random.Generator) -> Memory:
        """Take what the next decision needs from a state after its round."""
        board, looks_back = state.board, jobs_over(self.policy) > 0
        names = dict(zip(self.there.tolist(), self.ids, strict=True))
        if looks_back and self.before is not None:
            over = zip(self.over.tolist(), self.kept.tolist(), strict=True)
            names |= {job: self.before.ids[row] for job, row in over}
        jobs = sorted(names)
        own = np.zeros((1, board.memory.shape[1])) if looks_back else board.memory[:1]
        return Memory(
            policy=self.name,
            place=self.place,
            ids=[names[job] for job in jobs],
            wake_s=board.jobs[jobs, at.WAKE_S],
            pace=board.jobs[jobs, at.PACE],
            submission_s=board.jobs[jobs, at.SUBMISSION] * looks_back,
            weight=board.jobs[jobs, at.WEIGHT] * looks_back,
            rows=np.concatenate([own, board.memory[jobs]]),
            rounds=int(board.count[at.ROUND]),
            submitted=self._submitted,
            random=random_state(rng),
        )
