"""An entry as a policy: it decides elsewhere, and what it decides is checked and done here."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.workload import make_instance
from gpusched_experiments.untrusted.adopt import adopt
from gpusched_experiments.untrusted.entry import EntryError, one_line
from gpusched_experiments.untrusted.seen_board import CONFIGURATION, SentBoard, parts_of, wanted_bytes, written

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.model import Instance
    from gpusched_env.simulator import View
    from gpusched_env.workload import Scenario
    from gpusched_experiments.untrusted.process import Process

ANOTHER_SEED = 987_654_321


class RemotePolicy:
    """The policy of one run, in a process that has an entry.

    Args:
        process: The process.
        scenario: Scenario of the workload.
        seed: Seed of the workload, which the process is not told.
    """

    def __init__(self, process: Process, scenario: Scenario, seed: int) -> None:
        self.process, self.name, self.preemption = process, process.entry.name, process.preemption
        self._of = workload_of(scenario, seed)
        self._sent: SentBoard | None = None
        self._until = 0.0

    def memory_columns(self, instance: Instance) -> int:  # noqa: ARG002 - its memory is there
        """Give the columns of memory that it needs here."""
        return 1

    def decide(self, view: View, rng: Generator) -> None:
        """Let the process decide a round, and do here what it decided.

        Raises:
            EntryError: It did not, in time, or it decided what cannot be.
        """
        limits, board = self.process.limits, view.board
        first = self._sent is None
        if self._sent is None:
            self._sent = self._begin(view, rng)
        if time.monotonic() > self._until:
            raise self.process.wrong(f"a run took longer than {limits.run_s:g} s")
        counts, parts = self._sent.changes(board)
        active, nodes = int(board.count[at.ACTIVE]), len(board.nodes)
        most = wanted_bytes(active, nodes)
        head = {"kind": "round", "changes": counts}
        _, data = self.process.ask(head, parts, most=most, seconds=limits.start_s if first else limits.round_s)
        if len(data) != most:
            raise self.process.wrong("its process answered with what is no answer")
        try:
            adopt(board, *parts_of(data, active))
        except EntryError as error:
            raise self.process.wrong(str(error)) from None

    def _begin(self, view: View, rng: Generator) -> SentBoard:
        """Begin the run there; give what is known there."""
        if len(view.hosts):
            raise InputError("tenancy", "cells", "workloads without cells, for policies that nobody trusts")
        self._until = time.monotonic() + self.process.limits.run_s
        facts, of_facts = written(view.board.facts)
        board, of_board = written(view.board)
        configurations = [[asdict(each)[name] for name in CONFIGURATION] for each in view.configurations]
        state: Any = rng.bit_generator.state
        head = {"kind": "begin", "facts": facts, "board": board, "configurations": configurations, "random": state}
        self.process.ask(head | self._of, [*of_facts, *of_board], seconds=self.process.limits.start_s)
        return SentBoard(view.board)


def policy_seed(seed: int) -> int:
    """Give the seed of an entry's randomness on the workload with this seed, from 0 to 2^63 - 1.

    The entry gets a generator's state, from which the generator's seed can be worked out; but a hash tells no seed that
    is too large to be found by trying, and so not the workload.
    """
    return int.from_bytes(hashlib.sha256(f"gpusched entry {seed}".encode()).digest()[:8]) >> 1


def workload_of(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Say what a workload is like, by another one: scenario and another seed."""
    another = ANOTHER_SEED if seed != ANOTHER_SEED else ANOTHER_SEED + 1
    return {"scenario": scenario.model_dump(mode="json"), "another_seed": another}


def misfit(process: Process, scenario: Scenario) -> str | None:
    """Say why an entry cannot decide on the workloads of a scenario; None if it can.

    Raises:
        EntryError: The process ended, or gave no answer.
    """
    if make_instance(scenario, ANOTHER_SEED).hosts:
        return "its workloads have cells"
    answer, _ = process.ask({"kind": "fit", **workload_of(scenario, 0)}, seconds=process.limits.start_s)
    return one_line(answer["misfit"]) if "misfit" in answer else None
