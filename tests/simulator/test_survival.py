"""The bin that a job stands in, by hand: half of the jobs end in the first of four bins, half in the last.

So S is 1 on the first quarter and ½ from there on, and the mean need is ¼ + ¾ / 2 = 0.625 of the maximum epochs.
"""

import numpy as np
import pytest

from gpusched_env import EpochDistribution, GpuClusterEnv, load_scenario
from gpusched_env.observation import JOB_FEATURES
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import (
    SAME_EPOCH,
    DistributionTable,
    bin_of,
    expected_rest,
    likely_bin,
    survival_after,
)

HALVES = (0.5, 0.0, 0.0, 0.5)
CURVE = DistributionTable.of([EpochDistribution.from_masses(HALVES)]).curve(0)


def below(edge: float, times: int = 1) -> float:
    """Return the number that is `times` roundings below an edge."""
    for _ in range(times):
        edge = float(np.nextafter(edge, 0.0))
    return edge


@pytest.mark.parametrize("find", [bin_of, likely_bin])
def test_a_fraction_that_rounding_leaves_below_an_edge_is_on_it(find):
    assert [find(CURVE.edges, edge) for edge in (0.0, 0.25, 0.5, 0.75)] == [0, 1, 2, 3]
    assert [find(CURVE.edges, below(edge)) for edge in (0.25, 0.5, 0.75)] == [1, 2, 3]
    assert [find(CURVE.edges, below(edge, 20)) for edge in (0.25, 0.5, 0.75)] == [1, 2, 3]
    assert [find(CURVE.edges, edge - 2.0 * SAME_EPOCH) for edge in (0.25, 0.5, 0.75)] == [0, 1, 2]
    assert [find(CURVE.edges, end) for end in (below(1.0), 1.0, 1.5)] == [3, 3, 3]


@pytest.mark.parametrize("bins", [1, 3, 7, 49, 100])
def test_both_ways_of_finding_a_bin_agree_at_every_edge_and_between(bins):
    edges = np.append(np.linspace(0.0, 1.0, bins + 1), [1.0, 1.0])  # as the table pads them
    places = np.concatenate([edges, edges - 5e-13, edges - 5e-12, edges + 5e-13, np.linspace(0.0, 1.0, 1009)])
    for place in np.clip(places, 0.0, 1.0).tolist():
        assert bin_of(edges, place) == likely_bin(edges, place), place
    found = [bin_of(edges, b / bins) for b in range(bins)]
    assert found == list(range(bins))


def test_who_stands_on_an_edge_has_survived_the_bin_before_it():
    """At a quarter S is ½, and ¾ · ½ of it is left: by all that is known the job needs every epoch that is left."""
    for fraction in (0.25, below(0.25), below(0.25, 20)):
        assert survival_after(CURVE, fraction) == pytest.approx(0.375, rel=1e-11)
        assert expected_rest(CURVE, fraction) == pytest.approx(0.75, rel=1e-11)
    assert expected_rest(CURVE, 0.25 - 1e-9) == pytest.approx(0.375, rel=1e-6)  # S is 1 there


def test_a_job_with_more_than_all_its_epochs_has_none_left():
    assert [survival_after(CURVE, fraction) for fraction in (1.0, 1.25)] == [0.0, 0.0]
    assert [expected_rest(CURVE, fraction) for fraction in (1.0, 1.25)] == [0.0, 0.0]


@pytest.fixture(scope="module")
def seen_at_edges() -> np.ndarray:
    """Play four episodes in which jobs keep what they have; give a row for each job seen at a milestone.

    Columns: epochs done / maximum epochs, less the bin edge there; the feature of the epochs expected left.
    """
    changes = {"epochs": {"family": "histogram", "masses": [HALVES]}, "jobs.count": 40}
    env = GpuClusterEnv(load_scenario("default").replace(changes), milestones=4)
    left = JOB_FEATURES.index("expected epochs left / epochs left in the worst case")
    rows = []
    for seed in range(9000, 9004):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            job = env.view.jobs[env.job]
            done = job[at.EPOCHS] / job[at.MAX_EPOCHS]
            edge = round(4 * done) / 4
            if 0.0 < edge < 1.0 and abs(done - edge) < SAME_EPOCH:
                rows.append((done - edge, observation["job"][left]))
            allowed, held = np.flatnonzero(info["action_mask"]), int(job[at.OLD_CONFIG]) + 1
            first = int(allowed[min(1, len(allowed) - 1)])  # 0 is to wait
            observation, _, over, _, info = env.step(held if held > 0 and held in allowed else first)
    return np.array(rows)


def test_observations_at_milestones_show_the_survival_of_the_bin_that_begins_there(seen_at_edges):
    """From a quarter on, a job needs all that is left."""
    off, expected_left = seen_at_edges.T
    assert np.sum(off == 0.0) > 20
    assert np.sum(off < 0.0) > 20
    assert np.all(expected_left == 1.0)
