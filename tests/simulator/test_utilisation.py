"""Jobs that divide the time of a GPU by utilisation and priority: speeds, costs and places; by hand and by property."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from first_rounds import begin_run
from fixed import Fixed
from gpusched_baselines import make_policy
from gpusched_env import Configuration, GpuType, Instance, Job, Node, Result, UtilisationModel, rollout, simulate
from gpusched_env.mechanisms.shares.slowdown import speed_by_utilisation
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, by_utilisation, random_instance
from refusals import refused

GUARANTEED, OPPORTUNISTIC = Configuration("V", 1, share=0.6, priority=1), Configuration("V", 1, share=0.4)
HALF, ONE = Configuration("V", 1, share=0.5), Configuration("V", 1)
GPU = GpuType("V", gpu_power_w=1000.0, node_base_power_w=1000.0, memory_gib=16.0, max_gpus_per_node=2)


def jobs_of(utilisations: tuple[float, ...], configurations: tuple[Configuration, ...], **model: object) -> Instance:
    """Make jobs of 1,000 epochs, a second each alone, with these utilisations; busy GPU and node cost 1 €/h each."""
    names = [f"{i}" for i in range(len(utilisations))]
    seconds = dict.fromkeys(configurations, 1.0)
    jobs = [Job(0.0, 1e6, 0.001, 1000.0, CERTAIN, 1000.0, seconds, application=name) for name in names]
    return Instance.from_jobs(
        [GPU], [Node("V", 2)], jobs, configurations, energy_price_eur_per_kwh=1.0, pue=1.0,
        mechanisms=[UtilisationModel(np.array([utilisations]), **model)],
    )  # fmt: skip


def run(instance: Instance, *configs: int) -> Result:
    return simulate(instance, Fixed(configs))


def test_a_host_is_slowed_by_the_overhead_and_its_guest_fills_the_gaps():
    """The opportunistic share runs at 0.85 (1 - 0.5) / 0.8 = 0.53125 for 1,030 s, and alone for the rest."""
    result = run(jobs_of((0.5, 0.8), (GUARANTEED, OPPORTUNISTIC)), 0, 1)
    assert result.completion_s == pytest.approx([1030.0, 1030.0 + 1000.0 - 1030.0 * 0.53125])
    assert result.completion_s[1] == pytest.approx(1482.8125)


def test_with_one_priority_the_time_is_shared_fairly():
    """Utilisations 0.5 and 0.8 need 1.3 of the GPU: both take 1.3 times as long until one ends."""
    assert run(jobs_of((0.5, 0.8), (HALF,)), 0, 0).completion_s == pytest.approx([1300.0, 1300.0])
    assert run(jobs_of((0.4, 0.6), (HALF,)), 0, 0).completion_s == pytest.approx([1000.0, 1000.0])


def test_a_guest_alone_is_as_fast_as_alone_and_beside_a_full_host_never_dead():
    assert run(jobs_of((0.8,), (GUARANTEED, OPPORTUNISTIC)), 1).completion_s == pytest.approx([1000.0])
    result = run(jobs_of((1.0, 1.0), (GUARANTEED, OPPORTUNISTIC)), 0, 1)
    assert result.completion_s == pytest.approx([1030.0, 1030.0 + 1000.0 - 1030.0 * 0.02])


def test_power_follows_utilisation_where_it_is_asked_for():
    """Base 1 €/h and idle 0.2 €/h for both, and 0.8 €/h times the work: 0.5 / 1.03 and 0.8 · 0.53125, then 0.8."""
    result = run(jobs_of((0.5, 0.8), (GUARANTEED, OPPORTUNISTIC), idle_power_w=np.array([200.0])), 0, 1)
    together, alone = 1030.0 / 3600.0, (1482.8125 - 1030.0) / 3600.0
    host = together * (1.2 * 0.6 + 0.8 * 0.5 / 1.03)
    guest = together * (1.2 * 0.4 + 0.8 * 0.8 * 0.53125) + alone * (1.2 + 0.8 * 0.8)
    assert result.job_energy_eur == pytest.approx([host, guest])
    assert result.energy_eur == pytest.approx(host + guest)
    result = run(jobs_of((0.25,), (ONE,), idle_power_w=np.array([200.0])), 0)
    assert result.energy_eur == pytest.approx((1.0 + 0.2 + 0.8 * 0.25) * 1000.0 / 3600.0)


def test_policies_plan_hosts_with_the_overhead_and_guests_with_the_least_speed():
    state = State(jobs_of((0.5, 0.8), (GUARANTEED, OPPORTUNISTIC, ONE)))
    state.advance()
    assert state.view.tau[:, 0] == pytest.approx([1.03, 1.03])
    # A opportunistic job has one other beside it at most that is no guaranteed job: of utilisation 0.8 at worst.
    assert state.view.tau[:, 1] == pytest.approx([1.3 / 0.02, 1.6 / 0.02])
    assert state.view.tau[:, 2].tolist() == [1.0, 1.0]


def test_the_view_tells_the_speed_now():
    state = begin_run(jobs_of((0.5, 0.8), (GUARANTEED, OPPORTUNISTIC, ONE)))
    view = state.view
    assert view.speed_now(1, 1) == 1.0
    assert view.place(0, 0)
    assert view.speed_now(1, 1) == pytest.approx(0.53125)
    assert view.seconds_now(1, 1) == pytest.approx(1.0 / 0.53125)
    assert view.speed_now(0, 0) == 1.0  # nobody else is there yet
    assert view.place(1, 1)
    assert view.speed_now(0, 0) == pytest.approx(1.0 / 1.03)
    assert view.speed_now(1, 1) == pytest.approx(0.53125)
    assert (view.speed_now(0, 2), view.seconds_now(0, 2)) == (1.0, 1.0)


def test_a_share_goes_where_it_is_fastest_and_among_equals_to_the_fullest():
    """Utilisations 0.9 and 0.2 on two GPUs: the other goes to the second; without `fastest` to the first."""
    for fastest, gpu in ((True, 1), (False, 0)):
        state = begin_run(jobs_of((0.9, 0.2, 0.5), (GUARANTEED, OPPORTUNISTIC), fastest=fastest))
        assert [state.view.place(job, config) for job, config in ((0, 0), (1, 0), (2, 1))] == [True] * 3
        assert state.view.jobs[2, at.SLOT] == gpu


def test_what_is_filled_depends_on_the_guaranteed_application_and_on_the_number_of_others():
    """Of the half that a guaranteed job leaves one other can use 0.2, two or more 0.6; each asks for 0.4 of the GPU."""
    table = np.array([[0.2, 0.6], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    shares = (GUARANTEED, replace(OPPORTUNISTIC, share=0.1))
    for others, speed in ((1, 0.5 * 0.2 / 0.4), (2, 0.5 * 0.6 / 0.8), (3, 0.5 * 0.6 / 1.2)):
        instance = jobs_of((0.5, *(0.4,) * others), shares, filled=table[: 1 + others], overhead=0.03)
        done = simulate(instance, Fixed((0, *(1,) * others)))
        ends = 1030.0 + (1000.0 - 1030.0 * speed) * max(1.0, 0.4 * others)
        np.testing.assert_allclose(done.completion_s, [1030.0, *(ends,) * others])
        assert instance.find("shares").filled_by([0, 1], others) == 0.0, "the least of two of the highest priority"


DEMANDS = st.lists(
    st.sampled_from([0.0, 0.0, 0.01, 0.3, 0.8, 1.0, 2.5]), min_size=at.PRIORITIES, max_size=at.PRIORITIES
)


def plain_speeds(demand, filled, overhead, least):
    """Return the speed at every priority that some job has, by NumPy: what the highest leaves is filled from above."""
    held = [p for p in reversed(range(len(demand))) if demand[p] > 0.0]
    asked = np.array([demand[p] for p in held])
    before = np.cumsum(asked) - asked - asked[:1]
    granted = np.clip(filled * max(0.0, 1.0 - asked[:1].sum()) - before, 0.0, asked)
    granted[:1] = np.minimum(asked[:1], 1.0)
    speeds = granted / asked / np.where(np.arange(len(held)) < len(held) - 1, 1.0 + overhead, 1.0)
    speeds[1:] = np.maximum(speeds[1:], least / max(1.0, asked[1:].sum()))
    return dict(zip(held, speeds.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(
    demand=DEMANDS, overhead=st.sampled_from([0.001, 0.03, 0.5]), filled=st.floats(0.0, 1.0), least=st.floats(0.01, 1.0)
)
def test_a_gpu_never_works_more_than_all_of_its_time(demand, overhead, filled, least):
    model = UtilisationModel(np.ones((1, 1)), overhead, filled, least * overhead / (1.0 + overhead))
    sharing = np.zeros(at.SHARING_COLUMNS)
    sharing[[at.OVERHEAD, at.LEAST_SPEED]] = model.overhead, model.least_speed
    held = [p for p in range(at.PRIORITIES) if demand[p] > 0.0]
    paces = {p: speed_by_utilisation(np.array(demand), p, filled, sharing) for p in held}
    assert paces == pytest.approx(plain_speeds(demand, filled, model.overhead, model.least_speed), abs=1e-12)
    assert sum(demand[p] * paces[p] for p in held) <= 1.0 + 1e-12
    assert all(0.0 < pace <= 1.0 for pace in paces.values())
    if held:
        assert paces[held[-1]] >= min(1.0, 1.0 / demand[held[-1]]) / (1.0 + overhead)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), power=st.booleans(), name=st.sampled_from(["edf", "sts-x", "edf:preemptive"]))
def test_simulate_and_the_environment_agree_and_nothing_is_slower_than_planned(seed, power, name):
    instance, policy = by_utilisation(random_instance(seed, kinds=True), power=power), make_policy(name)
    slowest = []
    direct = simulate(
        instance, policy, on_round=lambda state: slowest.append(np.nanmax(state.board.jobs[:, at.SLOWDOWN]))
    )
    assert max(slowest) <= 1.0 + 1e-12
    assert direct.job_energy_eur.sum() == pytest.approx(direct.energy_eur)
    env = AnyInstance(instance, job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    stepped, _ = rollout(env, policy, instance=instance)
    np.testing.assert_array_equal(stepped.log, direct.log)
    assert stepped.total_eur == pytest.approx(direct.total_eur, rel=1e-9)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"utilisation": np.ones(3)}, "interference.utilisation"),
        ({"utilisation": np.array([[0.0]])}, "interference.utilisation[0, 0]"),
        ({"overhead": -0.1}, "interference.overhead"),
        ({"filled": 1.5}, "interference.filled"),
        ({"filled": np.zeros((1, 0))}, "interference.filled"),
        ({"filled": np.zeros((2, 1))}, "interference.filled"),
        ({"filled": np.array([[0.5, 1.5]])}, "interference.filled[0, 1]"),
        ({"least_speed": 0.03}, "interference.least_speed"),
        ({"idle_power_w": np.ones(2)}, "interference.idle_power_w"),
        ({"fastest": 1}, "interference.fastest"),
    ],
)
def test_a_wrong_number_is_named(values, field):
    with refused(field):
        UtilisationModel(**{"utilisation": np.ones((1, 1)), **values})


def test_priorities_need_utilisations_and_idle_power_is_part_of_what_a_gpu_draws():
    instance = jobs_of((0.5, 0.8), (GUARANTEED, OPPORTUNISTIC))
    with refused("configurations", "Vx0.6!", "shares without priorities"):
        instance.without("shares")
    with refused("interference.idle_power_w[0]", 1000.5):
        jobs_of((0.5,), (GUARANTEED, OPPORTUNISTIC), idle_power_w=np.array([1000.5]))
    with refused("interference.utilisation", (1, 3)):
        instance.with_mechanisms(UtilisationModel(np.ones((1, 3))))
    with refused("configuration.priority", 1):
        Configuration("V", 1, priority=1)
