"""Every feature's name stands beside what writes it, and everything that is named is written."""

from importlib import import_module

import numpy as np

from gpusched_env import load_scenario, make_instance
from gpusched_env.observation import JOBS_FEATURES, Notes, cluster, job, observe
from gpusched_env.observation.ratios import Names
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator.rounds import decide, run_to_round

OBSERVE = import_module("gpusched_env.observation.observe")  # the package has a function of that name
WRITERS = {
    "write_job": (job, "feature", "JOB_FEATURES"),
    "write_options": (OBSERVE, "_option", "OPTION_FEATURES"),
    "write_cluster": (cluster, "_cluster", "CLUSTER_FEATURES"),
    "write_queue": (OBSERVE, "_queue", "QUEUE_FEATURES"),
}
"""Of every writer of a group of features its module, what declares them there, and their names."""


def test_names_are_numbered_as_they_are_declared():
    feature = Names()
    assert [feature("one"), feature("two", "three"), feature("four")] == [0, 1, 3]
    assert tuple(feature) == ("one", "two", "three", "four")


def test_every_place_of_an_observation_is_written_at_every_decision():
    state = State(make_instance(load_scenario("tiny"), seed=0), Asking())
    board, hidden = state.board, state.hidden
    notes = Notes.of(board, job_features=2)
    configurations, types = len(board.facts.configs), len(board.capacity)
    groups = [(), (configurations,), (types,), (), (2,)]
    features = (*(getattr(module, names) for module, _, names in WRITERS.values()), JOBS_FEATURES)
    out = [np.empty((*rows, len(names)), np.float32) for rows, names in zip(groups, features, strict=True)]
    mask = np.empty(1 + configurations, np.int8)
    run_to_round(board, hidden)
    for decision in range(40):
        for array in out:
            array.fill(np.nan)
        mask.fill(-1)
        observe(board, notes, *out, mask)
        assert all(np.isfinite(array).all() for array in out)
        assert set(mask.tolist()) <= {0, 1}
        state.grow_arrays()
        decide(board, state.hidden, int(np.flatnonzero(mask)[decision % np.count_nonzero(mask)]))
