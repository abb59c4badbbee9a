"""The benchmarks run, on sizes too small to measure anything: nothing here depends on how fast the machine is."""

from __future__ import annotations

import math
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from benchmarks import (
    bounds,
    compiled_policy,
    forecasts,
    jobshop,
    learning,
    rounds,
    runs,
    scale,
    service,
    slurm,
    solvers,
    startup,
    state,
    steps,
    training,
    vector,
)
from benchmarks.child import Contender
from benchmarks.figure import Figure
from benchmarks.table import render
from gpusched_operations.live.emulated import missing_programs

if TYPE_CHECKING:
    from collections.abc import Callable
SMALL: dict[str, Callable[[], list[Figure]]] = {
    "rounds": lambda: rounds.measure(nodes=(5,), repetitions=1, constructions=3),
    "steps": lambda: steps.measure(steps=30, repetitions=1),
    "vector": lambda: vector.measure(envs=4, steps=5, few=2, few_steps=5, shops=2, repetitions=1, apart=False),
    "learning": lambda: learning.measure(envs=2, steps=4, repetitions=1, apart=False),
    "training": lambda: training.measure(
        ("es", "ppo"), limit_s=0.5, options={"evaluate_every": 10}, scenario_settings={"jobs.count": 5}
    ),
    "runs": lambda: runs.measure(sizes=(20,), policies=("edf",), repetitions=1),
    "scale": lambda: scale.measure(
        nodes=(2, 4), policies=("edf",), run_jobs=20, run_policies=("edf",), fleet=(3, 60.0), fleet_policies=("edf",)
    ),
    "solvers": lambda: solvers.measure(nodes=3, problems=2),
    "bounds": lambda: bounds.measure(nodes=1, jobs=8, repetitions=1),
    "startup": lambda: startup.measure(repetitions=1, programs={"nothing": "print('[0.25, 0.5]')"}),
    "service": lambda: service.measure(nodes=3, jobs_per_node=2, events=2, repetitions=1, policies=("edf",)),
    "slurm": lambda: slurm.measure(jobs=3, queued=20, nodes=6, policies=("edf",)),
    "forecasts": lambda: forecasts.measure(nodes=3, jobs_per_node=2, timed=2, repetitions=1, policies=("edf",)),
    "state": lambda: state.measure(rounds=20, repetitions=1),
    "compiled-policy": lambda: compiled_policy.measure(nodes=(2,), repetitions=1, scenario="tiny", seeds=1),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_benchmark_gives_positive_figures(name: str):
    if name == "slurm" and missing_programs():
        pytest.skip("Slurm is not installed")
    figures = SMALL[name]()
    assert figures
    measured = [value for figure in figures for value in figure.values]
    assert measured
    assert all(math.isfinite(value) and value >= 0.0 for value in measured)
    assert all(figure.name.strip() in render(name, figures) for figure in figures)


def test_a_contender_has_a_process_of_its_own_that_measures_whenever_it_is_called(tmp_path, monkeypatch):
    (tmp_path / "counting.py").write_text(
        "import os, sys\nfrom benchmarks.child import answer\n"
        "calls = iter((float(os.getpid()), float(sys.argv[1])))\nanswer(lambda: next(calls))\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    with closing(Contender("counting", 2.5)) as contender:
        assert contender() not in (0.0, float(os.getpid()))
        assert contender() == 2.5
        with pytest.raises(RuntimeError, match=r"counting 2\.5 ended before it had measured"):
            contender()


def test_a_contender_closes_what_it_measured_before_it_ends(tmp_path, monkeypatch):
    """So processes that it started end without a traceback of a broken pipe."""
    (tmp_path / "closing_down.py").write_text(
        "import pathlib, sys\nfrom benchmarks.child import answer\n"
        "class Measure:\n"
        "    def __call__(self):\n        return 1.0\n"
        "    def close(self):\n        pathlib.Path(sys.argv[1]).touch()\n"
        "answer(Measure())\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    with closing(Contender("closing_down", tmp_path / "closed")) as contender:
        assert contender() == 1.0
        assert not (tmp_path / "closed").exists()
    assert (tmp_path / "closed").exists()


def test_a_compiled_policy_that_decides_otherwise_than_the_same_in_python_is_found(monkeypatch):
    class Dearest(compiled_policy.InPython):
        job_order = "weight"

    monkeypatch.setattr(compiled_policy, "POLICIES", (compiled_policy.ExpectedCost(), Dearest()))
    with pytest.raises(RuntimeError, match="default: the compiled policy and the same in Python"):
        compiled_policy.measure(nodes=(), scenario="default", seeds=1)


@pytest.mark.parametrize("name", ["vector", "learning", "training"])
def test_what_is_not_installed_is_said_to_be_missing(name: str, monkeypatch):
    monkeypatch.setattr(jobshop, "installed", lambda: False)
    for module in (learning, training):
        monkeypatch.setattr(module, "find_spec", lambda _: None)
    missing = [figure for figure in SMALL[name]() if "not installed" in figure.note]
    assert missing
    assert all(not figure.values for figure in missing)


def test_resetting_only_job_shops_that_ended_gives_the_states_that_resetting_all_gives():
    jax = pytest.importorskip("jax", reason="needs the extra `bench`")
    pytest.importorskip("jumanji", reason="needs the extra `bench`")
    walks = [jobshop.Walk(20, 100, own_reset=own_reset, threads=1) for own_reset in (True, False)]
    for _ in range(2):
        for walk in walks:
            assert walk() > 0.0
    equal = jax.tree.map(lambda one, other: bool((one == other).all()), *(walk.states for walk in walks))
    assert all(jax.tree.leaves(equal))
    assert walks[0].states[0].step_count.max() < 200
