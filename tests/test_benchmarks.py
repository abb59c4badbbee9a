"""What benchmarks make of what they measured: figures, ratios, targets; nothing is measured here."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import either_tree, house, jobshop, solvers, training, vector, vector_walks
from benchmarks.before_after import paired
from benchmarks.bursts import burst, hardest_burst, tight_share
from benchmarks.figure import Figure, at_least, at_most, interleaved, ratios
from benchmarks.table import render


def test_hard_bursts_and_problems_of_solvers_need_a_plan():
    assert tight_share(hardest_burst(5, 4)) > 0.5 > tight_share(burst(5, 4))
    problems = solvers.tight_problems(hardest_burst(3, 4), 5)
    assert len(problems) == 5
    for problem, optimum_eur in problems:
        cheapest = problem.seconds_per_epoch[np.argmin(problem.cost_eur_per_epoch)]
        assert cheapest * problem.max_epochs > problem.time_left_s
        assert optimum_eur > 0.0


def test_a_figure_is_held_against_its_target_by_its_median_and_shown_beside_earlier_ones():
    assert Figure("x", (1.0, 2.0, 9.0), "ms", at_most(2.0)).met is True
    assert Figure("x", (1.0, 2.0, 9.0), "ms", at_least(3.0)).met is False
    assert Figure("x", (1.0,), "ms").met is None
    assert Figure("x", (), "ms", at_most(2.0)).met is None
    assert "before" not in render("Title", [Figure("x", (1.0,), "s")])
    assert "before" in render("Title", [Figure("x", (1.0,), "s", before="2")])


def test_contenders_take_turns_and_ratios_pair_their_repetitions():
    turns: list[str] = []
    counts = {"a": iter((0.0, 6.0, 8.0)), "b": iter((0.0, 2.0, 4.0))}

    def contender(name: str) -> Callable[[], float]:
        return lambda: (turns.append(name), next(counts[name]))[1]

    values = interleaved({name: contender(name) for name in counts}, 2)
    assert turns == ["a", "b"] * 3
    assert ratios(values["a"], values["b"]) == (3.0, 2.0)
    turns: list[str] = []
    seconds = {"before": iter((2.0, 6.0, 3.0)), "now": iter((1.0, 2.0, 3.0))}

    def measured(name: str) -> float:
        turns.append(name[0])
        return next(seconds[name])

    assert paired(lambda: measured("before"), lambda: measured("now"), 3) == (2.0, 3.0, 1.0)
    assert "".join(turns) == "bnnbbn"


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
    assert of == ["native", "sync", "async", "single", "shop", "fast shop", "core shop", "compiled", "begun", "else"]
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


def test_the_clock_of_a_training_begins_with_its_first_agent_and_ends_at_the_saving_or_the_limit(monkeypatch):
    clock = told([100.0, 98.0, 97.0, 99.0], 100.0, monkeypatch)
    assert clock.best == (4.0, pytest.approx(0.03), 20)
    assert clock.spent_s == 6.0
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


def test_only_public_names_are_measured():
    imported = [
        line for line in Path(either_tree.__file__).read_text().splitlines() if line.startswith("from gpusched")
    ]
    assert imported
    assert all(line.split()[1] in {"gpusched_env", "gpusched_baselines"} for line in imported)


def test_the_sizes_of_sources_are_counted(tmp_path):
    files = dict.fromkeys((f"gpusched_env/{name}.py" for name in house.HOT), "def f(price):\n    return price\n\n")
    files |= {
        "baselines/gpusched_baselines/a.py": "from gpusched_baselines import b\n",
        "baselines/gpusched_baselines/b.py": "from gpusched_baselines.a import A\n",
        "baselines/setup.py": "\n",
        "tests/deep/test_it.py": "\n\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    figures = {figure.name: figure for figure in house.sizes(tmp_path)}
    assert {name: figure.values for name, figure in figures.items()} == {
        "lines of source": (17.0,),
        "lines of tests": (2.0,),
        "circles of imports": (1.0,),
        "lines of the hot path that name an option": (10.0,),
    }
    assert figures["circles of imports"].met is False


def test_the_gates_are_a_table_with_the_figures_before_and_commands_of_slow_rows(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(house, "_first_step", list)
    monkeypatch.setattr(house, "_contracts", lambda: Figure("contracts", (0.0,), "", at_most(0)))
    monkeypatch.setattr(
        house, "_cold", lambda: [Figure("kernels that it compiles", (124.0,), "", at_most(125), "", "280")]
    )
    monkeypatch.setitem(command.BENCHMARKS, "house", house.measure)
    assert command.main(["house", "--out", str(tmp_path / "quick.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["contracts", "0", "<=", "0", "yes"] for line in lines)
    assert next(line.split()[:4] for line in lines if line.startswith("lines of source")) == [
        "lines",
        "of",
        "source",
        "87,191",
    ]
    assert "* env.step / CartPole-v1: python -m benchmarks steps" in lines
    assert any(line.endswith("python -m benchmarks house --slow") for line in lines)
    assert command.main(["house", "--slow", "--out", str(tmp_path / "slow.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.split() == ["kernels", "that", "it", "compiles", "280", "124", "<=", "125", "yes"] for line in lines
    )
