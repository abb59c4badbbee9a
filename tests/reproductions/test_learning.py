"""From trainings to tables and curves, with trainings that only pretend."""

import csv
import io
import json

import numpy as np
import pytest

from agent_folders import HIDDEN, description, weights
from gpusched_agents.files.storage import save_agent
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import AgentSpec
from gpusched_agents.study import write_finished
from gpusched_agents.training.config import TrainingConfig
from gpusched_baselines import make_policy
from gpusched_env.rendering import MissingExtraError
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report import figures as drawing
from gpusched_reproductions.learning import StudyPlan, TrainingRun, evaluated_often, study, trainings
from gpusched_reproductions.learning.figures import mean_curve
from gpusched_reproductions.learning.tables import Trained
from refusals import refused

TINY = make_instance(load_scenario("tiny"), 0)
BASE = TrainingConfig(scenarios=("tiny",), envs=4, validation_seeds=(500, 501))
PLAN = StudyPlan(BASE, 1_000, ("full", "no-set-network"), (0, 1), (0, 1, 2))
FILES = {
    "table.md", "table.csv", "scenarios.csv", "curves.csv", "curves.svg", "savings.svg", "seeds.svg", "summary.json",
    "runs",
}  # fmt: skip
NEVER_WAITS = {"set": "wait_out.bias", "mlp": "out.bias"}


class Watching:
    def __init__(self):
        self.trained, self.informed, self.evaluated = [], [], []

    def training(self, done, total, finished, runs):
        self.informed.append((done, total, finished, runs))

    def evaluating(self, done, total):
        self.evaluated.append((done, total))


def pretend(watching, stop_at=None):
    """Make a function that trains nothing: it saves an agent of drawn weights that never waits."""

    def train(config, folder, name, _, on_progress):
        if name == stop_at:
            raise KeyboardInterrupt
        watching.trained.append(name)
        on_progress(500, 1_000, "half way")
        kind = config.network.kind
        spec = AgentSpec.of(kind, TINY.configurations, TINY.gpu_types, milestones=0)
        drawn = weights(config.seed, of=spec)
        bias = drawn[NEVER_WAITS[kind]].copy()
        bias[0] = -1e6
        network = {"kind": kind, "hidden": HIDDEN, "distribution": config.network.distribution}
        curve = [
            {"steps": 0, "seconds": 0.5, "phase": "imitation", "total_eur": 900.0, "tardiness_eur": 800.0},
            {"steps": 800, "seconds": 9.0, "phase": "learning", "total_eur": 8.0 + config.seed, "tardiness_eur": 0.0},
        ]
        described = description(name=name, spec=spec, config={"network": network}, curve=curve)
        save_agent(folder / "agent", described, drawn | {NEVER_WAITS[kind]: bias})
        write_finished(config, folder, 800, 9.5)

    return train


def run(out, monkeypatch, plan=PLAN, stop_at=None, draws=None):
    watching = Watching()
    monkeypatch.setattr(trainings, "train", pretend(watching, stop_at))
    try:
        study(plan, out, on_training=watching.training, on_evaluating=watching.evaluating, drawing=draws)
    except KeyboardInterrupt:
        assert stop_at is not None
    return watching


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


def total_eur(policy, seeds=PLAN.test_seeds):
    runs = [simulate(make_instance(load_scenario("tiny"), seed), policy, seed=seed) for seed in seeds]
    return float(np.mean([each.total_eur for each in runs]))


def test_a_study_ends_in_a_table_curves_and_a_record(tmp_path, monkeypatch):
    watching = run(tmp_path, monkeypatch, draws=drawing)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert watching.trained == ["full-0", "no-set-network-0", "full-1", "no-set-network-1"]
    assert watching.informed[0] == (500, 4_000, 0, 4)
    assert watching.informed[-1] == (4_000, 4_000, 4, 4)
    assert watching.evaluated[-1] == (3 * (3 + 4) + 2 * 3,) * 2
    rows = {row["variant"]: row for row in read(tmp_path / "table.csv")}
    assert list(rows) == ["edf", "sts", "sts-x", "set + imitation", "no set network"]
    assert float(rows["sts-x"]["total_eur"]) == pytest.approx(total_eur(make_policy("sts-x")))
    costs = [total_eur(load_policy(f"agent:{tmp_path}/runs/full-{seed}/agent")) for seed in (0, 1)]
    full = rows["set + imitation"]
    assert float(full["total_eur"]) == pytest.approx(np.mean(costs))
    assert (float(full["total_eur_low"]), float(full["total_eur_high"])) == pytest.approx((min(costs), max(costs)))
    saved = [1.0 - cost / total_eur(make_policy("sts")) for cost in costs]
    assert float(full["saving"]) == pytest.approx(np.mean(saved))
    assert (full["trainings"], full["decisions"], float(full["minutes"])) == ("2", "800.0", pytest.approx(9.5 / 60))
    assert [full[f"kept_at{end}"] for end in ("", "_low", "_high")] == ["800.0"] * 3
    validation = [
        float(full[f"{name}_eur{end}"]) for name in ("imitated", "at_the_end") for end in ("", "_low", "_high")
    ]
    assert validation == [900.0, 900.0, 900.0, 8.5, 8.0, 9.0]
    assert float(rows["sts-x"]["kept_eur"]) == pytest.approx(total_eur(make_policy("sts-x"), (500, 501)))
    assert (rows["sts-x"]["imitated_eur"], rows["sts-x"]["at_the_end_eur"]) == ("", "")
    assert (rows["sts"]["saving"], rows["sts"]["trainings"], rows["sts"]["kept_at"]) == ("", "", "")
    page = (tmp_path / "table.md").read_text()
    assert "trained 2 times, with other seeds, for up to 1,000 decisions on tiny" in page
    assert page.count("\n| no set network |") == 1
    assert page.count("| tiny | no set network |") == 1


def test_the_record_says_how_it_was_made_and_holds_no_path(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch)
    text = (tmp_path / "summary.json").read_text()
    assert str(tmp_path) not in text
    found = json.loads(text)
    facts = found["provenance"]["facts"]
    assert (facts["training_seeds"], facts["test_seeds"]) == ([0, 1], [0, 1, 2])
    assert facts["variants"]["no-set-network"]["network.kind"] == "mlp"
    assert set(facts["training_packages"]) == {"torch", "stable-baselines3", "sb3-contrib"}
    assert found["validation_eur"]["sts"] == pytest.approx(total_eur(make_policy("sts"), (500, 501)))
    assert [(each["variant"], each["kept_at"], each["decisions"]) for each in found["trainings"]][:2] == [
        ("full", 800, 800), ("no-set-network", 800, 800),
    ]  # fmt: skip
    assert {row["policy"] for row in found["held_out"]} == {
        "edf", "sts", "sts-x", "full-0", "full-1", "no-set-network-0", "no-set-network-1",
    }  # fmt: skip


def test_every_evaluation_of_every_training_is_a_line_of_the_curves(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch)
    rows = read(tmp_path / "curves.csv")
    assert len(rows) == 4 * 2
    assert list(rows[3].values()) == ["no-set-network", "0", "800", "9.0", "learning", "8.0", "0.0"]


def test_nothing_is_trained_or_run_twice(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch)
    before = (tmp_path / "table.csv").read_bytes()
    again = run(tmp_path, monkeypatch)
    assert (again.trained, again.evaluated) == ([], [(27, 27)])
    assert (tmp_path / "table.csv").read_bytes() == before
    more = run(tmp_path, monkeypatch, StudyPlan(BASE, 1_000, ("full", "imitation-only"), (0, 1), (0, 1, 2)))
    assert more.trained == ["imitation-only-0", "imitation-only-1"]
    assert more.evaluated[0] == (21, 27)


def test_a_study_that_was_stopped_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    stopped = run(tmp_path / "parts", monkeypatch, stop_at="full-1")
    assert stopped.trained == ["full-0", "no-set-network-0"]
    assert not (tmp_path / "parts/table.md").exists()
    again = run(tmp_path / "parts", monkeypatch)
    assert again.informed[0] == (1_000, 4_000, 1, 4)
    assert again.trained == ["full-1", "no-set-network-1"]
    run(tmp_path / "whole", monkeypatch)
    parts, whole = ([row["total_eur"] for row in read(tmp_path / each / "table.csv")] for each in ("parts", "whole"))
    assert parts == whole
    assert (tmp_path / "parts/curves.csv").read_bytes() == (tmp_path / "whole/curves.csv").read_bytes()


def test_trainings_of_other_settings_are_refused_before_anything_is_trained(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch)
    with refused("steps", 1000, "another --out"):
        run(tmp_path, monkeypatch, StudyPlan(BASE, 2_000, ("no-imitation", "full"), (0,), (0,)))
    assert not (tmp_path / "runs/no-imitation-0").exists()


def test_what_trains_is_missed_before_anything_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "find_spec", lambda package: None if package == "torch" else package)
    with pytest.raises(MissingExtraError, match=r"gpusched-env\[agents\]"):
        run(tmp_path, monkeypatch)
    assert not list(tmp_path.iterdir())


def test_what_adapts_is_trained_without_what_the_others_need(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "find_spec", lambda _package: None)
    begun = []
    monkeypatch.setattr(trainings, "train", lambda _config, _folder, name, *_: begun.append(name))
    plan = StudyPlan(BASE, 1_000, ("controls-es", "control-set"), (0,), (0,))
    trainings.train_all(plan.trainings(), tmp_path, 1, lambda *_: None)
    assert begun == ["controls-es-0", "control-set-0"]


def trained(seed, *points):
    curve = tuple({"steps": steps, "total_eur": cost} for steps, cost in points)
    return Trained(TrainingRun("full", seed, BASE), curve, points[-1][0], 1.0, "")


def test_the_mean_curve_holds_what_was_evaluated_last_and_after_the_end_what_was_kept():
    curve = mean_curve([trained(0, (0, 10.0), (100, 4.0), (200, 6.0)), trained(1, (0, 20.0), (150, 8.0), (300, 2.0))])
    assert [(steps, each.value, each.interval) for steps, each in curve] == [
        (0, 15.0, (10.0, 20.0)),
        (100, 12.0, (4.0, 20.0)),
        (150, 6.0, (4.0, 8.0)),
        (200, 7.0, (6.0, 8.0)),
        (300, 3.0, (2.0, 4.0)),
    ]
    assert mean_curve([trained(0, (0, 10.0))])[0][1].interval is None


def test_the_figure_shows_all_of_it_and_what_lies_near_the_reference_policies(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(drawing, "chart_files", lambda chart, _name: drawn.append(chart) or {})
    run(tmp_path, monkeypatch, draws=drawing)
    ((whole, close),) = drawn[0].rows
    assert [s.name for s in whole.series] == ["set + imitation", "no set network"]
    assert [(x, estimate.value) for x, estimate in whole.series[0].points] == [(0.0, 900.0), (0.8, 8.5)]
    assert (whole.logarithmic, whole.y_range, close.logarithmic) == ("y", None, "")
    levels = {level.name: level.value for level in close.levels}
    assert levels == {name: pytest.approx(total_eur(make_policy(name), (500, 501))) for name in ("edf", "sts", "sts-x")}
    assert close.y_range[0] < 8.5 < max(levels.values()) < close.y_range[1] < 900.0
    assert whole.x_label == "thousand decisions (of those that do both, the first 0.5 imitate)"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"steps": 0}, ("steps", 0)),
        ({"variants": ("full", "magic")}, ("variants", "magic")),
        ({"variants": ()}, ("variants", [])),
        ({"training_seeds": (1, 1)}, ("training_seeds", [1, 1])),
        ({"test_seeds": (-1,)}, ("seed", -1)),
        ({"test_seeds": (3, 1000)}, ("test_seeds", 1000, "seeds below 1,000")),
        ({"test_seeds": (3, 501)}, ("test_seeds", 501, "seeds that are not validation_seeds")),
        ({"base": TrainingConfig(scenarios=("nowhere",))}, ("scenario", "nowhere")),
        ({"base": TrainingConfig(scenarios=("tiny", "published-high"))}, ("scenarios", ("tiny", "published-high"))),
        ({"base": TrainingConfig(scenarios=("high", "low"), envs=1)}, ("envs", 1, "at least 2")),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changes, error):
    with refused(*error):
        StudyPlan(**({"base": BASE, "variants": ("full", "no-set-network")} | changes))


def test_different_clusters_are_fine_without_a_perceptron():
    assert StudyPlan(TrainingConfig(scenarios=("tiny", "high")), variants=("full",)).trainings()


def test_evaluations_come_as_often_as_they_should_however_long_it_is():
    assert [evaluated_often(BASE, steps, 20).evaluate_every for steps in (5, 1_000_000)] == [1, 50_000]
