"""One power limit for each application: by hand."""

import pytest

from any_instance import AnyInstance
from gpusched_baselines import ZeusLimit, make_policy
from gpusched_env import Configuration, Instance, Job, Node, rollout, simulate
from gpusched_env.simulator import layout as at
from instances import HOUR, random_instance
from limited import with_power_limits
from refusals import refused
from small_instances import CERTAIN, KILOWATT

FULL, HIGH, LOW = (Configuration("V", 1, power_limit=r) for r in (1.0, 0.8, 0.5))


def one_job() -> Instance:
    """Make a job whose GPU of 1 kW takes 1 kWh for an epoch, or 0.8 · 1.1 = 0.88 kWh, or 0.5 · 1.7 = 0.85 kWh."""
    times = {FULL: HOUR, HIGH: 1.1 * HOUR, LOW: 1.7 * HOUR}
    job = Job(0.0, 1e6, 0.0, 1.0, CERTAIN, 1.0, times)
    return Instance.from_jobs([KILOWATT], [Node("V", 1)], [job], [FULL, HIGH, LOW])


@pytest.mark.parametrize(("eta", "config"), [(1.0, 2), (0.5, 1), (0.0, 0)])
def test_energy_and_time_at_full_power_are_weighed(eta, config):
    """Costs at η = 0.5, in kWh: (1 + 1) / 2; (0.88 + 1.1) / 2 = 0.99; (0.85 + 1.7) / 2."""
    result = simulate(one_job(), ZeusLimit(eta=eta))
    assert result.log[:, at.LOG_CONFIG].tolist() == [config]


def test_the_limit_stays_though_a_due_date_is_missed_and_eta_is_a_part():
    job = Job(0.0, 1.2 * HOUR, 1.0, 1.0, CERTAIN, 1.0, {FULL: HOUR, LOW: 1.7 * HOUR})
    instance = Instance.from_jobs([KILOWATT], [Node("V", 1)], [job], [FULL, LOW])
    assert simulate(instance, make_policy("zeus-limit")).late_jobs == 1
    assert simulate(instance, make_policy("zeus-limit:balanced")).late_jobs == 0
    with refused("eta", 1.5):
        ZeusLimit(eta=1.5)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_its_rule_without_limits_and_decides_alike_through_the_environment(seed):
    plain = random_instance(seed)
    assert simulate(plain, ZeusLimit()).total_eur == simulate(plain, make_policy("edf:preemptive")).total_eur
    limited = with_power_limits(plain, seed)
    result = simulate(limited, ZeusLimit())
    seen, _ = rollout(AnyInstance(limited, job_order="due", milestones=0), ZeusLimit(), seed=0)
    assert seen.total_eur == pytest.approx(result.total_eur)
