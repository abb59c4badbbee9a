"""A slower GPU type, and nodes that draw more beside their GPUs."""

import numpy as np
import pytest

from gpusched_env.workload import load_scenario, make_instance
from gpusched_reproductions.published.changes import BasePower, Slower
from refusals import refused

INSTANCE = make_instance(load_scenario("published-high").replace({"jobs.count": 12}), 0)


def test_a_slower_type_takes_longer_and_due_dates_keep_their_place():
    changed = Slower("M60", 3.0)(INSTANCE)
    of_type = np.array([c.gpu_type == "M60" for c in INSTANCE.configurations])
    before, after = INSTANCE.jobs.seconds_per_epoch, changed.jobs.seconds_per_epoch
    assert np.array_equal(after[:, ~of_type], before[:, ~of_type])
    assert after[:, of_type] == pytest.approx(3.0 * before[:, of_type])

    def place(instance):
        full = instance.jobs.seconds_per_epoch * instance.jobs.max_epochs[:, None]
        left = instance.jobs.due_s - instance.jobs.submission_s
        return (left - full.min(axis=1)) / (full.max(axis=1) - full.min(axis=1))

    assert place(changed) == pytest.approx(place(INSTANCE))
    assert Slower("M60", 1.0)(INSTANCE).jobs.due_s == pytest.approx(INSTANCE.jobs.due_s)


def test_base_power_is_added_to_every_node_that_is_on():
    changed = BasePower(0.5)(INSTANCE)
    for before, after in zip(INSTANCE.gpu_types, changed.gpu_types, strict=True):
        extra = 0.5 * before.power_w(1)
        assert [after.power_w(b) for b in range(1, 9)] == pytest.approx(
            [before.power_w(b) + extra for b in range(1, 9)]
        )
    assert BasePower(0.0)(INSTANCE) == INSTANCE


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Slower("M60", 0.0), ("factor", 0.0)),
        (lambda: BasePower(-1.0), ("share", -1.0)),
        (lambda: Slower("A100", 2.0)(INSTANCE), ("gpu_type", "A100")),
    ],
)
def test_what_cannot_be_is_one_error(make, error):
    with refused(*error):
        make()
