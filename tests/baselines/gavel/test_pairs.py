"""JobPairs of jobs on one GPU: the program by hand and beside a linear program, and rounds that place them."""

import numpy as np
import pytest
from scipy.optimize import linprog

from gavel_demands import demand
from gpusched_baselines import make_policy
from gpusched_baselines.gavel.gandiva import random_pairs
from gpusched_baselines.gavel.pairs import JobPairs, packed_las
from gpusched_env import simulate
from gpusched_reproductions.systems.gavel_workload import cluster, drawn_jobs, pair_slowdowns, throughputs


def pairs(slowdown, alone, application=None) -> JobPairs:
    alone = np.array(alone, dtype=float)
    own = np.arange(len(alone)) if application is None else np.array(application)
    return JobPairs(np.zeros(alone.shape, dtype=np.int64), alone, own, np.array(slowdown, dtype=float))


def test_two_jobs_that_slow_each_other_little_share_the_gpu_all_the_time():
    """In turn each has half; together each runs at 0.8."""
    of = demand([[1], [1]], capacity=(1,))
    alone, packed = packed_las(of, pairs([[[1.25] * 2] * 2], [[1], [1]]))
    assert alone == pytest.approx(0.0, abs=1e-6)
    assert packed[0, 1, 0] == pytest.approx(1.0, abs=1e-6)
    assert np.count_nonzero(packed) == 1


def test_two_jobs_that_slow_each_other_much_take_turns_and_those_that_do_not_fit_are_no_pair():
    for slowdown in (2.5, np.inf):
        alone, packed = packed_las(demand([[1], [1]], capacity=(1,)), pairs([[[slowdown] * 2] * 2], [[1], [1]]))
        assert alone[:, 0] == pytest.approx([0.5, 0.5], abs=1e-5)
        assert packed.max() < 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    speed, kind = rng.uniform(0.5, 4.0, (3, 2)), np.array([0, 1, 1, 2, 2, 2])
    of, own = demand(speed[kind], capacity=(1, 2)), pairs(rng.uniform(1.0, 2.5, (2, 3, 3)), speed[kind], kind)
    alone, packed = packed_las(of, own)
    one, other = np.triu_indices(6, 1)
    columns = [(j, j, v) for j in range(6) for v in range(2)]
    columns += [(i, j, v) for i, j in zip(one, other, strict=True) for v in range(2)]
    rows, level, got = np.zeros((14, len(columns) + 1)), 1.0 / of.proportional, np.zeros(6)
    for c, (i, j, v) in enumerate(columns):
        for a, b in {(i, j), (j, i)}:
            fast = of.speed[a, v] if i == j else own.speed(np.array([a]), np.array([b]))[0, v]
            rows[a, c], rows[6 + a, c] = -fast * level[a], 1.0
            got[a] += fast * level[a] * (alone[i, v] if i == j else packed[i, j, v])
        rows[12 + v, c] = 1.0
    rows[:6, -1] = 1.0
    best = -linprog(-np.eye(len(columns) + 1)[-1], A_ub=rows, b_ub=[0] * 6 + [1] * 6 + [1, 2]).fun
    assert got.min() == pytest.approx(best, rel=1e-5)
    assert np.all(alone.sum(axis=1) + packed.sum(axis=(1, 2)) + packed.sum(axis=(0, 2)) <= 1.0 + 1e-9)


def test_random_pairs_stay_while_they_gain_and_are_drawn_only_where_there_are_too_few_gpus():
    own, rng = pairs([[[1.5] * 4] * 4], [[1]] * 4), np.random.default_rng(0)
    few = demand([[1]] * 4, capacity=(4,))
    alone, packed, partner = random_pairs(few, own, np.full(4, -1), rng)
    assert alone[:, 0] == pytest.approx([1.0] * 4)
    assert packed.sum() == 0.0
    many = demand([[1]] * 4, capacity=(2,))
    alone, packed, partner = random_pairs(many, own, partner, rng)
    assert sorted(partner) == [0, 1, 2, 3]
    assert packed.sum() == pytest.approx(2.0)
    assert np.array_equal(random_pairs(many, own, partner, rng)[2], partner)
    losing = pairs([[[2.5] * 4] * 4], [[1]] * 4)
    drawn = random_pairs(many, losing, np.array([1, 0, 3, 2]), np.random.default_rng(1))[2]
    assert not np.array_equal(drawn, [1, 0, 3, 2])


def test_slow_downs_are_those_of_whole_mini_batches():
    models = list(throughputs())
    a3c = next(i for i, (name, _) in enumerate(models) if name == "A3C")
    assert pair_slowdowns().min() >= 1.0
    assert pair_slowdowns()[0, a3c].min() < 1.3


@pytest.mark.parametrize("name", ["gavel-las-packed", "gandiva"])
def test_rounds_place_pairs_on_one_gpu(name):
    instance = cluster(drawn_jobs(0, 260, None, False), "gavel", pairs=True)
    result = simulate(instance, make_policy(name))
    rows = result.intervals()
    names = {configuration.name for configuration in instance.configurations if configuration.kind == "shared"}
    assert sum(name in names for name in rows["configuration"]) > 100
    assert np.isfinite(result.completion_s).all()
