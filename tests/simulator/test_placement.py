"""Placement of all three kinds of configurations: it keeps the books, and never gives more than there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boards import board_of
from gpusched_env.mechanisms.shares.placement import slots
from gpusched_env.simulator import Board
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.placement.node_index import new_capacity
from gpusched_env.simulator.placement.placement import fits, place, release
from gpusched_env.simulator.rounds import begin_round, stays

HALF, QUARTER = at.UNITS // 2, at.UNITS // 4
ONE, TWO, FOUR, HALF_GPU, QUARTER_GPU, TWO_NODES = range(6)
CONFIGS = np.array(
    [
        [0, 1, 1, 0, at.UNITS],
        [0, 2, 1, 0, 2 * at.UNITS],
        [0, 4, 1, 0, 4 * at.UNITS],
        [0, 1, 1, HALF, HALF],
        [0, 1, 1, QUARTER, QUARTER],
        [0, 4, 2, 0, 8 * at.UNITS],
    ],
    dtype=np.int64,
)


@dataclass
class Round:
    """A round over nodes of one type, most of them with 4 GPUs, from an empty cluster."""

    board: Board

    @classmethod
    def of(cls, *gpus: int, jobs: int = 3) -> Round:
        table = np.zeros((jobs, at.JOB_COLUMNS))
        old, preferred = [at.OLD_CONFIG, at.OLD_NODE, at.OLD_SLOT], [at.PREFERRED_NODE, at.PREFERRED_SLOT]
        table[:, [at.CONFIG, at.NODE, at.SLOT, *old, *preferred]] = -1.0
        nodes = np.zeros((len(gpus), at.NODE_COLUMNS + 8), dtype=np.int64)
        for column in (at.NODE_GPUS, at.USABLE, at.FREE, at.OLD_FREE):
            nodes[:, column] = gpus
        nodes[:, [at.NEXT, at.OLD_NEXT]] = -1
        capacity, active = new_capacity(1, len(gpus), 4), np.arange(jobs)
        board = board_of(jobs=table, nodes=nodes, capacity=capacity, configs=CONFIGS, active=active)
        measure(board)
        return cls(board)

    def __getattr__(self, name: str) -> np.ndarray:
        return getattr(self.board, name)

    def place(self, job: int, config: int) -> bool:
        return place(self.board, job, config)

    def release(self, job: int) -> None:
        release(self.board, job)

    def where(self, job: int) -> tuple[int, int]:
        return int(self.jobs[job, at.NODE]), int(self.jobs[job, at.SLOT])

    def chain(self, job: int) -> list[int]:
        nodes, n = [], int(self.jobs[job, at.NODE])
        while n >= 0:
            nodes.append(n)
            n = int(self.nodes[n, at.NEXT])
        return nodes

    def free(self) -> list[int]:
        return self.nodes[:, at.FREE].tolist()

    def used(self, node: int) -> list[float]:
        return (self.nodes[node, at.NODE_COLUMNS : at.NODE_COLUMNS + 4] / at.UNITS).tolist()

    def next_round(self) -> None:
        self.board.count[at.ACTIVE] = len(self.jobs)
        begin_round(self.board, True)


def test_a_share_goes_to_the_fullest_shared_gpu_that_has_room():
    now = Round.of(4, 4, jobs=6)
    now.place(0, HALF_GPU)
    now.place(1, QUARTER_GPU)  # GPU 0: 3/4
    now.place(2, HALF_GPU)  # GPU 1: 1/2
    assert now.where(2) == (0, 1)
    assert now.place(3, QUARTER_GPU)
    assert now.where(3) == (0, 0)
    assert now.place(4, QUARTER_GPU)
    assert now.where(4) == (0, 1)
    assert now.capacity[0, at.FREE_SHARE] == QUARTER


def test_the_node_for_a_newly_shared_gpu_is_the_best_fit_for_one_gpu():
    now = Round.of(4, 4)
    now.place(0, TWO)
    now.place(1, HALF_GPU)
    assert now.where(1) == (0, 0)
    assert now.free() == [1, 4]


def test_a_job_comes_back_to_its_shared_gpu():
    now = Round.of(4, 4, jobs=4)
    for job in range(4):
        now.place(job, HALF_GPU)
    assert [now.where(job) for job in range(4)] == [(0, 0), (0, 0), (0, 1), (0, 1)]
    now.next_round()
    for job in (3, 1, 2, 0):
        now.place(job, HALF_GPU)
    assert [now.where(job) for job in range(4)] == [(0, 0), (0, 0), (0, 1), (0, 1)]
    assert all(stays(now.board, job) for job in range(4))


def test_a_job_whose_place_is_forgotten_goes_where_it_fits_best():
    now = Round.of(4, 4)
    now.place(0, TWO)
    now.place(1, FOUR)
    assert (now.where(0), now.where(1)) == ((0, -1), (1, -1))
    now.next_round()
    now.place(2, ONE)
    assert now.where(2) == (0, -1)  # where it fitted before
    now.jobs[1, [at.PREFERRED_NODE, at.PREFERRED_SLOT]] = -1.0
    assert now.place(1, TWO)
    assert now.where(1) == (0, -1)
    assert not stays(now.board, 1)


def test_another_gpu_of_the_same_node_is_a_change():
    now = Round.of(4)
    now.place(0, HALF_GPU)
    now.next_round()
    now.jobs[0, at.OLD_SLOT] = 2.0
    now.jobs[0, [at.CONFIG, at.NODE, at.SLOT]] = [HALF_GPU, 0, 1]
    assert not stays(now.board, 0)


def test_a_newcomer_does_not_take_a_shared_gpu_that_was_full():
    """GPU 0 was full before the round, GPU 1 half full; the newcomer, who is first, opens neither of them."""
    now = Round.of(4, jobs=4)
    now.place(0, HALF_GPU)
    now.place(1, HALF_GPU)
    now.place(2, HALF_GPU)
    now.next_round()
    now.place(3, HALF_GPU)
    assert now.where(3) == (0, 2)
    assert [now.place(job, HALF_GPU) for job in range(3)] == [True] * 3
    assert [now.where(job) for job in range(3)] == [(0, 0), (0, 0), (0, 1)]


def test_several_nodes_are_taken_whole():
    now = Round.of(4, 2, 4, 4)
    now.place(0, ONE)
    assert now.where(0) == (1, -1)
    assert now.place(1, TWO_NODES)
    assert (now.chain(1), now.free()) == ([0, 2], [0, 1, 0, 4])
    assert now.capacity[0, at.EMPTY] == 1
    assert not now.place(2, TWO_NODES)
    now.release(1)
    assert (now.free(), now.capacity[0, at.EMPTY], now.capacity[0, at.FREE_BLOCK]) == ([4, 1, 4, 4], 3, 4)
    assert (now.nodes[:, at.NEXT] == -1).all()


def test_a_node_in_use_is_no_whole_node():
    now = Round.of(4, 4, 2)
    now.place(0, QUARTER_GPU)
    assert now.where(0) == (2, 0)
    now.place(1, FOUR)
    assert not now.place(2, TWO_NODES)
    now.release(1)
    assert now.place(2, TWO_NODES)


def test_a_job_comes_back_to_its_nodes():
    now = Round.of(4, 4, 4)
    now.place(0, FOUR)
    now.place(1, TWO_NODES)
    assert now.chain(1) == [1, 2]
    now.next_round()
    now.release(0)
    assert now.place(1, TWO_NODES)
    assert now.chain(1) == [1, 2]
    assert stays(now.board, 1)


def test_other_nodes_are_a_change_even_if_the_first_is_the_same():
    now = Round.of(4, 4, 4)
    now.place(0, TWO_NODES)
    now.next_round()
    now.place(1, FOUR)  # a newcomer takes node 2, which was empty
    assert now.where(1) == (2, -1)
    now.release(1)
    now.nodes[1, at.FREE] = 0  # as if another job had taken node 1
    measure(now.board)
    assert now.place(0, TWO_NODES)
    assert now.chain(0) == [0, 2]
    assert not stays(now.board, 0)


steps = st.lists(st.tuples(st.integers(0, 7), st.integers(-1, 5), st.booleans()), max_size=60)


@settings(max_examples=200, deadline=None)
@given(gpus=st.lists(st.sampled_from([1, 2, 4, 4]), min_size=1, max_size=5), steps=steps)
def test_after_any_sequence_the_books_agree_with_what_is_held(gpus, steps):
    now = Round.of(*gpus, jobs=8)
    for job, config, anew in steps:
        if anew:
            now.next_round()
        if config < 0:
            now.release(job)
        else:
            could = fits(now.board, config)
            held = now.jobs[job, at.CONFIG] >= 0
            before = [array.copy() for array in (now.jobs, now.nodes, now.capacity)]
            placed = now.place(job, config)
            assert placed >= (could and not held)
            if placed:
                assert now.jobs[job, at.CONFIG] == config
            else:
                for then, array in zip(before, (now.jobs, now.nodes, now.capacity), strict=True):
                    np.testing.assert_array_equal(array, then)
        _check_books(now)


def _check_books(now: Round) -> None:
    measured = now.capacity.copy()
    measure(now.board)
    np.testing.assert_array_equal(now.capacity, measured)
    busy = np.zeros(len(now.nodes), dtype=np.int64)
    used = np.zeros((len(now.nodes), slots(now.board)), dtype=np.int64)
    for job in range(len(now.jobs)):
        config = int(now.jobs[job, at.CONFIG])
        if config < 0:
            continue
        nodes = now.chain(job)
        assert len(nodes) == CONFIGS[config, at.CONFIG_NODES]
        if CONFIGS[config, at.CONFIG_UNITS] > 0:
            used[nodes[0], int(now.jobs[job, at.SLOT])] += CONFIGS[config, at.CONFIG_UNITS]
        else:
            busy[nodes] += CONFIGS[config, at.CONFIG_GPUS]
    assert (used <= at.UNITS).all()
    np.testing.assert_array_equal(used, now.nodes[:, at.NODE_COLUMNS : at.NODE_COLUMNS + used.shape[1]])
    busy += (used > 0).sum(axis=1)
    np.testing.assert_array_equal(now.nodes[:, at.FREE], now.nodes[:, at.NODE_GPUS] - busy)
    assert (busy <= now.nodes[:, at.NODE_GPUS]).all()
