"""The estimated epochs left of job A of the three: S is 1 on [0, 2) and ½ on [2, 4)."""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.planning.cheapest import by_pressure, epochs_left
from gpusched_env import ActiveJobs
from gpusched_env.simulator import layout as at
from instances import HOUR, random_instance, three_jobs

A, B, C = range(3)


@pytest.mark.parametrize(("done", "expected"), [(0.0, 3.0), (1.0, 2.0), (2.0, 2.0), (3.0, 1.0), (4.0, 0.0)])
def test_the_conditional_mean_is_given_the_epochs_done(done, expected):
    """After one epoch 1 + ½ · 2 = 2 are expected; after two, which half of the jobs survive, again 2."""
    view = begin_run(three_jobs()).view
    view.board.jobs[A, at.EPOCHS] = done
    assert epochs_left(view, np.array([A]), "conditional-mean").tolist() == [expected]
    assert epochs_left(view, np.array([A]), "worst-case").tolist() == [4.0 - done]


@pytest.mark.parametrize(("done", "left"), [(0.0, 3.0), (1.0, 2.0), (2.5, 0.5), (3.0, 1.0), (3.5, 0.5)])
def test_the_published_mean_is_fixed_and_all_the_rest_once_it_is_passed(done, left):
    """A needs three epochs of four in the mean, for any epochs done; after three of them the fourth is assumed."""
    view = begin_run(three_jobs()).view
    view.board.jobs[A, at.EPOCHS] = done
    assert epochs_left(view, np.array([A]), "mean").tolist() == [left]


def test_the_jobs_come_in_the_order_asked():
    view = begin_run(three_jobs()).view
    assert epochs_left(view, np.array([C, A]), "mean").tolist() == [2.0, 3.0]


def test_the_pressure_reckons_with_the_mean():
    """A needs 3 · ⅔ h on two GPUs and is due at 3.5 h; B and C need 1⅓ h."""
    view = begin_run(three_jobs()).view
    slack = by_pressure("mean")(ActiveJobs(view, view.active))
    assert slack / HOUR == pytest.approx([3.5 - 2.0, 10.0 - 4 / 3, 1.5 - 4 / 3])


def test_the_mean_is_what_rules_see():
    view = begin_run(random_instance(4, span_s=0.0)).view
    active = ActiveJobs(view, view.active)
    assert epochs_left(view, view.active, "conditional-mean") == pytest.approx(active.expected_epochs_left, rel=1e-12)
    assert epochs_left(view, view.active, "worst-case") == pytest.approx(active.epochs_left, rel=1e-12)
