"""Power limits and power by application: by hand, beside an independent sum, and in files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixed import Fixed
from gpusched_baselines import capacity_bound, clairvoyant_bound, make_policy
from gpusched_env import Configuration, EpochDistribution, Instance, Job, Node, Result, UtilisationModel, simulate
from gpusched_env.audit import audit
from gpusched_env.formats import save_instance, write_run
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.model.rates import Rates
from gpusched_env.simulator import layout as at
from instances import HOUR, by_utilisation, random_instance, with_switching
from limited import with_power_limits
from refusals import refused
from run_files import audited, loaded_again
from scripted import Scripted
from small_instances import CERTAIN, KILOWATT, hours_job, kilowatt_cluster

ONE, LIMITED, TWO = Configuration("V", 1), Configuration("V", 1, power_limit=0.5), Configuration("V", 2)
TIMES = {ONE: 1.0, LIMITED: 1.25, TWO: 0.6}


def cluster(*hours: dict[Configuration, float], restart_s: float = 0.0, nodes: tuple[int, ...] = (2, 2)) -> Instance:
    """Make jobs of one epoch on nodes whose busy GPUs draw 1 kW at 1 €/kWh."""
    jobs = [replace(hours_job(100.0, each), restart_s=restart_s) for each in hours]
    return kilowatt_cluster(jobs, nodes, (ONE, LIMITED, TWO))


def test_a_gpu_at_half_its_power_costs_half_for_longer():
    result = simulate(cluster(TIMES), Fixed((1,)))
    assert result.completion_s.tolist() == [1.25 * HOUR]
    assert result.energy_eur == pytest.approx(0.625)


def test_a_change_of_the_limit_alone_takes_no_restart_and_is_no_switch_unlike_one_of_the_node():
    """Half an hour at full power, then the other half of the epoch at half the power; a restart would take 600 s."""
    steps = {0.0: {0: (0, 0, None)}, 0.5 * HOUR: {0: (1, 0, None)}}
    result = simulate(cluster(TIMES, restart_s=600.0), Scripted(steps))
    assert result.completion_s == pytest.approx([0.5 * HOUR + 0.625 * HOUR])
    assert result.energy_eur == pytest.approx(0.5 + 0.625 * 0.5)
    assert result.switches.tolist() == [0]
    steps = {0.0: {0: (0, 0, None)}, 0.5 * HOUR: {0: (1, 1, None)}}
    result = simulate(cluster(TIMES, restart_s=600.0), Scripted(steps))
    assert result.completion_s == pytest.approx([0.5 * HOUR + 600.0 + 0.625 * HOUR])
    assert result.switches.tolist() == [1]


def test_a_change_of_limit_while_a_job_starts_does_not_begin_the_start_again():
    """It starts for 600 s; the limit changes after 300 s."""
    instance = cluster(TIMES)
    instance = replace(instance, jobs=replace(instance.jobs, start_s=np.array([600.0])))
    result = simulate(instance, Scripted({0.0: {0: (0, 0, None)}, 300.0: {0: (1, 0, None)}}))
    assert result.completion_s == pytest.approx([600.0 + 1.25 * HOUR])
    assert result.energy_eur == pytest.approx(300.0 / HOUR + (300.0 + 1.25 * HOUR) / HOUR * 0.5)


def test_applications_on_one_node_each_pay_for_their_own_power():
    """Two jobs on a node of two GPUs and 1 kW base power; the second one's GPU draws 0.3 kW less."""
    jobs = [Job(0.0, 1e6, 0.0, 1.0, CERTAIN, 1.0, {ONE: HOUR}, application=name) for name in "ab"]
    gpu = replace(KILOWATT, node_base_power_w=1000.0)
    nodes, prices = [Node("V", 2)], {"energy_price_eur_per_kwh": 1.0, "pue": 1.0}
    instance = Instance.from_jobs([gpu], nodes, jobs, [ONE], **prices, mechanisms=[SavedPower([[0.0], [0.3]])])
    result = simulate(instance, Fixed((0, 0)))
    assert result.energy_eur == pytest.approx(2.7)
    assert result.job_energy_eur.tolist() == pytest.approx([1.5, 1.2])
    rates = Rates.of(instance)
    assert rates.planning * HOUR == pytest.approx(np.array([[2.0], [1.7]]))
    assert rates.least * HOUR == pytest.approx(np.array([[1.5], [1.2]]))


def test_where_gpus_idle_a_limit_saves_while_they_work():
    """Busy half of the time, a GPU of 1 kW that idles at 0.2 kW draws 0.6 kW; a limit that takes 0.4 kW takes half."""
    jobs = [Job(0.0, 1e6, 0.0, 1.0, CERTAIN, 1.0, {LIMITED: HOUR}, application="a")]
    model = UtilisationModel(np.array([[0.5]]), idle_power_w=np.array([200.0]))
    prices = {"energy_price_eur_per_kwh": 1.0, "pue": 1.0}
    instance = Instance.from_jobs(
        [KILOWATT], [Node("V", 1)], jobs, [LIMITED], **prices, mechanisms=[model, SavedPower([[0.4]])]
    )
    result = simulate(instance, Fixed((0,)))
    assert result.energy_eur == pytest.approx(0.4)
    assert Rates.of(instance).planning * HOUR == pytest.approx(np.array([[0.8]]))


def drawn(seed: int) -> Instance:
    instance = random_instance(seed, jobs=8, kinds=seed % 3 > 0, spread=seed % 5 == 4, restart_s=3.0 * (seed % 2))
    if seed % 3 == 2:
        instance = by_utilisation(instance)
    return with_power_limits(with_switching(instance, seed) if seed % 4 == 1 else instance, seed)


def check(result: Result, folder: Path) -> None:
    assert audited(result, folder) == []
    assert result.job_energy_eur.sum() == pytest.approx(result.energy_eur)


@pytest.mark.parametrize("name", ["edf:preemptive", "sts", "sts-x"])
@pytest.mark.parametrize("seed", range(6))
def test_an_own_account_finds_the_same_costs_and_the_bounds_hold(name, seed, tmp_path):
    instance = drawn(seed)
    result = simulate(instance, make_policy(name))
    check(result, tmp_path / "run")
    if instance.most_spread == 0:
        assert max(clairvoyant_bound(instance), capacity_bound(instance)) <= result.total_eur * (1.0 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_limits_that_no_job_may_use_and_a_saving_of_nothing_change_nothing(seed):
    instance = random_instance(seed, kinds=bool(seed % 2), restart_s=5.0 * (seed % 3))
    limited = with_power_limits(instance, seed)
    seconds = limited.jobs.seconds_per_epoch.copy()
    seconds[:, len(instance.configurations) :] = np.inf
    nothing = tuple((0.0,) * seconds.shape[1] for _ in limited.jobs.applications)
    closed = replace(limited, jobs=replace(limited.jobs, seconds_per_epoch=seconds)).with_mechanisms(
        SavedPower(nothing)
    )
    for name in ("edf:preemptive", "sts-x"):
        ours, theirs = simulate(instance, make_policy(name)), simulate(closed, make_policy(name))
        assert [ours.energy_eur, ours.tardiness_eur] == [theirs.energy_eur, theirs.tardiness_eur]
        np.testing.assert_array_equal(ours.log, theirs.log)


def test_a_run_whose_saved_power_is_another_one_is_found(tmp_path):
    instance = drawn(3)
    result = simulate(instance, make_policy("edf:preemptive"))
    write_run(result, tmp_path / "run")
    rows = tuple(tuple(0.9 * each for each in row) for row in instance.find("saved_power").saved_kw)
    save_instance(instance.with_mechanisms(SavedPower(rows)), tmp_path / "run" / "instance.json")
    assert any(each.what == "energy_eur" for each in audit(tmp_path / "run"))


@pytest.mark.parametrize("seed", range(5))
def test_an_instance_file_keeps_limits_and_saved_power(seed, tmp_path):
    instance = drawn(seed)
    assert loaded_again(instance, tmp_path) == instance


def test_names_and_refusals():
    kinds = ONE, Configuration("V", 8, 2), Configuration("V", 1, share=0.5)
    assert [replace(c, power_limit=0.7).name for c in kinds] == ["Vx1@0.7", "2*Vx8@0.7", "Vx0.5@0.7"]
    assert Configuration("V", 1, 4, spread=True, power_limit=0.85).name == "V~4@0.85"
    for limit in (0.0, 1.1, -0.5):
        with refused("configuration.power_limit", limit):
            Configuration("V", 1, power_limit=limit)
    instance = cluster(TIMES)
    assert instance.find("saved_power").saved_kw == ((0.0, 0.5, 0.0),)
    own = instance.with_mechanisms(SavedPower(((0.0, 0.4, 0.0),)))
    assert own.find("saved_power").saved_kw == ((0.0, 0.4, 0.0),)
    assert own.without("saved_power") == instance, "what limits take"
    with refused("saved_kw", [2]):
        instance.with_mechanisms(SavedPower(((0.0, 0.5),)))
    for kilowatts in (-0.1, 1.01, float("nan")):
        with pytest.raises(Exception, match=r"saved_kw\[0\]\[1\]"):
            instance.with_mechanisms(SavedPower(((0.0, kilowatts, 0.0),)))


def test_sts_raises_the_limit_before_it_takes_more_gpus():
    """It runs at half its power first. If it goes on it must be faster: the same GPU at full power is enough."""
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.1]))
    times = {ONE: HOUR, LIMITED: 1.25 * HOUR, TWO: 0.9 * HOUR}
    job = Job(0.0, 4.6 * HOUR, 1.0, 4.0, halves, 4.0, times, restart_s=60.0)
    result = simulate(kilowatt_cluster([job], (2,), (ONE, LIMITED, TWO)), make_policy("sts"))
    assert result.log[:, at.LOG_CONFIG].tolist() == [1, 0]
    assert result.switches.tolist() == [0]
    assert result.late_jobs == 0


def test_sts_x_runs_below_full_power_while_a_job_has_slack_and_raises_the_limit_when_it_has_none():
    """Due in 1.1 h it works 0.5 h at half its power, and 0.6 h at full power, although a restart would take 600 s."""
    slack = cluster({ONE: 1.0, LIMITED: 1.25}, nodes=(2,), restart_s=600.0)
    assert simulate(slack, make_policy("sts-x")).log[:, at.LOG_CONFIG].tolist() == [1]
    tight = replace(slack, jobs=replace(slack.jobs, due_s=np.array([1.1 * HOUR])))
    result = simulate(tight, make_policy("sts-x"))
    assert result.log[:, at.LOG_CONFIG].tolist() == [1, 0]
    assert result.late_jobs == 0
    assert result.energy_eur == pytest.approx(0.5 * 0.5 + 0.6)
