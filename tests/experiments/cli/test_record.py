"""`gpusched record`: what Minari reads is what the policies did."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_experiments.cli.app import app

SEEDS = (1000, 1001)


def gpusched(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def minari():
    pytest.importorskip("h5py", reason='Minari is not installed: pip install "gpusched-env[minari]"')
    return pytest.importorskip("minari", reason='Minari is not installed: pip install "gpusched-env[minari]"')


@pytest.fixture(scope="module")
def data(minari, tmp_path_factory):  # noqa: ARG001 - it skips where Minari is missing
    folder = tmp_path_factory.mktemp("recorded") / "data"
    wanted = ("--policies", "sts-x,edf,random", "--track", "busy", "--jobs", 6, "--nodes", 2, "--seeds", "1000-1001")
    done = gpusched("record", *wanted, "--out", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def load(minari, data, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(data))
    return minari.load_dataset


@pytest.mark.parametrize("policy", ["sts-x", "edf", "random"])
def test_a_dataset_has_the_spaces_of_its_environment_and_an_episode_for_each_seed(load, policy):
    dataset = load(f"busy/{policy}-v0")
    env = dataset.recover_environment()
    assert env.spec.id == "gpusched_env/BusyFlat-v0"
    assert (dataset.observation_space, dataset.action_space) == (env.observation_space, env.action_space)
    assert [each["seed"] for each in dataset.storage.get_episode_metadata(range(2))] == list(SEEDS)
    assert dataset.total_episodes == 2
    for episode in dataset.iterate_episodes():
        assert episode.observations.shape == (len(episode.actions) + 1, *env.observation_space.shape)
        assert all(observation in env.observation_space for observation in episode.observations)
        assert episode.terminations.tolist() == [False] * (len(episode.actions) - 1) + [True]
        assert not episode.truncations.any()
        allowed = episode.infos["action_mask"][np.arange(len(episode.actions)), episode.actions]
        assert allowed.all()


@pytest.mark.parametrize("policy", ["sts-x", "edf"])
def test_a_return_is_minus_the_cost_of_the_run_that_simulate_makes_over_the_reward_scale(load, policy):
    dataset = load(f"busy/{policy}-v0")
    scale = dataset.recover_environment().unwrapped.reward_scale
    scenario = load_scenario("busy").replace({"jobs.count": 6, "cluster.nodes": 2})
    for seed, episode in zip(SEEDS, dataset.iterate_episodes(), strict=True):
        result = simulate(make_instance(scenario, seed), make_policy(policy), seed=seed)
        assert episode.rewards.sum() == pytest.approx(-result.total_eur / scale)
        assert episode.infos["total_energy_eur"][-1] == pytest.approx(result.energy_eur)


def test_the_recovered_environment_answers_the_same_actions_with_the_same_episode(load):
    dataset = load("busy/random-v0")
    env = dataset.recover_environment()
    for seed, episode in zip(SEEDS, dataset.iterate_episodes(), strict=True):
        first, _ = env.reset(seed=seed)
        steps = [env.step(action) for action in episode.actions]
        np.testing.assert_array_equal([first, *(step[0] for step in steps)], episode.observations)
        assert [step[1] for step in steps] == episode.rewards.tolist()


def test_random_takes_different_allowed_actions_and_the_same_ones_again_for_the_same_seed(load, tmp_path, monkeypatch):
    first = list(load("busy/random-v0").iterate_episodes())
    assert len(set(first[0].actions.tolist())) > 3
    again = ("--policies", "random", "--track", "busy", "--jobs", 6, "--nodes", 2, "--seeds", "1001")
    assert gpusched("record", *again, "--out", tmp_path / "again").exit_code == 0
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "again"))
    assert load("busy/random-v0")[0].actions.tolist() == first[1].actions.tolist()


def test_the_metadata_say_how_the_data_were_made(data):
    metadata = json.loads((data / "busy/edf-v0/data/metadata.json").read_text())
    made = metadata["provenance"]
    assert metadata["algorithm_name"] == made["facts"]["policy"] == "edf"
    assert made["facts"]["seeds"] == list(SEEDS)
    assert made["facts"]["scenario"]["jobs"]["count"] == 6
    assert {"gpusched-env", "gymnasium", "numpy"} <= set(made["packages"])
    assert made["command"]


def test_observations_may_be_dictionaries_and_the_workload_a_scenario(minari, tmp_path, monkeypatch):
    done = gpusched("record", "-p", "edf", "-s", "tiny", "--seeds", "3", "--dict", "--out", tmp_path / "data")
    assert done.exit_code == 0, done.output
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "data"))
    dataset = minari.load_dataset("tiny/edf-v0")
    assert dataset.observation_space == dataset.recover_environment().observation_space
    (episode,) = dataset.iterate_episodes()
    assert set(episode.observations) == {"job", "options", "cluster", "queue"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-p", "greedy"), "policy = 'greedy'; allowed: a policy that decides job by job"),
        (("-p", "edf,random,nosuch"), "policy = 'nosuch'; allowed: one of"),
        (("-p", "edf,edf"), "--policies = 'edf,edf'; allowed: names of policies separated by commas, each once"),
        (("-p", "edf", "--seeds", "x"), "--seeds = 'x'; allowed:"),
        (("-p", "edf", "--set", "nosuch=1"), "nosuch = 1; allowed:"),
        (("-p", "edf", "--track", "nosuch"), "track = 'nosuch'; allowed: one of"),
    ],
)
@pytest.mark.usefixtures("minari")
def test_what_cannot_be_recorded_is_named_and_nothing_is_written(tmp_path, options, told):
    done = gpusched("record", *options, "--out", tmp_path / "data")
    assert done.exit_code == 2
    assert told in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("minari")
def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = gpusched("record", "-p", "edf", "-s", "tiny", "--out", tmp_path)
    assert done.exit_code == 2
    assert "path = " in done.stderr
    assert "found 'mine.txt'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.usefixtures("minari")
def test_a_disk_that_is_full_is_one_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    storage = pytest.importorskip("minari.dataset._storages.hdf5_storage").HDF5Storage
    monkeypatch.setattr(storage, "update_episodes", full)
    done = gpusched("record", "-p", "edf", "-s", "tiny", "--seeds", "3", "--out", tmp_path / "data")
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_minari_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    done = gpusched("record", "-p", "edf", "-s", "tiny", "--out", tmp_path / "data")
    assert done.exit_code == 2
    assert 'pip install "gpusched-env[minari]"' in done.stderr
