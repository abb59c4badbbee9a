"""Best-arm racing by hand: the winner, and the number of samples."""

import numpy as np
import pytest

from gpusched_baselines.rollout_policy.samples import best_arm


def table(*rows: list[float]):
    """Return the cost of an alternative on a sample from a table, and the list of the calls."""
    asked: list[tuple[int, int]] = []

    def cost(way: int, draw: int) -> float:
        asked.append((way, draw))
        return rows[way][draw]

    return cost, asked


def test_a_way_that_is_cheaper_on_every_draw_wins_a_quarter_goes_on_and_one_alone_wins_unseen():
    cost, _ = table([5.0] * 6, [9.0] * 6, [4.0] * 6)
    assert best_arm(cost, 3, (1, 1, 4), 2.0) == 2
    cost, asked = table(*([float(way)] * 5 for way in range(9)))
    assert best_arm(cost, 9, (1, 1, 2), 1.0) == 0
    assert sorted(way for way, draw in asked if draw == 1) == [0, 1, 2]
    cost, asked = table([1.0])
    assert best_arm(cost, 1, (1, 1, 2), 1.0) == 0
    assert not asked


def test_a_way_that_was_cheaper_only_when_it_was_picked_does_not_win():
    cost, asked = table([5.0] * 9, [1.0, 1.0, *[5.0] * 7])
    assert best_arm(cost, 2, (1, 1, 7), 0.0) == 0
    assert max(draw for _, draw in asked) == 4  # three samples of the challenger are enough


def test_the_first_way_stays_if_the_difference_may_be_chance():
    cost, _ = table([5.0] * 6, [1.0, 0.0, 8.0, 0.0, 8.0])
    assert best_arm(cost, 2, (1, 0, 4), 2.0) == 0
    cost, _ = table([5.0] * 6, [1.0, 0.0, 8.0, 0.0, 8.0])
    assert best_arm(cost, 2, (1, 0, 4), 0.1) == 1


def test_chance_alone_seldom_wins():
    rng = np.random.default_rng(0)
    won = [best_arm(table(*rng.normal(size=(13, 14)).tolist())[0], 13, (3, 3, 8), 2.0) for _ in range(300)]
    assert np.mean(np.array(won) > 0) == pytest.approx(0.04, abs=0.03)
