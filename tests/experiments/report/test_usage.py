"""How well a cluster was used: by hand for two jobs on a shared GPU, and as properties of any run."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import AntMan, make_policy
from gpusched_env import simulate
from gpusched_experiments.report.usage import JobTimes, Usage
from guaranteed_and_opportunistic import guaranteed_and_opportunistic
from instances import by_utilisation, random_instance, three_jobs


def test_the_usage_of_two_jobs_on_a_gpu_by_hand():
    """The guaranteed job ends at 1,030 s, the other at 1,482.8125 s: 500 + 800 s of work, 10 and 5 of 20 GiB."""
    result = simulate(guaranteed_and_opportunistic(), AntMan())
    usage = Usage.of(result)
    assert usage.makespan_s == pytest.approx(1482.8125)
    assert usage.computing == pytest.approx(1300.0 / 1482.8125)
    assert usage.memory == pytest.approx((10.0 * 1030.0 + 5.0 * 1482.8125) / (20.0 * 1482.8125))
    assert usage.held == pytest.approx(1.0)
    times = JobTimes.by_label(result)
    assert times["guaranteed"] == JobTimes(1, pytest.approx(1030.0), 0.0, pytest.approx(1.03), pytest.approx(1.03))
    assert times["opportunistic"].stretch == pytest.approx(1.4828125)


def test_without_utilisations_a_busy_gpu_is_a_busy_gpu():
    result = simulate(three_jobs(), make_policy("edf"))
    usage = Usage.of(result)
    assert usage.computing == pytest.approx(usage.held)
    assert set(JobTimes.by_label(result)) == {"guaranteed"}


@pytest.mark.parametrize("name", ["edf", "antman", "fill"])
def test_no_more_is_used_than_is_held_and_no_more_held_than_there_is(name):
    for seed in range(4):
        instance = by_utilisation(random_instance(seed, jobs=20, kinds=True))
        instance = replace(instance, jobs=replace(instance.jobs, opportunistic=np.arange(20) % 2 == 0))
        result = simulate(instance, make_policy(name))
        usage, times = Usage.of(result), JobTimes.by_label(result)
        assert 0.0 < usage.computing <= usage.held + 1e-9 <= 1.0 + 2e-9
        assert times["guaranteed"].jobs + times["opportunistic"].jobs == 20
        assert times["guaranteed"].stretch >= 1.0 - 1e-9
