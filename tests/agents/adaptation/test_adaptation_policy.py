"""Adaptation agents as policies: with weights of 0 they are STS-X; with any weights their decisions are feasible."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from adapted import adapted_sts_x, randomised
from any_instance import AnyInstance
from crowded import crowded
from gpusched_agents.spec import AgentSpec
from gpusched_baselines import StsX
from gpusched_env import GpuClusterVectorEnv, Instance, JobPolicy, simulate
from gpusched_env.audit import audit
from gpusched_env.envs.rollout import rollout
from gpusched_env.formats import write_run
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import AS_A_POLICY
from instances import random_instance, with_switching
from mixed import mixed_instance
from policies import JobByJob
from refusals import refused
from vector_twins import few_jobs


def with_quotas() -> Instance:
    instances = map(mixed_instance, range(200))
    return next(
        made for made in instances if made.find("tenants") and made.find("shares") is None and not made.most_spread
    )


ALIKE = {
    "whole GPUs": lambda: random_instance(1, jobs=15),
    "restarts": lambda: random_instance(2, jobs=25, nodes=4, span_s=2000.0, restart_s=30.0),
    "distances": lambda: with_switching(random_instance(7, jobs=20, nodes=5, span_s=500.0), 7),
    "all kinds": lambda: random_instance(3, jobs=25, nodes=6, kinds=True),
    "crowded": lambda: crowded(4, interference=False),
    "quotas": with_quotas,
    "free energy": lambda: replace(random_instance(5, jobs=15), energy_price_eur_per_kwh=0.0),
}


@pytest.mark.parametrize("name", ALIKE)
def test_with_weights_of_0_it_does_what_sts_x_does(name):
    instance = ALIKE[name]()
    expected, made = simulate(instance, StsX()), simulate(instance, adapted_sts_x(instance))
    assert made.log.tobytes() == expected.log.tobytes()
    assert (made.total_eur, made.rounds) == (expected.total_eur, expected.rounds)
    assert made.policy == "adapted"


@pytest.mark.parametrize("name", ["all kinds", "quotas"])
def test_with_other_weights_it_does_not(name):
    instance = ALIKE[name]()
    expected, made = simulate(instance, StsX()), simulate(instance, adapted_sts_x(instance, randomised(instance, 1)))
    assert made.log.tobytes() != expected.log.tobytes()


def test_where_it_fades_kinds_of_configurations_that_its_training_did_not_have_leave_it_as_sts_x():
    instance = ALIKE["all kinds"]()
    agent, expected = adapted_sts_x(instance, randomised(instance, 1)), simulate(instance, StsX())
    met = [each for each in instance.configurations if each.kind == "single-node"]
    spec = AgentSpec.of("controls", met, instance.gpu_types, max_configurations=len(instance.configurations))
    faded = simulate(instance, replace(agent, spec=spec, fades=True))
    assert faded.log.tobytes() == expected.log.tobytes()
    with refused("adapted: instance.configurations", allowed="single-node configurations"):
        simulate(instance, replace(agent, spec=spec))
    known = AgentSpec.of("controls", instance.configurations, instance.gpu_types)
    made = simulate(instance, replace(agent, spec=known, fades=True))
    assert made.log.tobytes() == simulate(instance, agent).log.tobytes() != expected.log.tobytes()


@pytest.mark.parametrize("scale", [0.0, 1.0], ids=["weights of 0", "drawn weights"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_through_the_environment_it_decides_as_in_rounds(scale, rounds):
    instance = ALIKE["all kinds"]()
    agent = adapted_sts_x(instance, randomised(instance, 1, scale), rounds)
    assert isinstance(agent, JobPolicy)
    expected = simulate(instance, agent)
    asking = asdict(replace(AS_A_POLICY, job_order=agent.job_order, preemption=agent.preemption))
    stepped, _ = rollout(AnyInstance(instance, **asking), agent)
    assert stepped.log.tobytes() == expected.log.tobytes()
    assert stepped.total_eur == expected.total_eur
    assert simulate(instance, JobByJob(agent)).log.tobytes() == expected.log.tobytes()


def test_through_environments_side_by_side_it_pays_what_it_pays_alone():
    env = GpuClusterVectorEnv(3, few_jobs(5), milestones=0, job_order="pressure", preemption=True)
    env.reset(seed=[7, 8, 9])
    instances = env.instances
    agent, paid = adapted_sts_x(instances[0], randomised(instances[0], 2)), np.full(3, np.nan)
    while np.isnan(paid).any():
        actions = []
        for view, job in zip(env.views, env.jobs.tolist(), strict=True):
            choice = agent.choose(view, job) if job >= 0 else None
            if choice is not None:
                view.apply(job, choice)
            actions.append(0 if choice is None else choice.config + 1)
        _, _, over, _, infos = env.step(actions)
        costs = infos["total_energy_eur"] + infos["total_tardiness_eur"]
        paid = np.where(np.isnan(paid) & over, costs, paid)
    assert paid.tolist() == pytest.approx([simulate(one, agent).total_eur for one in instances], rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_whatever_its_weights_it_keeps_to_the_rules(seed, tmp_path):
    """On clusters with shares, utilisations, helpers, quotas and switching costs, each or not, weights up to 300."""
    instance = [made for made in map(mixed_instance, range(100, 130)) if not made.most_spread][seed]
    result = simulate(instance, adapted_sts_x(instance, randomised(instance, seed, (0.3, 3.0, 100.0)[seed % 3])))
    assert np.isfinite(result.completion_s).all()
    write_run(result, tmp_path / "run")
    assert audit(tmp_path / "run") == []


def decisions(instance: Instance, until_s: float) -> list[list[float]]:
    """Return what was decided before a time: job, node, configuration and start of every interval."""
    log = simulate(instance, adapted_sts_x(instance, randomised(instance, 3))).log
    rows = log[log[:, at.LOG_START] < until_s][:, [at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG, at.LOG_START]]
    return rows[np.lexsort(rows.T)].tolist()


def test_it_knows_nothing_of_the_epochs_that_jobs_will_need():
    instance = random_instance(3, jobs=25, nodes=6, kinds=True)
    table = replace(instance.jobs, epochs_needed=instance.jobs.max_epochs)
    longer = replace(instance, jobs=table)
    first_end_s = float(simulate(instance, adapted_sts_x(instance, randomised(instance, 3))).completion_s.min())
    assert len(decisions(instance, first_end_s)) > 3
    assert decisions(longer, first_end_s) == decisions(instance, first_end_s)
    assert decisions(longer, np.inf) != decisions(instance, np.inf)


def test_it_knows_nothing_of_jobs_to_come():
    instance = random_instance(3, jobs=25, nodes=6, kinds=True)
    weights = instance.jobs.tardiness_weight_eur_per_s.copy()
    weights[15:] *= 100.0
    due_s = instance.jobs.due_s.copy()
    due_s[15:] += 1e5
    other = replace(instance, jobs=replace(instance.jobs, tardiness_weight_eur_per_s=weights, due_s=due_s))
    come_s = float(instance.jobs.submission_s[15])
    assert len(decisions(instance, come_s)) > 10
    assert decisions(other, come_s) == decisions(instance, come_s)
    assert decisions(other, np.inf) != decisions(instance, np.inf)
