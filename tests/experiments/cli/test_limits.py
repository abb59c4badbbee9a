"""`gpusched limits`: what power limits are worth, on the same jobs with the same due dates."""

import numpy as np
import pytest

from commands import succeeds
from gpusched_env.errors import InputError
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.cli.limits import _numbers, at_limit


def limited():
    return make_instance(load_scenario("tiny").replace({"jobs.power_limits": [1.0, 0.7]}), 0)


@pytest.mark.parametrize("limit", [1.0, 0.7])
def test_one_limit_for_all_leaves_its_configurations_alone(limit):
    whole = limited()
    alone = at_limit(whole, limit)
    of_limit = np.array([c.power_limit == limit for c in whole.configurations])
    assert np.isinf(alone.jobs.seconds_per_epoch[:, ~of_limit]).all()
    assert (alone.jobs.seconds_per_epoch[:, of_limit] == whole.jobs.seconds_per_epoch[:, of_limit]).all()
    assert alone.jobs.due_s.tolist() == whole.jobs.due_s.tolist()


def test_jobs_that_no_gpu_offers_the_limit_keep_what_they_have_without_one():
    whole = limited()
    none = at_limit(whole, 0.5)
    unlimited = np.array([c.power_limit == 1.0 for c in whole.configurations])
    assert np.isinf(none.jobs.seconds_per_epoch[:, ~unlimited]).all()
    assert np.isfinite(none.jobs.seconds_per_epoch[:, unlimited]).any(axis=1).all()


def test_limits_are_read_from_the_largest_on_and_one_is_always_there():
    assert _numbers("0.6, 0.85") == (1.0, 0.85, 0.6)


@pytest.mark.parametrize("text", ["", "0.7,x", "0", "1.2", "0.7,0.7"])
def test_a_wrong_limit_is_one_error(text):
    with pytest.raises(InputError, match="--limits"):
        _numbers(text)


def test_the_table_has_a_row_for_each_limit_and_says_what_is_measured():
    done = succeeds("limits", "-s", "tiny", "-p", "edf", "--limits", "1,0.7", "--seeds", "0-1")
    for text in ("none", "0.7 for all", "chosen", "Measured (Zeus", "Assumed: that A100, T4", "Modelled"):
        assert text in done.output
