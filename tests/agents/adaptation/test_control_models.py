"""Models of Stable-Baselines3 as policies: the network from an archive acts as the model does."""

import zipfile

import gymnasium
import numpy as np
import pytest

import gpusched_env  # noqa: F401 - registers the ids
from gpusched_agents import AdaptationConfig, EsConfig, NetworkConfig, TrainingConfig, load_policy, make_training
from gpusched_agents.any_policy import is_agent, make_any_policy
from gpusched_agents.network.actors import JobSetActor, LstmActor, MlpActor
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_baselines.adaptation_env.observation import ROW
from gpusched_env import GpuClusterEnv, load_scenario, make_instance, rollout, simulate
from gpusched_env.observation import JOBS_FEATURES
from refusals import refused

sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")
torch = pytest.importorskip("torch")

from gpusched_agents.network.control_models import job_set_policy  # noqa: E402 - needs what is skipped without
from gpusched_agents.sb3_models import UnsafeLoadWarning, load_sb3  # noqa: E402 - needs what is skipped without

pytestmark = pytest.mark.filterwarnings("ignore:no environment parameters beside")
SMALL = {"jobs.count": 12}
ADAPTS = {"ppo": sb3.PPO, "a2c": sb3.A2C, "sac": sb3.SAC, "td3": sb3.TD3, "tqc": contrib.TQC}
BY_JOB = {"ppo": sb3.PPO, "dqn": sb3.DQN, "maskable": contrib.MaskablePPO}


def randomised(model: object) -> object:
    """Draw the weights of a model, so that its actions are not 0."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.policy.parameters():
        parameter.data.normal_(0.0, 0.4, generator=generator)
    return model


def load(model, path):
    model.save(path / "model.zip")
    with pytest.warns(UnsafeLoadWarning, match="runs the code"):
        return make_any_policy(f"sb3:{path / 'model.zip'}")


def total(env: gymnasium.Env, model: object, seed: int, masked: bool = False) -> float:
    """Return the cost of an episode in which the model acts through its own `predict`."""
    observation, info = env.reset(seed=seed)
    state, first, over = None, np.ones(1, dtype=bool), False
    while not over:
        masks = {"action_masks": info["action_mask"].astype(bool)} if masked else {}
        action, state = model.predict(observation, state, first, deterministic=True, **masks)
        first, (observation, _, over, truncated, info) = np.zeros(1, dtype=bool), env.step(action)
        over |= truncated
    return info["total_energy_eur"] + info["total_tardiness_eur"]


@pytest.mark.parametrize("name", ADAPTS)
def test_a_model_that_adapts_costs_as_policy_what_it_costs_in_the_environment(name, tmp_path):
    env = GpuAdaptationEnv("default", settings=SMALL)
    model = randomised(ADAPTS[name]("MlpPolicy", env, device="cpu", policy_kwargs={"net_arch": [16, 16]}))
    policy = load(model, tmp_path)
    assert isinstance(policy.actor, MlpActor)
    result = simulate(make_instance(load_scenario("default").replace(SMALL), 3), policy, record=False)
    assert result.total_eur == pytest.approx(total(env, model, 3), rel=1e-6)
    assert result.total_eur != simulate(make_instance(load_scenario("default").replace(SMALL), 3), StsX()).total_eur


@pytest.mark.parametrize("name", ["ppo", "sac", "td3"])
def test_a_model_with_attention_over_jobs_costs_as_policy_what_it_costs_in_the_environment(name, tmp_path):
    env = GpuAdaptationEnv("default", settings=SMALL, job_features=5)
    keywords = {"net_arch": [16], **job_set_policy(5, 8)}
    model = randomised(ADAPTS[name]("MlpPolicy", env, device="cpu", policy_kwargs=keywords))
    policy = load(model, tmp_path)
    assert isinstance(policy.actor, JobSetActor)
    assert (policy.actor.inputs, policy.actor.rows) == (env.observation_space.shape[0], 5)
    instance = make_instance(load_scenario("default").replace(SMALL), 3)
    assert simulate(instance, policy, record=False).total_eur == pytest.approx(total(env, model, 3), rel=1e-6)


def test_the_order_of_jobs_and_missing_jobs_do_not_matter_to_attention():
    rng = np.random.default_rng(0)
    code = rng.normal(size=(4, ROW)).astype(np.float32), rng.normal(size=4).astype(np.float32)
    head = MlpActor(((rng.normal(size=(2, 3 + 4)).astype(np.float32), np.zeros(2, np.float32)),))
    actor = JobSetActor(code, rng.normal(size=4).astype(np.float32), 3, head)
    assert (actor.inputs, actor.outputs) == (3 + 3 * ROW, 2)
    whole, rows = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (3, ROW))
    rows[:, -1] = 1.0

    def said(some: np.ndarray) -> np.ndarray:
        return actor.act(np.concatenate([whole, some.ravel()]).astype(np.float32))

    np.testing.assert_allclose(said(rows), said(rows[[2, 0, 1]]), rtol=1e-5)
    without = np.stack([rows[0], rows[1], np.zeros(ROW)])
    other = np.stack([rows[0], rows[1], np.append(rng.uniform(-1, 1, ROW - 1), 0.0)])
    np.testing.assert_array_equal(said(without), said(other))
    none = actor.head.act(np.append(whole, np.zeros(4)).astype(np.float32))
    np.testing.assert_array_equal(said(np.zeros((3, ROW))), none)
    both = np.stack([np.append(whole, rows.ravel()), np.append(whole, without.ravel())]).astype(np.float32)
    fitted = actor.fitted([both[:1], both[1:]], [np.array([0.5, 0.0]), np.array([-0.5, 0.0])])
    assert fitted.act(both[0])[0] - fitted.act(both[1])[0] > 0.5  # the average of the rows tells them apart
    with refused("code"):
        JobSetActor(code, np.zeros(3, np.float32), 3, head)


@pytest.mark.parametrize("algorithm", ["ppo", "es"])
def test_an_agent_trained_with_attention_over_jobs_is_a_policy(algorithm, tmp_path):
    network = NetworkConfig("controls", hidden=8, job_features=3, job_codes=4)
    own = (
        EsConfig(pairs=1, most_jobs=6)
        if algorithm == "es"
        else AdaptationConfig("ppo", {"n_steps": 8, "batch_size": 8})
    )
    config = TrainingConfig(
        agent=own, network=network, scenarios=("tiny",), scenario_settings={"jobs.count": 6}, steps=16, envs=2,
        validation_seeds=(500,), evaluate_every=8,
    )  # fmt: skip
    description = make_training(config, tmp_path / "run").run()
    assert description.curve[0]["relative"] == 1.0  # STS-X
    policy = load_policy(f"agent:{tmp_path / 'run' / 'agent'}")
    assert isinstance(policy.actor, JobSetActor)
    assert simulate(make_instance(load_scenario("tiny"), 0), policy).total_eur > 0.0
    with refused("network.job_codes", 4, "without network.job_features"):
        NetworkConfig("controls", job_codes=4)


def test_a_recurrent_model_carries_its_state_on(tmp_path):
    env = GpuAdaptationEnv("default", settings=SMALL, rounds=4)
    keywords = {"lstm_hidden_size": 8, "net_arch": [8]}
    model = randomised(contrib.RecurrentPPO("MlpLstmPolicy", env, device="cpu", policy_kwargs=keywords))
    model.save(tmp_path / "model.zip")
    with pytest.warns(UnsafeLoadWarning):
        policy = load_sb3(str(tmp_path / "model.zip"), rounds=4)
    assert isinstance(policy.actor, LstmActor)
    result = simulate(make_instance(load_scenario("default").replace(SMALL), 3), policy, record=False)
    assert result.total_eur == pytest.approx(total(env, model, 3), rel=1e-6)
    seen, state = np.ones(policy.actor.inputs, np.float32), np.zeros(policy.actor.state_size)
    first, second = policy.actor.act(seen, state), policy.actor.act(seen, state)
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(policy.actor.act(seen), first)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", BY_JOB)
def test_a_model_that_chooses_for_jobs_costs_what_it_costs_in_the_environment(name, flat, tmp_path):
    env = GpuClusterEnv("tiny", flat=flat)
    kind = "MlpPolicy" if flat else "MultiInputPolicy"
    extra = {"buffer_size": 100} if name == "dqn" else {}
    model = randomised(BY_JOB[name](kind, env, device="cpu", policy_kwargs={"net_arch": [16]}, **extra))
    policy = load(model, tmp_path)
    result = simulate(make_instance(load_scenario("tiny"), 3), policy, record=False)
    assert result.total_eur == pytest.approx(total(env, model, 3, name == "maskable"), rel=1e-6)
    assert rollout(env, policy, seed=3)[0].total_eur == result.total_eur


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", BY_JOB)
def test_a_model_that_sees_rows_of_other_jobs_costs_what_it_costs_in_the_environment(name, flat, attention, tmp_path):
    env = GpuClusterEnv("tiny", flat=flat, job_features=3)
    kind, extra = "MlpPolicy" if flat else "MultiInputPolicy", {"buffer_size": 100} if name == "dqn" else {}
    rows = job_set_policy(3, 8, *([len(JOBS_FEATURES)] if flat else [])) if attention else {}
    model = randomised(BY_JOB[name](kind, env, device="cpu", policy_kwargs={"net_arch": [16], **rows}, **extra))
    policy = load(model, tmp_path)
    assert isinstance(policy.actor, JobSetActor) is attention
    instance = make_instance(load_scenario("tiny"), 3)
    result = simulate(instance, policy, record=False)
    assert result.total_eur == pytest.approx(total(env, model, 3, name == "maskable"), rel=1e-6)
    assert rollout(GpuClusterEnv("tiny"), policy, seed=3)[0].total_eur == result.total_eur


@pytest.mark.parametrize("flat", [True, False])
def test_attention_over_other_jobs_does_not_depend_on_their_order(flat):
    size, env = len(JOBS_FEATURES), GpuClusterEnv("tiny", flat=flat, job_features=3)
    kind, keywords = "MlpPolicy" if flat else "MultiInputPolicy", job_set_policy(3, 8, *([size] if flat else []))
    policy = randomised(sb3.PPO(kind, env, device="cpu", policy_kwargs=keywords)).policy
    observation, info = env.reset(seed=1)
    while not (rows := (observation if flat else observation["jobs"])[-3 * size :])[-1]:  # until there are three
        observation, *_, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    before = policy.predict_values(policy.obs_to_tensor(observation)[0]).item()
    rows[:] = rows.reshape(3, size)[[2, 0, 1]].ravel()
    assert policy.predict_values(policy.obs_to_tensor(observation)[0]).item() == pytest.approx(before, rel=1e-4)
    rows[0] += 0.5
    assert policy.predict_values(policy.obs_to_tensor(observation)[0]).item() != pytest.approx(before, rel=1e-4)


def test_attention_over_rows_that_the_environment_does_not_show_is_refused():
    for shown in (0, 2):
        with refused("rows", 3, f"{shown}: the environment's job_features"):
            sb3.PPO("MultiInputPolicy", GpuClusterEnv("tiny", job_features=shown), policy_kwargs=job_set_policy(3))
    with refused("row_size", 0):
        job_set_policy(3, 8, 0)


def test_a_model_of_other_gpu_types_is_refused(tmp_path):
    model = sb3.PPO("MlpPolicy", GpuAdaptationEnv("default", settings=SMALL), device="cpu")
    policy = load(model, tmp_path)
    with refused(f"sb3:{tmp_path}/model.zip: instance.gpu_types", "2 of them"):
        simulate(make_instance(load_scenario("published-high"), 0), policy)
    other = sb3.PPO("MlpPolicy", GpuClusterEnv("tiny", flat=True), device="cpu")
    by_job = load(other, tmp_path)
    with refused(f"sb3:{tmp_path}/model.zip: instance.configurations", "16 of 2 GPU types"):
        simulate(make_instance(load_scenario("published-high"), 0), by_job)


def test_what_is_no_such_model_or_archive_is_refused(tmp_path):
    assert is_agent("sb3:model.zip")
    with refused("archive"):
        make_any_policy(f"sb3:{tmp_path / 'none.zip'}")
    (tmp_path / "text.zip").write_text("no archive")
    with refused("archive"):
        make_any_policy(f"sb3:{tmp_path / 'text.zip'}")
    other = sb3.PPO("MlpPolicy", gymnasium.make("Pendulum-v1"), device="cpu")
    other.save(tmp_path / "pendulum.zip")
    with pytest.warns(UnsafeLoadWarning), refused("model.action_space", allowed="adaptation"):
        make_any_policy(f"sb3:{tmp_path / 'pendulum'}")
    sb3.PPO("MlpPolicy", GpuAdaptationEnv("default", settings=SMALL), device="cpu").save(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as good, zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, b"[]" if name == "data" else good.read(name))
    with refused("archive"):
        load_sb3(str(tmp_path / "bad.zip"))
