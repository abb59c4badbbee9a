"""Start-up from layers: two layers by hand, the best groups against all groupings, and what is fitted."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from gpusched_env.workload.start_up.architectures import Layer, layers_of
from gpusched_env.workload.start_up.pipeline import (
    METHODS,
    Method,
    Pass,
    StartUpCosts,
    allocations,
    best_groups,
    pipelined_s,
    start_up_s,
)
from refusals import refused

MS = 1e-3
TWO = (Layer("a", (1_000_000,), 1.0), Layer("b", (1_000_000, 2_000_000), 3.0))
"""4 MB, then 12 MB; a pass of 8 ms has 2 ms for the first and 6 ms for the second."""
ROUND = StartUpCosts(1.0, 0.5, 1 * MS, 10 * MS, 100 * MS, 0.25, 1000 * MS, 5000 * MS)
"""1 GB/s, so that 1 MB takes 1 ms; a message takes 1 ms."""

BY_HAND: dict[Method, float] = {
    "per-layer pipeline": 25.0,  # there after 5 and 18 ms; a computes from 6 to 8 ms, b from 19 to 25
    "grouped, no pipeline": 26.0,  # a message, 16 ms, a message, 8 ms
    "per layer, no pipeline": 27.0,
    "pipelined": 25.0,
    "no memory management": 35.0,  # one block of 20 MiB for all three tensors
    "no IPC optimisation": 325.0,  # three tensors
    "no pinned memory": 41.0,  # there after 9 and 34 ms
    "unified memory": 72.0,  # 64 ms and 8 ms
    "one process": 1026.0,
    "two processes": 5026.0,
}


@pytest.mark.parametrize("method", METHODS)
def test_two_layers_by_hand(method: Method):
    assert start_up_s(method, TWO, 8 * MS, ROUND) / MS == pytest.approx(BY_HAND[method])


def test_the_seconds_of_a_pass_are_divided_by_operations():
    task = Pass.forward(TWO, 8 * MS)
    assert task.compute_s == pytest.approx((2 * MS, 6 * MS))
    assert task.sizes == (4e6, 12e6)


def test_an_iteration_sends_the_rest_of_the_state_to_the_backward_pass():
    """48 MB of state: 16 of weights, and twice as much again; backward is in reverse and takes twice as long."""
    task = Pass.iteration(TWO, 48e6, 24 * MS)
    assert task.sizes == pytest.approx((4e6, 12e6, 24e6, 8e6))
    assert task.compute_s == pytest.approx((2 * MS, 6 * MS, 12 * MS, 4 * MS))
    assert task.total_s == pytest.approx(24 * MS)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_groups_are_the_best_of_all_groupings(seed: int):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    sizes, seconds = rng.exponential(5e6, count), rng.exponential(1 * MS, count)
    task = Pass(tuple(sizes.tolist()), tuple(seconds.tolist()))
    machine = StartUpCosts(12.0, message_s=float(rng.exponential(0.5 * MS)))
    groupings = [(*ends, count) for k in range(count) for ends in combinations(range(1, count), k)]
    least = min(pipelined_s(task, ends, machine) for ends in groupings)
    assert pipelined_s(task, best_groups(task, machine), machine) == pytest.approx(least)


def test_groups_are_one_where_messages_are_dear_and_layers_where_they_are_free():
    task = Pass.forward(layers_of("bert"), 39 * MS)
    assert len(best_groups(task, StartUpCosts(message_s=1.0))) == 1
    free = StartUpCosts(message_s=0.0)
    assert pipelined_s(task, best_groups(task, free), free) == pytest.approx(pipelined_s(task, range(1, 102), free))


@pytest.mark.parametrize(
    ("tensors", "blocks"),
    [((10,), 1), ((10, 10), 1), ((2**18, 2**18, 1), 2), ((2**18 + 1,) * 20, 2), ((5 * 2**19,), 1), ((2**23, 2**23), 2)],
)
def test_allocations_share_blocks_as_in_pytorch(tensors: tuple[int, ...], blocks: int):
    """Tensors of 40 B, of 1 MiB, just above it, of 10 MiB and of 32 MiB."""
    assert allocations((Layer("a", tensors, 1.0),)) == blocks


def test_wrong_values_are_named():
    with refused("machine.bandwidth_gb_per_s", 0.0):
        StartUpCosts(0.0)
    with refused("machine.message_s", -1.0):
        StartUpCosts(message_s=-1.0)
    with refused("method", "magic"):
        start_up_s("magic", TWO, 1.0)  # type: ignore[arg-type]
    with refused("layers", []):
        start_up_s("pipelined", (), 1.0)
