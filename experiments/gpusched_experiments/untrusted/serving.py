"""Answering the process that simulates: what the entry is, where it can decide, and its rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.model import Configuration
from gpusched_env.simulator import Board, Facts, View, check_fit
from gpusched_env.simulator.policy import memory_columns
from gpusched_env.workload import Scenario, make_instance
from gpusched_experiments.untrusted.adopt import wanted_of
from gpusched_experiments.untrusted.channel import Channel, ClosedError
from gpusched_experiments.untrusted.loading import agent_maker, python_maker, said_of
from gpusched_experiments.untrusted.seen_board import SEEN, BoardCopy, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy

MOST = 2**31


class Server:
    """Answers over a channel, a message each.

    Args:
        channel: Where messages come from and answers go.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.file = ""
        self._make: Callable[[], Policy]
        self._policy: Policy
        self._copy: BoardCopy
        self._view: View
        self._rng: np.random.Generator

    def serve(self, held: list[str]) -> None:
        """Say which protections hold, then answer until nobody is there; what goes wrong is an answer too."""
        self.channel.send({"held": held})
        answers = {"load": self._load, "fit": self._fit, "begin": self._begin, "round": self._round}
        while True:
            try:
                head, body = self.channel.receive(MOST, most_head=MOST)
            except ClosedError:
                return
            try:
                answer, parts = answers[head["kind"]](head, memoryview(body))
            except BaseException as error:  # noqa: BLE001 - whatever a policy raises is said
                answer, parts = {"error": said_of(error, self.file)[:1000]}, []
            self.channel.send(answer, parts)

    def _load(self, head: dict[str, Any], body: memoryview) -> tuple[dict[str, Any], list[bytes]]:
        self.file = head["file"]
        if head["what"] == "agent":
            self._make = agent_maker()
        else:
            self._make = python_maker(bytes(body), head["file"], head["made_by"])
        policy = self._make()
        return {"preemption": bool(policy.preemption), "named": isinstance(policy.name, str)}, []

    def _fit(self, head: dict[str, Any], _: memoryview) -> tuple[dict[str, Any], list[bytes]]:
        """Say why the policy cannot decide on such workloads; nothing if it can."""
        try:
            check_fit([self._make()], _another(head))
        except ValueError as error:
            return {"misfit": str(error)[:1000]}, []
        return {}, []

    def _begin(self, head: dict[str, Any], body: memoryview) -> tuple[dict[str, Any], list[bytes]]:
        """Begin a run."""
        facts, body = read(head["facts"], body)
        arrays, _ = read(head["board"], body)
        self._policy = self._make()
        columns = memory_columns(self._policy, _another(head))
        jobs = len(arrays["jobs"])
        scratch = {"keys": np.zeros(jobs), "order": np.zeros(jobs, dtype=np.int64), "memory": np.zeros((jobs, columns))}
        board = Board(facts=Facts(**facts), **{name: arrays[name] for name in SEEN}, **scratch)
        self._copy = BoardCopy(board)
        self._view = View(board, tuple(Configuration(*each) for each in head["configurations"]))
        bits = np.random.PCG64(0)
        bits.state = head["random"]
        self._rng = np.random.Generator(bits)
        return {}, []

    def _round(self, head: dict[str, Any], body: memoryview) -> tuple[dict[str, Any], list[bytes]]:
        """Decide a round."""
        self._copy.change(head["changes"], body)
        self._policy.decide(self._view, self._rng)
        return {}, wanted_of(self._copy.board, self._copy.active)


def _another(head: dict[str, Any]) -> Instance:
    """Make another workload of the same kind: it has the cluster of the one that is run, and not its jobs."""
    return make_instance(Scenario.model_validate(head["scenario"]), head["another_seed"])
