"""What is counted and logged of a decision: found where it is made, told to the process that answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from gpusched_operations.service.fields import DecideRequest

OTHER = "other"
"""Stands for a policy that a service has not: a caller cannot make up names that are kept."""
_POLICY = re.compile(rb'"policy"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class DecisionFacts:
    """What is counted of a decision.

    Attributes:
        jobs: Jobs of the request.
        nodes: Nodes of the request.
        gpus: GPUs of these nodes.
        actions: Number of jobs by what they got, such as `start`.
        seconds: Time of each step: `parse`, `decide`, `answer` [s].
    """

    jobs: int = 0
    nodes: int = 0
    gpus: int = 0
    actions: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, request: DecideRequest, answer: Mapping[str, Any], seconds: Mapping[str, float]) -> Self:
        nodes = request.cluster.nodes
        actions = Counter(job["action"] for job in answer["jobs"])
        return cls(len(request.jobs), len(nodes), sum(node.gpus for node in nodes), actions, seconds)

    def written(self) -> bytes:
        return json.dumps({name: getattr(self, name) for name in type(self).__slots__}).encode()

    @classmethod
    def read(cls, text: bytes) -> Self:
        return cls(**json.loads(text))


def policy_in(body: bytes, known: Collection[str]) -> str:
    """Return the policy that a request asks for, found without reading all of it; `other` if it is none of `known`."""
    found = _POLICY.search(body)
    name = found[1].decode(errors="replace") if found else ""
    return name if name in known else OTHER
