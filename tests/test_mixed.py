"""Everything of shared clusters at once: the accountants agree, and every door gives the same."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from crowded import Whatever
from gpusched_baselines import make_policy
from gpusched_env import GpuClusterVectorEnv, Synchronisation, Tenants, UtilisationModel, rollout, simulate
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import write_run
from mixed import check_shared_gpus, mixed_instance


def test_random_runs_of_mixed_kinds_audit_clean(tmp_path):
    met: Counter[str] = Counter()
    for seed in range(30):
        instance = mixed_instance(seed)
        result = simulate(instance, Whatever(seed % 2 == 0), seed=seed, review_s=50.0, on_round=check_shared_gpus)
        write_run(result, tmp_path / "run")
        assert audit(tmp_path / "run") == [], seed
        met["utilisation"] += isinstance(instance.find("shares"), UtilisationModel)
        met["helpers"] += instance.of(Synchronisation) is not None
        met["switching"] += instance.jobs.resume_s is not None
        met["quotas"] += Tenants.of(instance).tenancy == "quota"
        met["spread"] += instance.most_spread > 0
        met["shares of several GPUs"] += any(
            c.kind == "shared" and c.gpus_per_node > 1 for c in instance.configurations
        )
        met["memory that moves"] += getattr(instance.find("shares"), "memory", None) is not None
    assert min(met.values()) >= 4
    assert len(met) == 7


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["edf", "sts-x", "edf:preemptive", "antman", "fill"]))
def test_simulate_and_the_environment_agree(seed, name):
    instance, policy = mixed_instance(seed), make_policy(name)
    direct = simulate(instance, policy, on_round=check_shared_gpus)
    env = AnyInstance(instance, job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    stepped, _ = rollout(env, policy, instance=instance)
    np.testing.assert_array_equal(stepped.log, direct.log)
    assert stepped.total_eur == pytest.approx(direct.total_eur, rel=1e-9)


def test_single_and_vector_environments_agree():
    for seed in range(6):
        instance = mixed_instance(seed)
        envs = GpuClusterVectorEnv(2, instance=instance, autoreset_mode="Disabled")
        single = AnyInstance(instance)
        (_, infos), _ = envs.reset(seed=0), single.reset(seed=0)
        rng, over = np.random.default_rng(seed), False
        while not over:
            action = int(rng.choice(np.flatnonzero(infos["action_mask"][0])))
            _, rewards, ended, _, infos = envs.step([action] * 2)
            _, reward, over, _, info = single.step(action)
            assert rewards.tolist() == [reward, reward]
            assert bool(ended[1]) == over
        assert infos["total_energy_eur"][0] == info["total_energy_eur"]
        envs.close()
