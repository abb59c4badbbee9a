"""Ways to pass the state to kernels: many arrays as arguments, and columns of numbers against records."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from benchmarks.figure import Figure, interleaved, ratios
from gpusched_baselines import edf
from gpusched_env import load_scenario, make_instance
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.simulator.run import Board

CALLS, PASSES = 20_000, 1_000
RECORD = np.dtype(
    [(name, np.float64) for name in ("due", "weight", "epochs", "anchor_epochs", "anchor_s", "slowdown", "tardiness")]
    + [("config", np.int64)]
)
COLUMNS = (at.DUE, at.WEIGHT, at.EPOCHS, at.ANCHOR_EPOCHS, at.ANCHOR_S, at.SLOWDOWN, at.TARDINESS, at.CONFIG)


class Tuple(NamedTuple):
    """The arrays of a board, in a form that Numba takes without conversion."""

    jobs: Any
    tau: Any
    nodes: Any
    capacity: Any
    node_rate: Any
    planning_rate: Any
    least_rate: Any
    edges: Any
    survival: Any
    tail: Any
    clock: Any
    count: Any
    active: Any
    keys: Any
    order: Any
    memory: Any


def measure(rounds: int = 200, repetitions: int = 9) -> list[Figure]:
    """Time calls from Python that do nothing, and the progress of all jobs of a full cluster after some rounds."""
    state = _in_the_middle(rounds)
    board = state.board
    arrays = Tuple(*(getattr(board, name) for name in Tuple._fields))
    calls = {
        "one by one": Calls(_flat, tuple(arrays)),
        "as a NamedTuple": Calls(_of_value, (arrays,)),
        "as one named value": Calls(_of_value, (board,)),
    }
    handed = interleaved(calls, repetitions)
    figures = [Figure(f"{len(arrays)} arrays, {name}", values, "us") for name, values in handed.items()]
    compiled: Any = numba.njit(error_model="numpy")
    passes = {"columns": Passes(compiled(_progress_of_columns), board, board.jobs.copy())}
    passes["records"] = Passes(compiled(_progress_of_records), board, _records(board))
    columns, records = interleaved(passes, repetitions).values()
    submitted = board.count[at.SUBMITTED]
    first, second = passes["columns"].jobs[:submitted, COLUMNS], passes["records"].jobs[:submitted]
    for k, name in enumerate(RECORD.names or ()):
        if not np.array_equal(first[:, k], second[name], equal_nan=RECORD[name].kind == "f"):
            raise RuntimeError(f"{name}: columns and records have different numbers")
    return [
        *figures,
        Figure(f"progress of {board.count[at.ACTIVE]} jobs, columns", columns, "us"),
        Figure(f"progress of {board.count[at.ACTIVE]} jobs, records", records, "us"),
        Figure("  records / columns", ratios(records, columns), "times"),
    ]


@dataclass
class Calls:
    """A kernel that does nothing, which can be called many times."""

    kernel: Callable[..., int]
    arguments: tuple[Any, ...]

    def __call__(self) -> float:
        """Call it; return the time of a call [us]."""
        begin = time.perf_counter()
        for _ in range(CALLS):
            self.kernel(*self.arguments)
        return 1e6 * (time.perf_counter() - begin) / CALLS


@dataclass
class Passes:
    """A kernel that goes over the jobs, which can be called many times."""

    kernel: Callable[..., None]
    board: Board
    jobs: Any

    def __call__(self) -> float:
        """Go over the jobs; return the time of a pass [us]."""
        begin = time.perf_counter()
        self.kernel(self.jobs, self.board.tau, self.board.active[: self.board.count[at.ACTIVE]], PASSES)
        return 1e6 * (time.perf_counter() - begin) / PASSES


def _in_the_middle(rounds: int) -> State:
    """Run EDF on 100 nodes for a given number of rounds."""
    state, policy, rng = State(make_instance(load_scenario("large"), 1)), edf(), np.random.default_rng(0)
    while state.board.count[at.ROUND] < rounds and state.advance():
        state.begin_round(policy.preemption)
        policy.decide(state.view, rng)
        state.commit_round()
    return state


def _records(board: Board) -> Any:
    records = np.zeros(len(board.jobs), RECORD)
    submitted = board.count[at.SUBMITTED]
    for name, column in zip(RECORD.names or (), COLUMNS, strict=True):
        records[name][:submitted] = board.jobs[:submitted, column]
    return records


_flat: Any = numba.njit(lambda a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p: a.shape[0])  # noqa: ARG005, E741 - as many as there are
_of_value: Any = numba.njit(lambda value: value.jobs.shape[0])


def _progress_of_columns(jobs: Any, tau: Any, active: Any, passes: int) -> None:
    for number in range(passes):
        for job in active:
            late = max(0.0, number - jobs[job, at.DUE])
            jobs[job, at.TARDINESS] += jobs[job, at.WEIGHT] * late
            config = int(jobs[job, at.CONFIG])
            if config >= 0:
                working = max(0.0, number - jobs[job, at.ANCHOR_S])
                done = working / (tau[job, config] * jobs[job, at.SLOWDOWN])
                jobs[job, at.EPOCHS] = jobs[job, at.ANCHOR_EPOCHS] + done


def _progress_of_records(jobs: Any, tau: Any, active: Any, passes: int) -> None:
    for number in range(passes):
        for job in active:
            row = jobs[job]
            late = max(0.0, number - row.due)
            row.tardiness += row.weight * late
            if row.config >= 0:
                working = max(0.0, number - row.anchor_s)
                done = working / (tau[job, row.config] * row.slowdown)
                row.epochs = row.anchor_epochs + done
