"""Training runs of adaptation agents: a function of their settings, resumed exactly after any interrupt."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapted import NETWORK, InThisProcess, adapted_sts_x, randomised, spec_of
from gpusched_agents import make_training
from gpusched_agents.files.storage import load_agent
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training import run as module
from gpusched_agents.training.adaptation_training import AdaptationTraining
from gpusched_agents.training.algorithm_config import AdaptationConfig, EsConfig
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.evolution import Workers, relative_cost, validation_costs
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_agents.training.workloads import RANDOMISED, TrainingPlace
from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from instances import random_instance
from refusals import refused

CONFIG = TrainingConfig(
    agent=EsConfig(pairs=2, workloads=1, sigma=0.5, learning_rate=0.2, most_jobs=8, randomised=0.3),
    scenarios=("tiny", "low"),
    scenario_settings={"jobs.count": 8},
    steps=900,
    validation_seeds=(500, 501),
    evaluate_every=250,
)
LISTED = 4  # validation workloads that are not randomised


def smaller(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
    patch.setattr("gpusched_agents.training.workloads.RANDOMISED_VALIDATION", range(20_000, 20_003))
    patch.setattr("gpusched_agents.training.workloads.MOST_RANDOMISED", 12)


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    smaller(monkeypatch)


def train(folder: Path, config: TrainingConfig = CONFIG, **more: Any) -> AdaptationTraining:
    training = AdaptationTraining(config, folder, command="train", **more)
    training.run()
    return training


def points(folder: Path) -> list[dict[str, str]]:
    with (folder / "curve.csv").open(newline="", encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def outcome(folder: Path) -> dict[str, Any]:
    description, weights = load_agent(folder / "agent")
    last = Checkpoint.read(folder / "checkpoint.npz")
    progress = {name: value for name, value in last.facts["progress"].items() if name not in {"seconds", "curve"}}
    return {
        "weights": {name: array.tobytes() for name, array in weights.items()},
        "curve": points(folder),
        "curve of the agent": [point["relative"] for point in description.curve],
        "progress": progress,
        "state": {name: array.tobytes() for name, array in last.arrays.items()},
        "updates": last.facts["updates"],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        smaller(patch)
        train(folder)
    return folder


def test_a_run_changes_its_weights_and_evaluates_them_on_the_way(whole):
    result = outcome(whole)
    steps = [int(point["steps"]) for point in result["curve"]]
    assert steps[0] == 0
    assert len(steps) > 2
    assert steps == sorted(set(steps))
    assert all(later - former >= CONFIG.evaluate_every for former, later in pairwise(steps[:-1]))
    assert steps[-1] >= CONFIG.steps
    assert result["updates"] > 3
    assert len({point["relative"] for point in result["curve"]}) > 1
    assert result["progress"]["phase"] == "done"


def test_it_begins_as_sts_x_and_the_agent_that_is_kept_is_the_best_one_and_costs_what_the_curve_says(whole):
    first = points(whole)[0]
    costs = validation_costs(CONFIG, make_policy("sts-x"))[:LISTED]
    assert float(first["relative"]) == pytest.approx(1.0, abs=0.005)  # not exactly, where jobs slow each other down
    assert float(first["total_eur"]) == pytest.approx(costs.mean(), rel=1e-12)
    curve = points(whole)
    best = min(curve, key=lambda point: float(point["relative"]))
    agent = load_policy(f"agent:{whole / 'agent'}")
    assert isinstance(agent, ControlPolicy)
    costs, base = validation_costs(CONFIG, agent), validation_costs(CONFIG, make_policy("sts-x"))
    assert costs[:LISTED].mean() == pytest.approx(float(best["total_eur"]), rel=1e-12)
    assert relative_cost(CONFIG, costs, base) == pytest.approx(float(best["relative"]), rel=1e-12)


def test_randomised_workloads_count_as_much_as_in_the_training():
    """Two scenarios of two seeds, e and e³ times as costly, and three randomised ones, e⁴ times as costly."""
    config = replace(CONFIG, scenarios=("tiny", "default"), validation_seeds=(500, 501))
    base = np.array([1.0, 3.0, 5.0, 5.0, 1.0, 2.0, 3.0])
    costs = base * np.exp([1.0, 1.0, 3.0, 3.0, 4.0, 4.0, 4.0])
    assert relative_cost(config, costs[:4], base[:4]) == pytest.approx(np.exp(2.0))
    randomised = replace(config, agent=replace(CONFIG.agent, randomised=0.25))
    assert relative_cost(randomised, costs, base) == pytest.approx(np.exp(0.75 * 2.0 + 0.25 * 4.0))
    assert relative_cost(randomised, np.zeros(7), np.zeros(7)) == pytest.approx(1.0)  # a cost of 0 over 0 counts as 1


def interrupt_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, *, after: bool = False) -> None:
    """Interrupt a run at the n-th call of a function, before it or after."""
    function, left = getattr(owner, name), [call]

    def interrupted(*arguments: Any, **settings: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise KeyboardInterrupt
        given = function(*arguments, **settings)
        if left[0] == 0:
            raise KeyboardInterrupt
        return given

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize(
    ("owner", "name", "call", "after"),
    [
        (Workers, "differences", 3, True),
        (AdaptationTraining, "_report", 4, False),
        (Workers, "validate", 1, True),
        (Workers, "validate", 2, False),
        (AdaptationTraining, "_count_seconds", 4, False),
        (module, "csv_of", 2, True),
        (module, "save_agent", 1, False),
    ],
)
def test_an_interrupted_run_ends_as_if_it_had_not_been(whole, tmp_path, monkeypatch, owner, name, call, after):
    with monkeypatch.context() as patch:
        interrupt_at(patch, owner, name, call, after=after)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run")
    train(tmp_path / "run")
    assert outcome(tmp_path / "run") == outcome(whole)


def test_a_run_that_is_interrupted_over_and_over_ends_as_if_it_had_not_been(whole, tmp_path, monkeypatch):
    resumed = []
    for _ in range(30):
        with monkeypatch.context() as patch:
            interrupt_at(patch, AdaptationTraining, "_update", 2)
            training = AdaptationTraining(CONFIG, tmp_path / "run", command="train")
            resumed.append(training.resumes_at)
            try:
                training.run()
                break
            except KeyboardInterrupt:
                assert training.resumes_at == training.progress.steps
    assert resumed[0] is None
    assert resumed[1:] == sorted(set(resumed[1:]))
    assert len(resumed) > 3
    assert outcome(tmp_path / "run") == outcome(whole)


def test_a_finished_run_is_left_as_it_is_or_goes_on_to_more_steps(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    training = train(tmp_path / "run", replace(CONFIG, steps=1_500))
    before = Checkpoint.read(whole / "checkpoint.npz").facts["progress"]
    assert training.progress.steps >= 1_500 > before["steps"]
    assert training.progress.phase == "done"
    assert training.progress.curve[: len(before["curve"])] == before["curve"]
    before = outcome(whole)
    assert train(whole).progress.phase == "done"
    assert outcome(whole) == before


def test_a_checkpoint_of_other_arrays_is_refused(tmp_path):
    training = AdaptationTraining(CONFIG, tmp_path / "run", command="train")
    training._write_checkpoint()
    whole_one = Checkpoint.read(tmp_path / "run" / "checkpoint.npz")
    del whole_one.arrays["state/mean"]
    whole_one.write(tmp_path / "run" / "checkpoint.npz")
    with refused(f"{tmp_path}/run/checkpoint.npz", allowed="one of this version; remove it to begin again"):
        AdaptationTraining(CONFIG, tmp_path / "run", command="train")
    training._write_checkpoint()
    other_one = Checkpoint.read(tmp_path / "run" / "checkpoint.npz")
    other_one.arrays = {name: array[:-3] for name, array in other_one.arrays.items()}
    other_one.write(tmp_path / "run" / "checkpoint.npz")
    weights = len(training._best)
    other_size = f"a network of {weights - 3} weights, not {weights}"
    with refused(f"{tmp_path}/run/checkpoint.npz", other_size, "one of this version"):
        AdaptationTraining(CONFIG, tmp_path / "run", command="train")


def test_it_stops_when_patience_ends(tmp_path):
    """A training without steps yields no better agent."""
    lazy = replace(CONFIG.agent, learning_rate=1e-30, final_learning_rate=1e-30, pairs=1, randomised=0.0)
    config = replace(CONFIG, agent=lazy, steps=10**6, evaluate_every=1, patience=2, validation_seeds=(500,))
    training = train(tmp_path / "run", config)
    assert [point["steps"] > 0 for point in training.progress.curve] == [False, True, True]
    (outputs,) = training.warnings
    assert "is sts-x itself: nothing after step 0 was better" in outputs
    assert outputs.endswith("; try more decisions (--steps), or another --seed, in another --out")


def test_only_the_arrays_that_are_named_change(whole, tmp_path):
    agent = replace(CONFIG.agent, begin=str(whole / "agent"), only="price")
    train(tmp_path / "run", replace(CONFIG, agent=agent))
    before = load_agent(whole / "agent")[1]
    state = Checkpoint.read(tmp_path / "run" / "checkpoint.npz").get("state")
    after = AdaptationTraining(CONFIG, whole)._network.arrays(state["weights"])
    changed = {name for name, array in after.items() if not np.array_equal(array, before[name])}
    assert changed == {"price.0.weight", "price.0.bias"}


@pytest.mark.parametrize(
    ("only", "allowed"),
    [("prices", "the beginning of one of price.0.weight, "), ("price", "all arrays, where there is no")],
)
def test_arrays_that_are_not_there_or_change_nothing_are_one_error_and_leave_nothing(tmp_path, only, allowed):
    with refused("agent.only", only, allowed):
        AdaptationTraining(replace(CONFIG, agent=replace(CONFIG.agent, only=only)), tmp_path / "run")
    assert not list(tmp_path.iterdir())


WHERE = [TrainingPlace(0, 100_001), TrainingPlace(1, 100_002), TrainingPlace(RANDOMISED, 100_003)]


def differences(processes: int, pairs: int = 3, each: int = 2) -> tuple[list[list[float]], int]:
    instance = random_instance(0)
    candidates = np.stack([randomised(instance, seed) for seed in range(2 * pairs)])
    with Workers(CONFIG, EvolvedNetwork(spec_of(instance), NETWORK), processes) as workers:
        found, rounds = workers.differences(candidates, (2 * WHERE)[: pairs * each], 8)
    return found.tolist(), rounds


def test_every_pair_runs_on_workloads_of_its_own():
    expected, _ = differences(1)
    assert np.shape(expected) == (3, 2)
    assert differences(1, pairs=1)[0] == expected[:1]
    assert [each for (each,) in differences(1, pairs=2, each=1)[0]] != expected[0]
    met, instance = random_instance(0), make_instance(load_scenario("low").replace({"jobs.count": 8}), 100_002)
    one, other = (simulate(instance, adapted_sts_x(met, randomised(met, seed))).total_eur for seed in (4, 5))
    assert expected[2][0] == pytest.approx(np.log(one / other))  # of the third pair, on the second workload once more


def test_its_spec_is_what_all_its_scenarios_have(tmp_path):
    config = TrainingConfig(agent=EsConfig(), scenarios=("tiny", "sharing"))
    spec = AdaptationTraining(config, tmp_path / "run")._network.spec
    assert set(spec.kinds) == {"single-node", "shared"}
    for scenario in config.loaded_scenarios():
        made = make_instance(scenario, 0)
        assert {each.name for each in made.configurations} <= set(spec.configurations)
        spec.check(made.configurations, made.gpu_types)
    several = make_instance(load_scenario("multi-node"), 0)
    with refused("instance.configurations", "2*A100x8 (multi-node)"):
        spec.check(several.configurations, several.gpu_types)


def test_an_agent_comes_out_of_its_folder_as_it_went_in(whole):
    training = AdaptationTraining(CONFIG, whole)
    description, weights = load_agent(whole / "agent")
    np.testing.assert_array_equal(training._network.vector(weights), training._best.astype(np.float32))
    assert (description.algorithm, description.spec.network, description.network.layers) == ("es", "control-set", 0)
    agent = load_policy(f"agent:{whole / 'agent'}")
    assert (agent.name, agent.rounds) == (f"agent:{whole / 'agent'}", 16)
    with refused(f"agent:{whole}/agent: instance.configurations", "2*T0x3 (multi-node)", "single-node"):
        simulate(random_instance(3, jobs=3, nodes=6, kinds=True), agent)


def test_the_training_that_fits_the_settings_is_made(tmp_path):
    assert isinstance(make_training(CONFIG, tmp_path / "run"), AdaptationTraining)
    callback: Callable[..., None] = print
    with refused("callbacks", allowed="none, for es"):
        make_training(CONFIG, tmp_path / "other", callbacks=[callback])
    pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
    with refused("agent", allowed="an EsConfig"):
        AdaptationTraining(
            replace(CONFIG, agent=AdaptationConfig(), network=NetworkConfig("controls")), tmp_path / "other"
        )
    assert not (tmp_path / "other").exists()
