"""The time axis of figures over time."""

from __future__ import annotations

import pytest

from gpusched_baselines import make_policy
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import simulate
from gpusched_operations.html_report.over_time import TimeAxis
from report_pages import ONE
from small_instances import hours_job, kilowatt_cluster


def timeline(longest_h: float) -> Timeline:
    """Run 150 jobs of an hour, and one more, all at once."""
    jobs = [hours_job(1.0, {ONE: 1.0}) for _ in range(150)] + [hours_job(1.0, {ONE: longest_h})]
    result = simulate(kilowatt_cluster(jobs, [8] * 19, [ONE]), make_policy("fifo"), seed=0)
    return Timeline.of(result)


def test_a_job_that_is_not_much_longer_than_the_others_stays_on_the_axis():
    axis = TimeAxis.of([timeline(1.5)])
    assert (axis.end_s, axis.note) == (pytest.approx(1.01 * 1.5 * 3600.0), "")


def test_one_job_of_150_that_takes_a_hundred_times_as_long_does_not_set_the_axis_and_is_told():
    axis = TimeAxis.of([timeline(1.0), timeline(100.0)])
    assert axis.end_s == pytest.approx(1.01 * 1.1 * 3600.0)
    assert axis.note == (
        " The axis ends at 1 h 6 min. Up to 1 of a policy's jobs end later, the last at 4 d 4 h: zoom out to see them."
    )
