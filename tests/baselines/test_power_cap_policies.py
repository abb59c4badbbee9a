"""Policies that choose power limits under a cap: by hand on two jobs, and rules for every run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from first_rounds import begin_run
from gpusched_baselines import make_policy
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.power_price import lower_by_price, offers_of
from gpusched_env import (
    Configuration,
    GpuClusterEnv,
    Instance,
    Rent,
    Scenario,
    load_scenario,
    make_instance,
    rollout,
    simulate,
)
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.model import peak_kw
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import layout as at
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_reproductions.systems.power_cap import gain_of_limits, quarter_off
from instances import random_instance
from run_files import audited
from small_instances import hours_job, kilowatt_cluster

HOUR = 3600.0
FULL, HALF = Configuration("V", 1), Configuration("V", 1, power_limit=0.5)
NAMES = ("cap:uniform", "cap:tiers", "cap:thresholds", "sts-x")


def two_jobs(kilowatts: float, *, limits: bool = True, second_due_h: float = 9.0) -> Instance:
    """Make two jobs of 1 h at 1 kW, or 1.25 h at 0.5 kW; the first is due at once, and the cap is `kilowatts`."""
    hours = {FULL: 1.0, HALF: 1.25} if limits else {FULL: 1.0}
    jobs = [hours_job(1.0, hours), hours_job(second_due_h, hours)]
    made = kilowatt_cluster(jobs, [2], list(hours))
    return made.with_mechanisms(Rent(3.0), PowerCap((0.0,), (kilowatts,)))


def limits_at_once(instance: Instance, name: str) -> dict[int, float]:
    """Return the power limits of the jobs that run from 0 on, by job."""
    log = simulate(instance, make_policy(name)).log
    first = log[log[:, at.LOG_START] == 0.0]
    return {int(row[at.LOG_JOB]): instance.configurations[int(row[at.LOG_CONFIG])].power_limit for row in first}


def tight(kilowatts: float) -> Instance:
    """Make two jobs that must both run now: due at 1 h and 1.3 h, so that the second one may lose a fifth."""
    return two_jobs(kilowatts, second_due_h=1.3)


def test_with_room_for_both_no_job_has_a_limit_else_all_have_one_or_one_waits():
    for name in NAMES[:2] + NAMES[3:]:
        assert limits_at_once(tight(2.0), name) == {0: 1.0, 1: 1.0}
    assert limits_at_once(tight(1.5), "cap:uniform") == {0: 0.5, 1: 0.5}
    assert limits_at_once(two_jobs(1.5, limits=False, second_due_h=1.3), "sts-x") == {0: 1.0}


def test_thresholds_begin_at_four_fifths_of_the_cap():
    """Both draw 2 kW: below 0.80 of 2.6 kW; above that of 2.4 kW, where the job with slack is limited."""
    assert limits_at_once(tight(2.6), "cap:thresholds") == {0: 1.0, 1: 1.0}
    assert limits_at_once(tight(2.4), "cap:thresholds") == {0: 1.0, 1: 0.5}


@pytest.mark.parametrize("order", [[FULL, HALF], [HALF, FULL]])
def test_offers_are_those_of_the_jobs_that_are_planned_by_what_they_save(order):
    """The second job alone is planned, at 2 € a second of its own; it has held half power, and then full power."""
    made = kilowatt_cluster([hours_job(9.0, {FULL: 1.0, HALF: 1.25})] * 2, [2], order)
    full, half = made.configurations.index(FULL), made.configurations.index(HALF)
    board, limited = begin_run(made).board, []
    board.memory[:2, sim.PLANNED], board.memory[:2, of.BARE_VALUE] = (-1, full), (1.0, 2.0)
    for held in (-1, half, full):
        board.jobs[1, at.OLD_CONFIG] = held
        offers = offers_of(board)
        assert (offers.jobs.tolist(), offers.configs.tolist()) == ([1], [[full, half]])
        assert offers.cost[0] == pytest.approx([2.0 * HOUR + 1.0, 2.0 * 1.25 * HOUR + 0.625])
        limited += offers.limited.tolist()
    assert limited == [0, 1, 0]


@pytest.mark.parametrize("name", ["cap:tiers", "sts-x"])
def test_the_job_that_can_wait_has_the_limit(name):
    """1.5 kW is enough for one at full power and one at half."""
    assert limits_at_once(tight(1.5), name) == {0: 1.0, 1: 0.5}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cap:tiers"])  # that pauses the second one
def test_a_change_of_limit_under_an_event_is_no_restart(name):
    """At 0.5 h the cap falls to 1 kW: both go on at half power, whatever a restart costs."""
    made = tight(2.5)
    jobs = replace(made.jobs, restart_s=np.full(2, 600.0))
    made = replace(made, jobs=jobs).with_mechanisms(PowerCap((0.0, 0.5 * HOUR), (2.6, 1.0)))
    result = simulate(made, make_policy(name))
    assert result.completion_s.tolist() == pytest.approx([1.125 * HOUR, 1.125 * HOUR])
    assert result.cap_forced_s == 0.0
    np.testing.assert_array_equal(result.log[:, at.LOG_READY], result.log[:, at.LOG_START])


def test_the_simulator_gives_the_lowest_limit_before_it_pauses():
    """EDF keeps both at full power; the fall to 1.5 kW takes half of the power of the job with least pressure."""
    made = two_jobs(2.0)
    made = made.with_mechanisms(PowerCap((0.0, 0.5 * HOUR), (2.0, 1.5)))
    result = simulate(made, make_policy("edf"))
    names = [(int(row[at.LOG_JOB]), made.configurations[int(row[at.LOG_CONFIG])].name) for row in result.log]
    assert (1, "Vx1@0.5") in names
    assert result.completion_s[0] == HOUR
    assert result.cap_forced_s == pytest.approx(0.5 * HOUR)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_cap_jobs_with_slack_choose_the_limit_at_which_an_epoch_costs_least(name):
    jobs = [hours_job(due_h, {FULL: 1.0, HALF: 1.25}) for due_h in (1.0, 9.0)]
    made = kilowatt_cluster(jobs, [2], [FULL, HALF])
    assert limits_at_once(made, name) == {0: 1.0, 1: 0.5}
    np.testing.assert_array_equal(simulate(made, make_policy(name)).log, simulate(made, make_policy("sts-x")).log)


@pytest.mark.parametrize("name", NAMES)
def test_jobs_on_shares_have_no_limits_and_the_cap_is_kept(name, tmp_path):
    """STS-X then plans within the cap, and so do the reference rules."""
    made = random_instance(3, jobs=16, kinds=True)
    made = made.with_mechanisms(PowerCap((0.0, 3000.0), (0.7 * peak_kw(made), 0.6 * peak_kw(made))))
    result = simulate(made, make_policy(name))
    np.testing.assert_array_equal(result.log, simulate(made, make_policy("sts-x")).log)
    assert any(made.configurations[int(c)].share < 1.0 for c in result.log[:, at.LOG_CONFIG])
    assert audited(result, tmp_path / "run") == []


def test_power_has_the_least_price_at_which_the_limits_fit():
    """Full power costs 1 € and takes 1 h, half 0.625 € and 1.25 h: half is chosen from 1 and from 1/3 €/kWh more on."""
    made = kilowatt_cluster([hours_job(9.0, {FULL: 1.0, HALF: 1.25})] * 2, [2], [FULL, HALF])
    board = begin_run(made.with_mechanisms(PowerCap((0.0,), (2.0,)))).board
    board.memory[:2, sim.NODE], board.memory[:2, of.BARE_VALUE] = 0, (3.0 / HOUR, 2.0 / HOUR)
    hard = [(2.0, np.inf, [0, 0]), (1.9, np.inf, [0, 1]), (1.4, np.inf, [1, 1])]
    soft = [(0.9, 0.3, [0, 0]), (0.9, 0.9, [0, 1]), (0.9, 1.1, [1, 1])]  # €/kWh above the cap
    for cap_kw, eur_per_kwh, configs in hard + soft:
        board.clock[at.CAP_KW], board.site[at.SOFT_EUR], board.memory[:2, sim.PLANNED] = cap_kw, eur_per_kwh, 0
        assert lower_by_price(board)
        assert board.memory[:2, sim.PLANNED].tolist() == configs
    board.clock[at.CAP_KW], board.site[at.SOFT_EUR] = 0.9, np.inf
    assert not lower_by_price(board)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "cap:tiers"])  # that pauses jobs with slack
def test_where_no_limits_are_low_enough_as_many_jobs_run_as_fit_at_the_lowest(name):
    """Three jobs draw 1.5 kW at half power. They run at full power as soon as the cap is 3 kW."""
    made = kilowatt_cluster([hours_job(1.0, {FULL: 1.0, HALF: 1.25})] * 3, [3], [FULL, HALF])
    result = simulate(made.with_mechanisms(PowerCap((0.0, 360.0), (1.4, 3.8))), make_policy(name))
    times_and_configs = {(row[at.LOG_START], int(row[at.LOG_CONFIG])) for row in result.log}
    assert times_and_configs == {(0.0, 1), (360.0, 0)}
    assert (result.log[:, at.LOG_START] == 0.0).sum() == 2


def test_a_cap_that_does_not_bind_changes_no_limit():
    made = kilowatt_cluster([hours_job(9.0, {FULL: 1.0, HALF: 1.25})] * 2, [2], [FULL, HALF])
    assert limits_at_once(made.with_mechanisms(PowerCap((0.0,), (1.0,))), "sts-x") == {0: 0.5, 1: 0.5}


def scenario(share: float) -> Scenario:
    """Make a small workload with limits whose cap is a part of the peak and falls by a quarter now and then."""
    values = {
        "jobs.count": 8, "jobs.power_limits": [1.0, 0.85, 0.7, 0.6], "cluster.nodes": 2, "cluster.gpu_types": ["V100"],
        "arrivals.kind": "exponential", "arrivals.lambda_s": 2000.0, "epochs.library_size": 2, "site.cap_part": share,
        "site.event_gap_s": 20_000.0, "site.event_notice_s": [0.0, 4000.0], "site.gpu_hour_eur": 2.0,
    }  # fmt: skip
    return load_scenario("default").replace(values)


def limited(seed: int, share: float) -> Instance:
    return make_instance(scenario(share), seed)


@pytest.mark.parametrize("name", [*NAMES, "edf"])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0.4, 0.9))
def test_the_audit_agrees_that_the_cap_is_kept(tmp_path_factory, name, seed, share):
    result = simulate(limited(seed, share), make_policy(name))
    folder = tmp_path_factory.mktemp("run") / "run"
    assert audited(result, folder) == []
    assert result.job_energy_eur.sum() == pytest.approx(result.energy_eur, rel=1e-9)


@pytest.mark.parametrize("soft", [None, 0.5])
@pytest.mark.parametrize("name", ["edf", "sts-x"])
def test_all_doors_run_the_same_and_rewards_are_minus_the_bill(name, soft):
    made = limited(7, 0.5)
    made, policy = made.with_mechanisms(replace(made.of(PowerCap), soft_eur_per_kwh=soft)), make_policy(name)
    result = simulate(made, policy)
    asked = {"job_order": policy.job_order, "preemption": policy.preemption, "milestones": 0}
    env = GpuClusterEnv(scenario(0.5), **asked)
    one, rewards = rollout(env, policy, instance=made)
    np.testing.assert_array_equal(one.log, result.log)
    assert -rewards == pytest.approx(result.total_eur, rel=1e-9)


@pytest.mark.parametrize("soft", [None, 0.5])
@pytest.mark.parametrize("name", ["edf", "sts-x"])
def test_a_service_makes_the_same_schedule_under_a_cap(name, soft):
    made = make_instance(scenario(0.5).replace({"jobs.power_limits": [1.0]}), 7)
    made = made.with_mechanisms(replace(made.of(PowerCap), soft_eur_per_kwh=soft))
    result, decider = simulate(made, make_policy(name)), Decider(PolicyCatalogue.of(name), b"a key")
    asking = ServicePolicy("", name, made, post=lambda _, body: decider(body))
    np.testing.assert_array_equal(simulate(made, asking).log, result.log)


def test_limits_give_a_capped_hall_ten_to_fourteen_percent_more_throughput():
    """NVIDIA's figure is +13 %. The best limit follows from V100's curve; Meta's 0.80 to 0.83 is not met by it."""
    for rest, low, high in ((0.4, 0.13, 0.14), (0.6, 0.10, 0.11)):
        best, gain = gain_of_limits(rest, nodes=200)
        assert 0.685 <= best <= 0.735
        assert low <= gain - 1.0 <= high + 0.005
    assert best < 0.80


def test_an_event_takes_a_quarter_of_the_power_and_no_tier_loses_more_than_it_may():
    """Emerald Conductor: 256 GPUs, 3 h, tiers that may lose 0, 10, 25 and 50 %."""
    found = quarter_off()
    assert found.power <= 0.75 + 1e-9
    assert found.forced_s == 0.0
    assert found.loss[0] == pytest.approx(0.0, abs=1e-12)
    for loss, allowed in zip(found.loss, (0.0, 0.10, 0.25, 0.50), strict=True):
        assert loss <= allowed + 1e-12


@pytest.mark.parametrize("name", [*NAMES, "zeus-limit"])
def test_the_order_of_configurations_does_not_matter(name):
    """As in an instance file or a request, which may list a limit before full power."""
    settings = {"jobs.count": 12, "jobs.power_limits": [1.0, 0.85, 0.7, 0.6], "site.cap_part": 0.5}
    plain = make_instance(load_scenario("default").replace(settings), 1)
    order = np.argsort([c.power_limit for c in plain.configurations], kind="stable")
    saved = SavedPower(tuple(tuple(row[i] for i in order) for row in plain.find("saved_power").saved_kw))
    other = replace(
        plain,
        configurations=tuple(plain.configurations[i] for i in order),
        jobs=replace(plain.jobs, seconds_per_epoch=plain.jobs.seconds_per_epoch[:, order]),
        mechanisms=(*(own for own in plain.mechanisms if own.mechanism != "saved_power"), saved),
    )
    costs = [simulate(instance, make_policy(name)).total_eur for instance in (plain, other)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


def test_the_full_power_of_the_same_gpus_is_found_wherever_it_stands():
    made = kilowatt_cluster([hours_job(3.0, {FULL: 1.0, HALF: 1.25})], [2], [HALF, FULL])
    assert made.unlimited.tolist() == [1, 1]
    assert kilowatt_cluster([hours_job(3.0, {HALF: 1.25})], [2], [HALF]).unlimited.tolist() == [0]


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_may_not_run_at_full_power_runs_at_its_own_limit(name):
    """The first job is measured at half the power alone, the second one at both limits."""
    jobs = [hours_job(9.0, {HALF: 1.25}), hours_job(9.0, {FULL: 1.0, HALF: 1.25})]
    made = kilowatt_cluster(jobs, [2], [FULL, HALF]).with_mechanisms(Rent(3.0), PowerCap((0.0,), (2.0,)))
    assert limits_at_once(made, name)[0] == 0.5
