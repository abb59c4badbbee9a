"""The benchmarks run, on sizes too small to measure anything: nothing here depends on how fast the machine is."""

from __future__ import annotations

import json
import math
import os
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks import __main__ as command
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
    vector_walks,
)
from benchmarks.bursts import burst, hardest_burst, tight_share
from benchmarks.child import Contender
from benchmarks.figure import Figure, at_least, at_most, interleaved, ratios
from benchmarks.table import render
from gpusched_experiments.live.emulated import missing_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


@pytest.mark.slow
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


def test_the_hardest_burst_is_harder_than_the_ordinary_one():
    assert tight_share(hardest_burst(5, 4)) > 0.5 > tight_share(burst(5, 4))


def test_a_figure_is_held_against_its_target_by_its_median():
    assert Figure("x", (1.0, 2.0, 9.0), "ms", at_most(2.0)).met is True
    assert Figure("x", (1.0, 2.0, 9.0), "ms", at_least(3.0)).met is False
    assert Figure("x", (1.0,), "ms").met is None
    assert Figure("x", (), "ms", at_most(2.0)).met is None


@pytest.mark.slow
def test_contenders_take_turns_and_ratios_pair_their_repetitions():
    turns: list[str] = []
    counts = {"a": iter((0.0, 6.0, 8.0)), "b": iter((0.0, 2.0, 4.0))}

    def contender(name: str) -> Callable[[], float]:
        return lambda: (turns.append(name), next(counts[name]))[1]

    values = interleaved({name: contender(name) for name in counts}, 2)
    assert turns == ["a", "b"] * 3
    assert ratios(values["a"], values["b"]) == (3.0, 2.0)


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


def test_vector_environments_are_measured_each_in_a_process_of_its_own(monkeypatch):
    started: list[tuple[object, ...]] = []

    class Told:
        def __init__(self, *arguments: object) -> None:
            started.append(arguments)

        def __call__(self) -> float:
            return float(len(started))

        def close(self) -> None:
            started.append(("closed",))

    monkeypatch.setattr("benchmarks.figure.PAUSE_S", 0.0)
    monkeypatch.setattr(vector, "Contender", Told)
    monkeypatch.setattr(jobshop, "installed", lambda: True)
    figures = vector.measure(repetitions=1)
    of = [arguments[1] for arguments in started if arguments != ("closed",)]
    assert of == ["two", "one", "sync", "async", "single", "shop", "fast shop", "compiled", "begun", "else"]
    assert started.count(("closed",)) == len(of)
    assert all(figure.values for figure in figures)


def test_the_command_writes_the_figures_with_their_provenance(tmp_path, monkeypatch, capsys):
    figure = Figure("x / y", (1.0, 3.0, 2.0), "times", at_least(2.5))
    monkeypatch.setitem(command.BENCHMARKS, "steps", lambda: [figure])
    out = tmp_path / "bench.json"
    assert command.main(["steps", "--out", str(out)]) == 0
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["benchmarks"]["steps"] == [figure.as_dict()]
    assert document["benchmarks"]["steps"][0]["median"] == 2.0
    assert document["provenance"]["command"].startswith("python -m benchmarks steps")
    assert document["provenance"]["facts"]["machine"]["cores"] >= 1
    assert "targets missed: x / y" in capsys.readouterr().out


def test_an_unknown_benchmark_is_one_clear_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(["speed"])
    assert stopped.value.code == 2
    assert f"'speed'; allowed: one of {', '.join(command.BENCHMARKS)}" in capsys.readouterr().err


def test_the_solvers_are_measured_on_problems_that_need_a_plan():
    problems = solvers.tight_problems(hardest_burst(3, 4), 5)
    assert len(problems) == 5
    for problem, optimum_eur in problems:
        cheapest = problem.seconds_per_epoch[np.argmin(problem.cost_eur_per_epoch)]
        assert cheapest * problem.max_epochs > problem.time_left_s
        assert optimum_eur > 0.0


def test_a_compiled_policy_that_decides_otherwise_than_the_same_in_python_is_found(monkeypatch):
    class Dearest(compiled_policy.InPython):
        job_order = "weight"

    monkeypatch.setattr(compiled_policy, "POLICIES", (compiled_policy.ExpectedCost(), Dearest()))
    with pytest.raises(RuntimeError, match="default: the compiled policy and the same in Python"):
        compiled_policy.measure(nodes=(), scenario="default", seeds=1)


def test_actions_are_drawn_evenly_among_those_that_the_mask_allows():
    masks = np.array([[1, 0, 0, 1, 1, 1]] * 400 + [[1, 0, 0, 0, 0, 0]] * 3, dtype=np.int8)
    draws = np.r_[np.arange(400) / 400, 0.0, 0.5, np.nextafter(1.0, 0.0)]
    actions = np.full(len(draws), -1)
    vector_walks.draw_allowed(masks, draws, actions)
    assert np.bincount(actions[:400]).tolist() == [100, 0, 0, 100, 100, 100]
    assert actions[400:].tolist() == [0, 0, 0]


def told(costs: Sequence[float], limit_s: float, monkeypatch) -> training.TrainingClock:
    """Return the clock of a training whose agents have these costs, 2 s apart, beside 100 € of STS-X."""
    curve: list[dict[str, float]] = []
    clock = training.TrainingClock(
        limit_s, SimpleNamespace(progress=SimpleNamespace(curve=curve), references={"sts-x": 100.0})
    )
    monkeypatch.setattr(training, "processor_s", lambda: 5.0 + 2.0 * len(curve))
    clock.look()
    for index, cost in enumerate(costs):
        curve.append({"steps": 10 * index, "total_eur": cost})
        clock.look()
    return clock


def test_the_clock_of_a_training_begins_with_its_first_agent_and_keeps_the_cheapest(monkeypatch):
    clock = told([100.0, 98.0, 97.0, 99.0], 100.0, monkeypatch)
    assert clock.best == (4.0, pytest.approx(0.03), 20)
    assert clock.spent_s == 6.0


def test_a_training_ends_when_it_has_the_saving_or_at_the_limit(monkeypatch):
    for costs, limit_s in (([100.0, 94.9], 100.0), ([100.0, 99.0], 2.0)):
        with pytest.raises(training.TrainingEnded):
            told(costs, limit_s, monkeypatch)


def test_a_saving_that_is_not_reached_is_said_with_the_best(monkeypatch):
    answers = iter(("[30.0, 0.06, 900, 31.0]", "[20.0, 0.025, 700, 50.2]", "[20.0, 0.0, 0, 31.4]"))
    monkeypatch.setattr(training, "run_python", lambda _: f"{next(answers)}\n")
    reached, missed, ended = training.measure(("es", "es --network controls", "es"))
    assert (reached.values, reached.note) == ((30.0,), "900 steps")
    assert missed.values == (20.0,)
    assert missed.note == "not reached in 40 s (best 2.5%, after 700 steps): the time to the best"
    assert ended.note == "not reached in the whole training of 31 s (best 0.0%, after 0 steps): the time to the best"


@pytest.mark.slow
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
