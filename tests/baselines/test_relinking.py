"""The guidance of Path Relinking, and paths between solutions of a round, on the instance of `test_hand_computed.py`.

Node 0 has two GPUs, node 1 one; r(1) = 1.0 €/h, r(2) = 1.9 €/h. An epoch takes 1 h on x1 and 40 min on x2. At most, A
needs 4 epochs by 3.5 h (0.001 €/s late), B 2 by 10 h, C 2 by 1.5 h (0.003 €/s): 4 h, 2 h, 2 h in the slowest way.
"""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.search.path_relinking import guidance, relink
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from instances import HOUR, three_jobs

A, B, C = range(3)
NONE, X1, X2 = -1, 0, 1
ORDER = np.array([C, A, B])
LEFT = np.array([2.0, 4.0, 2.0])


def placed(*pairs: tuple[int, int]) -> View:
    state = begin_run(three_jobs())
    for job, config in pairs:
        assert state.view.place(job, config)
    return state.view


@pytest.mark.parametrize(
    ("held", "hours_per_eur"),
    [
        pytest.param([(B, X1)], 2 / 2.0, id="time by energy cost: B alone on node 1, 2 h / 2.0 €"),
        pytest.param(
            [(A, X1)], 4 / 5.8, id="tardiness at the end is a cost: A alone ends at 4 h, 4 h / (4.0 + 1.80 €)"
        ),
        # B on node 1; A and C on node 0, 0.95 €/h each: A 3.80 + 1.80 €, C 1.90 + 5.40 €.
        pytest.param([(B, X1), (A, X1), (C, X1)], 2 / 2.0 + 4 / 5.6 + 2 / 7.3, id="the jobs of a node share its cost"),
        pytest.param([(C, X2)], 2 / (4 / 3 * 1.9), id="more GPUs cost more and take less: 1⅓ h at 1.9 €/h on node 0"),
    ],
)
def test_the_guidance_is_time_by_cost(held, hours_per_eur):
    assert guidance(placed(*held).board, ORDER, LEFT) / HOUR == pytest.approx(hours_per_eur)


def test_the_guidance_is_that_of_the_epochs_left():
    assert guidance(placed((B, X1)).board, ORDER, LEFT / 2) / HOUR == pytest.approx(1 / 1.0)


def test_a_job_that_costs_nothing_counts_much_but_not_without_end():
    view = placed((B, X1))
    view.board.node_rate[:] = 0.0
    total = guidance(view.board, ORDER, LEFT)
    assert total == pytest.approx(2 * HOUR / 1e-9)


def walk(view: View, *goal: int) -> tuple[float, list[tuple[int, int]]]:
    """Move towards the configurations `goal` of A, B, C; return the best value on the way, and what they hold there."""
    held, kept = np.full((3, 3), np.nan), np.zeros_like(view.nodes)
    best = relink(view.board, ORDER, LEFT, np.array(goal, dtype=float)[ORDER], held, kept)
    there = {int(job): (int(row[0]), int(row[1])) for job, row in zip(ORDER, np.nan_to_num(held, nan=-9), strict=True)}
    return best / HOUR, [there[job] for job in (A, B, C)]


def now_held(view: View) -> list[int]:
    return view.jobs[:, at.CONFIG].astype(int).tolist()


def test_a_path_ends_at_the_goal_and_its_best_solution_is_kept():
    """From B on node 1 to C alone on x2. First C comes, 2 h / 2.5333 €, then B goes: the best is both."""
    view = placed((B, X1))
    best, there = walk(view, NONE, NONE, X2)
    assert best == pytest.approx(2 / 2.0 + 2 / (4 / 3 * 1.9))
    assert there == [(-1, -1), (X1, 1), (X2, 0)]
    assert now_held(view) == [NONE, NONE, X2]


def test_the_start_is_not_part_of_the_path():
    best, _ = walk(placed((B, X1)), NONE, X1, NONE)
    assert best == -np.inf
    best, there = walk(placed((B, X1)), NONE, NONE, NONE)
    assert (best, there) == (0.0, [(-1, -1)] * 3)


def test_what_does_not_fit_is_tried_again_and_at_last_one_job_waits():
    """From C on x2 on node 0 and A on x1 on node 1 to A on x2 and B on x1.

    By gain, B (2 h / 2.0 €), A (4 / 5.0667 - 4 / 5.8), C (-2 / 2.5333): B and A do not fit. C goes: A alone is left.
    B comes, on node 0, where it fits best. A does not fit on x2, so it waits, and now no node has two free GPUs for it.
    The best is A on x1 on node 1 with B on x1 on node 0.
    """
    view = placed((C, X2), (A, X1))
    best, there = walk(view, X2, X1, NONE)
    assert best == pytest.approx(4 / 5.8 + 2 / 2.0)
    assert there == [(X1, 1), (X1, 0), (-1, -1)]
    assert now_held(view) == [NONE, X1, NONE]


def test_a_job_that_no_longer_fits_waits():
    """A and B on x1 on node 0, C on x1 on node 1, to A on x2, B and C as they are: A waits, and is not placed again."""
    view = placed((C, X1), (A, X1), (B, X1))
    assert view.jobs[:, at.NODE].tolist() == [0, 0, 1]
    best, _ = walk(view, X2, X1, X1)
    assert best == -np.inf
    assert now_held(view) == [NONE, X1, X1]


def test_a_job_that_leaves_its_place_returns_as_soon_as_it_fits():
    """Two nodes of two types with one GPU each, two jobs that swap: neither fits until one of them waits."""
    types = [GpuType("F", 1000.0, 0.0, 16.0), GpuType("S", 600.0, 0.0, 16.0)]
    certain = EpochDistribution.certain()
    job = Job(0.0, 100.0 * HOUR, 0.01, 10.0, certain, 10.0, {Configuration(v.name, 1): HOUR for v in types})
    state = begin_run(Instance.from_jobs(types, [Node("F", 1), Node("S", 1)], [job, job]))
    view, order, left = state.view, np.array([0, 1]), np.array([10.0, 10.0])
    assert view.place(0, 0)
    assert view.place(1, 1)
    held, kept = np.zeros((2, 3)), np.zeros_like(view.nodes)
    best = relink(view.board, order, left, np.array([1.0, 0.0]), held, kept)
    assert now_held(view) == [1, 0]
    assert held[:, 0].tolist() == [1, 0]
    assert best > 0
