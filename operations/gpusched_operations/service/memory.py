"""What goes on from one decision to the next, as a text that only this service's like can write.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.arrays import generator_of
from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import LookingBack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.simulator import Policy, State
    from gpusched_operations.service.fields import DecideRequest

SIGNATURE_BYTES = 32
FORMAT = b"3"  # is signed too: what was written in another format is refused
TIMER, SLOWDOWN, SUBMISSION, WEIGHT, OF_JOBS = range(5)
"""Columns of what is kept of every job, and their number."""
KEPT = [at.TIMER_S, at.SLOWDOWN, at.SUBMISSION, at.WEIGHT]
USUAL = 1.0  # the speed of a job alone, which is not written
IN_HEAD = ("policy", "place", "ids", "rounds", "submitted", "random")
ALLOWED = "null, or the memory that a service with the same key and version answered to a request of this policy"


@dataclass(frozen=True, slots=True)
class Memory:
    """What is carried from one decision to the next.

    Attributes:
        policy: Name of the policy.
        place: Fingerprint of the cluster and its configurations: of another one only timers count.
        ids: The jobs, sorted by submission, (J,); for a policy that looks back, the latest that are over too.
        jobs: When each asked to be looked at again, the speed that it had at the end of the round or last had, and for
            a policy that looks back when it was submitted, and its weight; else 0, (J, 4).
        rows: The policy's memory: of the run, then of each job, (1 + J, M).
        rounds: Decisions so far.
        submitted: Jobs that were ever there.
        random: State of the randomness.
    """

    policy: str
    place: str
    ids: Sequence[str]
    jobs: NDArray[np.float64]
    rows: NDArray[np.float64]
    rounds: int
    submitted: int
    random: dict[str, Any]

    def text(self, key: bytes) -> str:
        """Write it, signed with `key`. Columns that are 0 for all jobs are left out."""
        table = np.column_stack([np.vstack([np.zeros(OF_JOBS), self.jobs]), self.rows])
        table[1:, SLOWDOWN] = np.where(self.jobs[:, SLOWDOWN] == USUAL, 0.0, self.jobs[:, SLOWDOWN])
        columns = np.flatnonzero(np.any(table != 0.0, axis=0))
        head = {name: getattr(self, name) for name in IN_HEAD} | {"width": table.shape[1], "columns": columns.tolist()}
        payload = json.dumps(head).encode() + b"\n" + np.ascontiguousarray(table[:, columns], dtype="<f8").tobytes()
        return base64.b64encode(_signature(key, payload) + payload).decode()

    @classmethod
    def read(cls, text: str, key: bytes) -> Memory:
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
        table[1:, SLOWDOWN] = np.where(table[1:, SLOWDOWN] == 0.0, USUAL, table[1:, SLOWDOWN])
        return cls(jobs=table[1:, :OF_JOBS], rows=table[:, OF_JOBS:], **{name: head[name] for name in IN_HEAD})


def _signature(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, FORMAT + payload, hashlib.sha256)


NO_JOB = -1  # stands in place of the jobs that are over where a policy looks at none


class SessionState:
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
        like: For every job of the instance its place in `ids`; if it is over, that of one beside it, (K + J,).
    """

    def __init__(
        self,
        policy: Policy,
        name: str,
        place: str,
        ids: list[str],
        submission_s: Sequence[float],
        before: Memory | None,
    ) -> None:
        self.name, self.place, self.ids, self.before = name, place, ids, before
        most = policy.jobs_over if isinstance(policy, LookingBack) else 0
        self._looks_back = most > 0
        self._row_of = {} if before is None else {job: row for row, job in enumerate(before.ids)}
        self._submitted = (0 if before is None else before.submitted) + len(set(ids) - self._row_of.keys())
        kept, places = [NO_JOB], [0]
        if self._looks_back:
            present, last = set(ids), len(self._row_of)
            kept = [row for job, row in self._row_of.items() if job not in present][-most:]
            keys = [(s, self._row_of.get(job, last)) for s, job in zip(submission_s, ids, strict=True)]
            places = [bisect_left(keys, (before.jobs[row, SUBMISSION], row)) for row in kept] if before else []
        self.kept = np.array(kept, dtype=np.int64)
        self.over = np.array(places, dtype=np.int64) + np.arange(len(kept))
        self.there = np.delete(np.arange(len(kept) + len(ids)), self.over)
        like = np.zeros(len(kept) + len(ids), dtype=np.int64)
        like[self.there] = np.arange(len(ids))
        self.like = np.maximum.accumulate(like)

    def put_into(self, state: State, request: DecideRequest) -> np.random.Generator:
        """Put memory and timers back where they were, and count jobs on; give the randomness."""
        board, before, over, row_of = state.board, self.before, self.over, self._row_of
        board.count[at.IDLE], board.count[at.DONE] = request.idle_rounds, self._submitted - len(self.ids)
        board.jobs[over, at.WEIGHT], board.jobs[over, at.CHEAPEST] = 0.0, -1.0
        if before is None:
            return np.random.default_rng(request.seed)
        known = [i for i, name in enumerate(self.ids) if name in row_of]
        rows, jobs = np.array([row_of[self.ids[i]] for i in known], dtype=np.int64), self.there[known]
        board.jobs[jobs[:, None], KEPT[:SUBMISSION]] = before.jobs[rows, :SUBMISSION]
        if self._looks_back:
            board.jobs[over, at.WEIGHT] = before.jobs[self.kept, WEIGHT]
            board.jobs[over, at.SUBMISSION] = np.minimum(before.jobs[self.kept, SUBMISSION], request.now_s)
        if before.rows.shape[1] == board.memory.shape[1]:
            same = before.place == self.place
            if same or self._looks_back:
                board.memory[over] = before.rows[1 + self.kept]
            if same:
                board.memory[jobs] = before.rows[1 + rows]
        board.count[at.ROUND] = before.rounds
        return generator_of(before.random)

    def taken_from(self, state: State, rng: np.random.Generator) -> Memory:
        """Take what the next decision needs from a state after its round."""
        board = state.board
        names = dict(zip(self.there.tolist(), self.ids, strict=True))
        if self._looks_back and self.before is not None:
            over = zip(self.over.tolist(), self.kept.tolist(), strict=True)
            names |= {job: self.before.ids[row] for job, row in over}
        jobs = sorted(names)
        own = np.zeros((1, board.memory.shape[1])) if self._looks_back else board.memory[:1]
        return Memory(
            policy=self.name,
            place=self.place,
            ids=[names[job] for job in jobs],
            jobs=board.jobs[jobs][:, KEPT] * [1.0, 1.0, self._looks_back, self._looks_back],
            rows=np.concatenate([own, board.memory[jobs]]),
            rounds=int(board.count[at.ROUND]),
            submitted=self._submitted,
            random=dict(rng.bit_generator.state),
        )
