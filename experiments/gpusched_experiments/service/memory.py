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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
