"""Archives of Stable-Baselines3 become agents that choose as their models did."""

from __future__ import annotations

import base64
import json
import os
import pickle
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from refusals import ANY, refused

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from stable_baselines3 import PPO

from gpusched_agents import evaluate
from gpusched_agents.files.storage import load_agent, weight_shapes
from gpusched_agents.network.policies import ScoringExtractor, actor_of
from gpusched_agents.policy import load_policy
from gpusched_agents.sb3_models import UnsafeLoadWarning, convert_sb3_zip
from gpusched_agents.spec import AgentSpec, NetworkConfig
from gpusched_agents.training.algorithms import CLASSES
from gpusched_env import GpuClusterEnv, simulate

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"milestones": 0, "due_date_timers": True, "consolidation": True}
HIDDEN = 8


def make_env() -> GpuClusterEnv:
    return GpuClusterEnv("tiny", **SETTINGS)


def make_model(algorithm: str, env: GpuClusterEnv, network: str = "set") -> Any:
    """Make an untrained model that prefers every other action to waiting."""
    names = [gpu_type.name for gpu_type in env.instance.gpu_types]
    extractor = {
        "kind": network,
        "type_of_configuration": [names.index(configuration.gpu_type) for configuration in env.configurations],
        "hidden": HIDDEN,
        "distribution": True,
        "masks": True,
    }
    named = {"features_extractor_class": ScoringExtractor, "features_extractor_kwargs": extractor, "net_arch": []}
    named |= {} if algorithm == "dqn" else {"share_features_extractor": False}
    kind, policy = CLASSES[algorithm]
    model = kind(policy, env, policy_kwargs=named, seed=7, device="cpu")
    waiting = actor_of(model).network.outputs()[-1].bias
    waiting.data[0] -= 5.0
    return model


def spec(network: str = "set", **changes: Any) -> AgentSpec:
    env = make_env()
    return AgentSpec.of(network, env.configurations, env.instance.gpu_types, **(SETTINGS | changes))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    make_model("ppo", make_env()).save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def converted(archive: Path, algorithm: str, folder: Path, **changes: Any) -> Any:
    with pytest.warns(UnsafeLoadWarning, match=r"model\.zip is unpickled, which runs the code"):
        return convert_sb3_zip(archive, algorithm, folder, changes.pop("spec", spec()), name="tested", **changes)


@pytest.mark.parametrize("network", ["set", "mlp"])
@pytest.mark.parametrize("algorithm", CLASSES)
def test_a_converted_agent_chooses_as_its_model_did(tmp_path: Path, algorithm: str, network: str):
    env = make_env()
    model = make_model(algorithm, env, network)
    model.save(tmp_path / "model.zip")
    written = converted(tmp_path / "model.zip", algorithm, tmp_path / "agent", spec=spec(network))
    policy = load_policy(f"agent:{tmp_path / 'agent'}")
    assert (written.algorithm, written.network.kind, written.network.hidden) == (algorithm, network, HIDDEN)
    (run,) = evaluate(model, env, [3])
    assert (run.invalid_actions, run.forced) == (0, 0)
    again = simulate(run.result.instance, policy, seed=3)
    assert again.total_eur == pytest.approx(run.result.total_eur, rel=1e-12)
    assert (again.log == run.result.log).all()


def test_a_converted_agent_names_its_origin(archive: Path, tmp_path: Path):
    described, weights = load_agent(converted(archive, "ppo", tmp_path / "agent") and tmp_path / "agent")
    facts = described.provenance["facts"]
    assert (facts["converted_from"], facts["seed"], facts["steps"]) == ("model.zip", 7, 0)
    assert len(facts["archive_sha256"]) == 64
    assert facts["packages"].keys() == {"stable-baselines3", "sb3-contrib", "torch"}
    assert {name: array.shape for name, array in weights.items()} == weight_shapes(spec(), NetworkConfig(hidden=HIDDEN))


def not_converted(*error: Any, archive: Path, algorithm: str = "ppo", of: AgentSpec | None = None) -> None:
    folder = archive.parent / "agent"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsafeLoadWarning)
        with refused(*error):
            convert_sb3_zip(archive, algorithm, folder, of or spec(), name="tested")
    assert not folder.exists()


def test_what_is_no_archive_of_a_model_is_refused_before_anything_is_unpickled(tmp_path: Path, archive: Path):
    not_converted("archive", ANY, "No such file", archive=tmp_path / "nothing.zip")
    not_converted("archive", str(tmp_path), "a directory", archive=tmp_path)
    (tmp_path / "cut.zip").write_bytes(archive.read_bytes()[:9000])
    not_converted("archive", str(tmp_path / "cut.zip"), "whole .zip file", archive=tmp_path / "cut.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("data", "{}")
    not_converted("archive", str(tmp_path / "other.zip"), "policy.pth", archive=tmp_path / "other.zip")
    not_converted("algorithm", "sac", "ppo", archive=archive, algorithm="sac")


def test_an_archive_of_another_algorithm_or_with_damaged_parts_is_refused(tmp_path: Path, archive: Path):
    not_converted("archive", str(archive), "dqn", archive=archive, algorithm="dqn")
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(tmp_path / "damaged.zip", "w") as damaged:
        for name in whole.namelist():
            damaged.writestr(name, whole.read(name)[:40] if name == "policy.pth" else whole.read(name))
    not_converted("archive", str(tmp_path / "damaged.zip"), "ppo", archive=tmp_path / "damaged.zip")


def test_a_spec_that_the_model_was_not_trained_for_is_refused(archive: Path):
    env = make_env()
    fewer = AgentSpec.of("set", env.configurations[:-1], env.instance.gpu_types)
    not_converted("spec.network", "mlp", "set, which the archive holds", archive=archive, of=spec("mlp"))
    not_converted("spec", ANY, "that of the model's training", archive=archive, of=fewer)


def test_a_model_with_a_policy_that_is_none_of_ours_is_refused(tmp_path: Path):
    PPO("MultiInputPolicy", make_env(), n_steps=8, batch_size=8, device="cpu").save(tmp_path / "model.zip")
    not_converted("model.policy", "MultiInputActorCriticPolicy", archive=tmp_path / "model.zip")


class _RunsCode:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["CONVERT_TEST_FOLDER"],)


def test_an_archive_that_runs_code_shows_why_there_is_a_warning(tmp_path: Path, archive: Path, monkeypatch):
    """The warning is true: an archive runs code; an agent's folder does not."""
    monkeypatch.setenv("CONVERT_TEST_FOLDER", str(tmp_path / "made by the archive"))
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(tmp_path / "evil.zip", "w") as evil:
        data = json.loads(whole.read("data"))
        data["policy_class"][":serialized:"] = base64.b64encode(pickle.dumps(_RunsCode())).decode()
        evil.writestr("data", json.dumps(data))
        for name in set(whole.namelist()) - {"data"}:
            evil.writestr(name, whole.read(name))
    not_converted("archive", str(tmp_path / "evil.zip"), "ppo", archive=tmp_path / "evil.zip")
    assert (tmp_path / "made by the archive").is_dir()
