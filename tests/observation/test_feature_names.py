"""Every feature's name stands beside what writes it, and everything that is named is written."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env import load_scenario, make_instance
from gpusched_env.observation import JOBS_FEATURES, Notes, cluster, job, observe
from gpusched_env.observation.ratios import Names
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator.rounds import decide, run_to_round

if TYPE_CHECKING:
    pass

OBSERVE = import_module("gpusched_env.observation.observe")  # the package has a function of that name
WRITERS = {
    "write_job": (job, "feature", "JOB_FEATURES"),
    "write_options": (OBSERVE, "_option", "OPTION_FEATURES"),
    "write_cluster": (cluster, "_cluster", "CLUSTER_FEATURES"),
    "write_queue": (OBSERVE, "_queue", "QUEUE_FEATURES"),
}
"""Of every writer of a group of features its module, what declares them there, and their names."""


def declared(writer: str) -> list[str]:
    """List the constants that a module gets from `feature(...)` for this writer, in order."""
    module, feature, _ = WRITERS[writer]
    statements = [s for s in ast.parse(inspect.getsource(module)).body if isinstance(s, ast.Assign)]
    calls = [s for s in statements if isinstance(s.value, ast.Call) and ast.unparse(s.value.func) == feature]
    return [target.id for s in calls for target in s.targets if isinstance(target, ast.Name)]


def written(source: str, writer: str) -> list[str]:
    """List the features that a function assigns to `out`: the constant of each, alone or as the first of several.

    What clears whole rows is not among them; a numeral is given as it stands.
    """
    function = next(f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef) and f.name == writer)
    statements = [s for s in ast.walk(function) if isinstance(s, ast.Assign | ast.AugAssign)]
    targets = [t for s in statements for t in (s.targets if isinstance(s, ast.Assign) else [s.target])]
    places = [t.slice for t in targets if isinstance(t, ast.Subscript) and ast.unparse(t.value) == "out"]
    features = [place.elts[-1] if isinstance(place, ast.Tuple) else place for place in places]
    firsts = [f.left if isinstance(f, ast.BinOp) else f for f in features if not isinstance(f, ast.Slice)]
    return [ast.unparse(first) for first in firsts]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_assigns_every_feature_of_its_group_once_and_no_other(writer: str):
    assert sorted(written(inspect.getsource(WRITERS[writer][0]), writer)) == sorted(declared(writer))


def test_a_feature_that_is_forgotten_written_twice_or_by_its_number_is_found():
    source = inspect.getsource(OBSERVE)
    line = "out[LATE_SHARE] ="
    assert line in source
    for wrong in ("out[WEIGHT] =", "out[3] =", "late_share ="):
        assert sorted(written(source.replace(line, wrong), "write_queue")) != sorted(declared("write_queue"))


def test_names_are_numbered_as_they_are_declared():
    feature = Names()
    assert [feature("one"), feature("two", "three"), feature("four")] == [0, 1, 3]
    assert tuple(feature) == ("one", "two", "three", "four")


@pytest.mark.parametrize("writer", WRITERS)
def test_every_name_of_a_group_is_another_and_has_a_constant(writer: str):
    module, _, group = WRITERS[writer]
    names = getattr(module, group)
    assert len(set(names)) == len(names)
    firsts = [getattr(module, constant) for constant in declared(writer)]
    assert firsts == sorted(set(firsts))
    assert firsts[0] == 0


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
