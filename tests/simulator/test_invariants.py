"""Properties that hold for every policy on every instance."""

import pytest

from gpusched_baselines import RandomGreedy, make_policy
from gpusched_env import simulate
from gpusched_env.simulator import layout as at
from instances import random_instance


def test_running_jobs_keep_their_node_when_nothing_better_comes():
    instance = random_instance(3, jobs=4, nodes=4, span_s=10.0)
    result = simulate(instance, make_policy("edf"))
    assert result.switches.sum() == 0


def test_the_log_grows_as_needed():
    instance = random_instance(1, jobs=40, nodes=3)
    result = simulate(instance, RandomGreedy(constructions=50), review_s=5.0)
    assert len(result.log) > 4 * len(instance.jobs)
    assert result.log[:, at.LOG_EPOCHS].sum() == pytest.approx(instance.jobs.epochs_needed.sum())
