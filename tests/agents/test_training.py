"""Training runs: a function of their settings, resumed exactly after any stop, and evaluated on held-out seeds."""

import json
import shutil
from dataclasses import replace
from functools import cache

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from control_runs import BASE, CASES, ENVS, PPO, curve, outcome, same
from gpusched_agents.files.arrays_file import arrays_bytes, read_arrays
from gpusched_agents.files.storage import load_agent, load_description
from gpusched_agents.policy import load_policy
from gpusched_agents.study import make_training
from gpusched_agents.training.algorithm_config import AdaptationConfig
from gpusched_agents.training.checkpoint import HEADER, Checkpoint
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.control_training import ControlTraining
from gpusched_env import load_scenario, make_instance, simulate
from refusals import ANY, refused

pytestmark = pytest.mark.usefixtures("one_thread")


class Stopped(Exception):  # noqa: N818 - no error
    """The training was stopped."""


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of a run that was never stopped, by its name in `CASES`."""

    @cache
    def run(name: str) -> Path:
        folder = tmp_path_factory.mktemp("whole") / "run"
        make_training(CASES[name], folder, command="train").run()
        return folder

    return run


def stop_after(calls: int, counts: Callable[[], bool] = lambda: True) -> Callable[[int, int, str], None]:
    """Stop the training at the n-th report since `counts`."""
    left = [calls]

    def on_progress(done: int, total: int, text: str) -> None:
        assert 0 <= done <= total
        assert text
        left[0] -= counts()
        if left[0] == 0:
            raise Stopped

    return on_progress


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(name, whole_runs, tmp_path):
    """Stopped before its first checkpoint, and then in every session one to three reports after the next one."""
    with pytest.raises(Stopped):
        make_training(CASES[name], tmp_path / "run", on_progress=stop_after(1)).run()
    stops = 0
    for more in (1, 2, 3) * 4:
        training = make_training(CASES[name], tmp_path / "run")
        evaluated = max(1, len(training.progress.curve))
        training._on_progress = stop_after(more, lambda: len(training.progress.curve) > evaluated)  # noqa: B023
        try:
            training.run()
        except Stopped:
            stops += 1
        else:
            break
    assert stops >= 1
    same(outcome(tmp_path / "run"), outcome(whole_runs(name)))


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_a_run_stopped_right_after_any_checkpoint_ends_as_if_it_had_not_been(name, whole_runs, tmp_path, monkeypatch):
    write = Checkpoint.write

    def write_and_stop(checkpoint: Checkpoint, path: Path) -> None:
        write(checkpoint, path)
        raise Stopped

    for _ in range(20):
        training = make_training(CASES[name], tmp_path / "run")
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "write", write_and_stop)
            phase = training.progress.phase
            try:
                training.run()
            except Stopped:
                continue
        break
    assert phase == "done"
    same(outcome(tmp_path / "run"), outcome(whole_runs(name)))


def test_seconds_add_up_over_sessions_and_a_finished_run_is_left_as_it_is(tmp_path, whole_runs):
    with pytest.raises(Stopped):
        ControlTraining(BASE, tmp_path / "run", on_progress=stop_after(6)).run()
    ControlTraining(BASE, tmp_path / "run").run()
    seconds = [float(point["seconds"]) for point in curve(tmp_path / "run")]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 0.0
    folder = whole_runs("ppo")
    before = outcome(folder)
    ControlTraining(CASES["ppo"], folder).run()
    same(outcome(folder), before)


def test_a_run_that_fails_while_it_writes_a_file_leaves_whole_ones(whole_runs, tmp_path, monkeypatch):
    """Session k fails at its k-th file: settings, curve, weights, description, checkpoint and so on."""
    folder = tmp_path / "run"
    for k in range(1, 7):
        left = [k]

        def write_half(_file: int, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", write_half)
            with pytest.raises(Stopped):
                ControlTraining(BASE, folder).run()
        if (folder / "agent").exists():
            load_agent(folder / "agent")
        if (folder / "checkpoint.npz").exists():
            Checkpoint.read(folder / "checkpoint.npz")
    assert (folder / "checkpoint.npz").exists()
    ControlTraining(BASE, folder).run()
    same(outcome(folder), outcome(whole_runs("ppo")))


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_a_run_is_a_function_of_its_settings(name, whole_runs, tmp_path):
    np.random.default_rng(0)
    torch.manual_seed(77)
    np.random.seed(77)  # noqa: NPY002 - the state of the process must not matter
    make_training(CASES[name], tmp_path / "again").run()
    same(outcome(tmp_path / "again"), outcome(whole_runs(name)))
    make_training(replace(CASES[name], seed=1), tmp_path / "other").run()
    assert outcome(tmp_path / "other")["weights"] != outcome(whole_runs(name))["weights"]


@pytest.mark.parametrize("name", CASES)
def test_every_run_learns_and_is_evaluated_in_time(name, whole_runs):
    config, folder = CASES[name], whole_runs(name)
    points = curve(folder)
    steps = [int(point["steps"]) for point in points]
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert config.steps <= steps[-1] < config.steps + 8 * ENVS
    assert np.diff(steps).max() < config.evaluate_every + 8 * ENVS
    assert len({float(point["total_eur"]) for point in points}) > 1


@pytest.mark.parametrize("name", CASES)
def test_the_agent_that_is_kept_is_the_best_one_and_costs_what_was_measured(name, whole_runs):
    config, folder = CASES[name], whole_runs(name)
    policy = load_policy(f"agent:{folder / 'agent'}")
    costs = [
        simulate(make_instance(scenario, seed), policy).total_eur
        for scenario in config.loaded_scenarios()
        for seed in config.validation_seeds
    ]
    best = min(curve(folder), key=lambda point: float(point["relative"]))
    assert np.mean(costs) == pytest.approx(float(best["total_eur"]), rel=1e-12)
    described = load_description(folder / "agent")
    assert [point["total_eur"] for point in described.curve] == [float(point["total_eur"]) for point in curve(folder)]
    assert (described.name, described.algorithm) == ("agent", config.agent.algorithm)
    assert described.network == config.network


def test_the_run_is_written_down(tmp_path):
    config = replace(BASE, steps=1)
    described = ControlTraining(config, tmp_path / "run", name="mine", command="gpusched train --seed 0").run()
    written = json.loads((tmp_path / "run" / "training.json").read_text(encoding="utf-8"))
    assert written["config"] == json.loads(json.dumps(config.as_dict()))
    origin = written["provenance"]
    assert origin["command"] == "gpusched train --seed 0"
    assert origin["facts"]["seed"] == 0
    assert origin["facts"]["packages"]["torch"] == torch.__version__
    assert {"stable-baselines3", "sb3-contrib"} <= set(origin["facts"]["packages"])
    assert {"numpy", "gymnasium"} <= set(origin["packages"])
    assert described.provenance == origin
    assert described == load_description(tmp_path / "run" / "agent")
    assert described.name == "mine"
    assert list((tmp_path / "run" / "logs").iterdir())


STILL = AdaptationConfig("ppo", PPO | {"learning_rate": 1e-12, "final_learning_rate": 1e-12}, workloads=6)


def test_training_stops_when_patience_ends(tmp_path):
    """Nothing changes at this learning rate: no evaluation is better than the first."""
    config = replace(BASE, agent=STILL, steps=10_000, evaluate_every=80, patience=3)
    ControlTraining(config, tmp_path / "run").run()
    assert [int(point["steps"]) for point in curve(tmp_path / "run")] == [0, 96, 192, 288]


def test_a_run_whose_patience_has_ended_is_not_resumed(tmp_path, monkeypatch):
    """It is stopped between its last evaluation and its end."""
    config = replace(BASE, agent=STILL, patience=1)
    ControlTraining(config, tmp_path / "whole").run()
    training = ControlTraining(config, tmp_path / "run")
    write = training._write_checkpoint

    def write_and_stop() -> None:
        write()
        if training.progress.worse:
            raise Stopped

    monkeypatch.setattr(training, "_write_checkpoint", write_and_stop)
    with pytest.raises(Stopped):
        training.run()
    ControlTraining(config, tmp_path / "run").run()
    for part in ("weights", "curve"):
        assert outcome(tmp_path / "run")[part] == outcome(tmp_path / "whole")[part]


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the folder of a run that was stopped after some checkpoints."""
    with pytest.raises(Stopped):
        ControlTraining(BASE, tmp_path / "run", on_progress=stop_after(6)).run()
    assert (tmp_path / "run" / "checkpoint.npz").exists()
    return tmp_path / "run"


def test_the_best_agent_so_far_can_be_had_at_any_time(stopped):
    totals = [float(point["total_eur"]) for point in curve(stopped)]
    described = load_description(stopped / "agent")
    assert described.curve[-1]["total_eur"] == min(totals)
    instances = [make_instance(load_scenario("tiny"), seed) for seed in BASE.validation_seeds]
    policy = load_policy(f"agent:{stopped / 'agent'}")
    assert np.mean([simulate(instance, policy).total_eur for instance in instances]) == pytest.approx(min(totals))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def not_begun(folder: Path, field: str, value: object = ANY, allowed: str = "", config: TrainingConfig = BASE) -> None:
    """Check that the run does not go on, raises an error with the reason, and changes nothing."""
    before = content(folder)
    with refused(field, value, allowed):
        ControlTraining(config, folder)
    assert content(folder) == before


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_checkpoint_is_refused(kept, stopped):
    path = stopped / "checkpoint.npz"
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    not_begun(stopped, str(path), allowed="a whole checkpoint; remove it to begin again")


def test_a_checkpoint_of_something_else_is_refused(stopped, whole_runs):
    path = stopped / "checkpoint.npz"
    for name in ("sac", "td3", "a2c"):
        path.write_bytes((whole_runs(name) / "checkpoint.npz").read_bytes())
        not_begun(stopped, str(path))
    former = Checkpoint.read(whole_runs("ppo") / path.name)
    del former.arrays["torch"]
    former.write(path)
    not_begun(stopped, str(path), allowed="one of this version; remove it to begin again")
    arrays = read_arrays(path.read_bytes())
    del arrays[HEADER]
    path.write_bytes(arrays_bytes(arrays))
    not_begun(stopped, f"{path}: version", None)
    path.write_bytes(arrays_bytes({**arrays, HEADER: np.frombuffer(b'{"version": 0}', dtype=np.uint8)}))
    not_begun(stopped, f"{path}: version", 0)
    path.write_bytes(b"PK\x03\x04" * 100)
    not_begun(stopped, str(path), allowed="a whole checkpoint")
    path.unlink()
    path.mkdir()
    not_begun(stopped, str(path), allowed="a whole checkpoint")


def test_without_its_checkpoint_a_run_begins_again(stopped, whole_runs):
    (stopped / "checkpoint.npz").unlink()
    ControlTraining(BASE, stopped).run()
    same(outcome(stopped), outcome(whole_runs("ppo")))


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("seed", {"seed": 1}),
        ("steps", {"steps": 255}),
        ("agent", {"agent": AdaptationConfig("a2c", workloads=6)}),
        ("agent", {"agent": AdaptationConfig("ppo", PPO | {"gamma": 0.8}, workloads=6)}),
        ("scenarios", {"scenarios": ("default",)}),
        ("network", {"network": replace(BASE.network, hidden=9)}),
        ("validation_seeds", {"validation_seeds": (500,)}),
    ],
)
def test_a_run_with_other_settings_is_refused(field, changed, stopped):
    not_begun(stopped, field, allowed=r"as in .*training\.json", config=replace(BASE, **changed))


@pytest.mark.parametrize("name", ["ppo", "sac"])
def test_a_training_goes_on_to_more_steps_and_is_then_one_of_these(name, whole_runs, tmp_path):
    """What was learnt first stays; a stop after that changes nothing."""
    config = CASES[name]
    longer = replace(config, steps=2 * config.steps)
    for folder in ("one", "two"):
        shutil.copytree(whole_runs(name), tmp_path / folder)
    make_training(longer, tmp_path / "one", command="train").run()
    with pytest.raises(Stopped):
        make_training(longer, tmp_path / "two", on_progress=stop_after(3)).run()
    make_training(longer, tmp_path / "two").run()
    first, whole = curve(whole_runs(name)), curve(tmp_path / "one")
    assert float(whole[-1]["steps"]) >= longer.steps > float(first[-1]["steps"])
    assert [point["total_eur"] for point in whole[: len(first)]] == [point["total_eur"] for point in first]
    same(outcome(tmp_path / "one"), outcome(tmp_path / "two"))
    assert json.loads((tmp_path / "two" / "training.json").read_text())["config"]["steps"] == longer.steps
    not_begun(tmp_path / "two", "steps", allowed=f"{longer.steps} or more, as in", config=config)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"config": 5}', '{"config": []}', "null", '{"config": {}}', "settings"]
)
def test_settings_that_are_none_are_refused(text, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    text = json.dumps({"config": BASE.as_dict()}) if text == "settings" else text  # without provenance
    (folder / "training.json").write_text(text, encoding="utf-8")
    not_begun(folder, str(folder / "training.json"))


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    not_begun(tmp_path, "folder", allowed="a new folder, or one of a training run")
    with refused("path"):
        ControlTraining(BASE, tmp_path / "thesis.txt")
    assert content(tmp_path) == {str(tmp_path / "thesis.txt"): b"mine"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"scenarios": ("nowhere",)}, "scenario"), ({"scenarios": ("tiny", "default", "low", "high", "mixed")}, "envs")],
)
def test_bad_input_leaves_nothing_behind(changed, field, tmp_path):
    with refused(field):
        ControlTraining(replace(BASE, **changed), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_will_do_and_one_of_a_run_that_was_killed_before_it_wrote_its_settings(tmp_path):
    (tmp_path / ".training.json.0123456789ab.tmp").write_text('{"conf', encoding="utf-8")
    ControlTraining(replace(BASE, steps=1), tmp_path).run()
    assert len(curve(tmp_path)) == 2


def test_evaluations_and_what_the_algorithm_logs_share_one_axis_of_decisions(whole_runs):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(whole_runs("ppo") / "logs"))
    events.Reload()
    steps = {name: [event.step for event in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert steps["evaluation/total_eur"] == [int(point["steps"]) for point in curve(whole_runs("ppo"))]
    logged = [name for name in steps if name.startswith(("train/", "time/", "rollout/"))]
    assert {"train/loss", "time/fps"} <= set(logged)
    for name in logged:
        assert steps[name] == sorted(set(steps[name]))
        assert steps[name][-1] <= steps["evaluation/total_eur"][-1]
    assert len(steps["train/loss"]) == BASE.steps // (8 * ENVS) - 1, "every update but the last is logged, on its own"
