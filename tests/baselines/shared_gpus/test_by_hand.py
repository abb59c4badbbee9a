"""The policies for shared GPUs, rule by rule, on clusters of one to four GPUs."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import AntMan, Fill, Pack, make_policy
from gpusched_env import Configuration, GpuType, Instance, Interference, Job, Node, Policy, UtilisationModel, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, by_utilisation, random_instance

GUARANTEED, OPPORTUNISTIC = Configuration("V", 1, share=0.6, priority=1), Configuration("V", 1, share=0.4)
HALF, ONE, TWO = Configuration("V", 1, share=0.5), Configuration("V", 1), Configuration("V", 2)
GPU = GpuType("V", gpu_power_w=1000.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=2)
ALL = (GUARANTEED, OPPORTUNISTIC, TWO)


def job(
    utilisation: float,
    *,
    at_s: float = 0.0,
    opportunistic: bool = False,
    weight: float = 0.001,
    epochs: float = 1000.0,
    due_s: float = 1e9,
    configurations: tuple[Configuration, ...] = (GUARANTEED, OPPORTUNISTIC),
) -> tuple[float, Job]:
    """Make a job with its number of epochs, a second each alone, and its utilisation."""
    seconds = dict.fromkeys(configurations, 1.0)
    return utilisation, Job(at_s, due_s, weight, epochs, CERTAIN, epochs, seconds, opportunistic=opportunistic)


def cluster(
    jobs: list[tuple[float, Job]],
    gpus: tuple[int, ...],
    configurations: tuple[Configuration, ...] = ALL,
    **values: float,
) -> Instance:
    """Make a cluster of nodes with these numbers of GPUs; jobs of different utilisation are different applications."""
    made = [replace(one, application=f"{i}", **values) for i, (_, one) in enumerate(jobs)]
    utilisation = UtilisationModel(np.array([[utilisation for utilisation, _ in jobs]]))
    nodes = [Node("V", count) for count in gpus]
    return Instance.from_jobs([GPU], nodes, made, configurations, mechanisms=[utilisation])


def held(instance: Instance, policy: Policy, until_s: float = 0.0) -> list[tuple[str, int, int] | None]:
    """Return what every submitted job holds after the round at `until_s`: configuration, node and shared GPU."""
    state = State(instance)
    while state.advance():
        state.begin_round(policy.preemption)
        policy.decide(state.view, np.random.default_rng(0))
        state.commit_round()
        if state.view.now_s >= until_s:
            break
    rows = state.view.jobs[: int(state.board.count[at.SUBMITTED])]
    names = [c.name for c in instance.configurations]
    return [
        None if row[at.CONFIG] < 0 else (names[int(row[at.CONFIG])], int(row[at.NODE]), int(row[at.SLOT]))
        for row in rows
    ]


def test_antman_puts_guaranteed_jobs_on_idle_gpus_even_late_ones_and_an_opportunistic_one_on_the_least_busy_one():
    instance = cluster([job(0.6), job(0.3), job(0.5, opportunistic=True)], (2,))
    assert held(instance, AntMan()) == [("Vx0.6!", 0, 0), ("Vx0.6!", 0, 1), ("Vx0.4", 0, 1)]
    instance = cluster(
        [job(0.5, due_s=1.0, configurations=(GUARANTEED, OPPORTUNISTIC, ONE))], (1,), (GUARANTEED, OPPORTUNISTIC, ONE)
    )
    assert held(instance, AntMan()) == [("Vx0.6!", 0, 0)]
    instance = cluster([job(0.3), job(0.3, configurations=(OPPORTUNISTIC,))], (1,))
    assert held(instance, AntMan()) == [("Vx0.6!", 0, 0), ("Vx0.4", 0, 0)]


def test_antman_gives_an_opportunistic_job_an_idle_gpu_first_and_none_that_is_too_busy():
    instance = cluster([job(0.3), job(0.5, opportunistic=True)], (2,))
    assert held(instance, AntMan())[1] == ("Vx0.4", 0, 1)
    busy = cluster([job(0.85), job(0.5, opportunistic=True)], (1,))
    assert held(busy, AntMan())[1] is None
    assert held(busy, AntMan(most_busy=0.9))[1] == ("Vx0.4", 0, 0)


def test_antman_puts_a_guaranteed_job_where_there_is_only_an_opportunistic_one_which_stays():
    instance = cluster([job(0.5, opportunistic=True), job(0.5, at_s=100.0)], (1,))
    result = simulate(instance, AntMan())
    assert result.switches.tolist() == [0, 0]
    # The guaranteed job takes 1,030 s; the other has done 100 epochs, and then runs at 0.85 (1 - 0.5) / 0.5 = 0.85.
    assert result.completion_s == pytest.approx([1130.0 + 900.0 - 0.85 * 1030.0, 1130.0])


def test_antmans_opportunistic_jobs_leave_a_guaranteed_share_free_but_none_with_which_they_never_fit():
    opportunistic = [job(0.1, opportunistic=True), job(0.1, opportunistic=True)]
    instance = cluster([*opportunistic, job(0.1, at_s=10.0)], (1,))
    assert held(instance, AntMan()) == [("Vx0.4", 0, 0), None]
    assert held(instance, AntMan(), until_s=10.0) == [("Vx0.4", 0, 0), None, ("Vx0.6!", 0, 0)]
    opportunistic = [job(0.1, opportunistic=True, configurations=(GUARANTEED, HALF)) for _ in range(3)]
    host = job(0.1, at_s=10.0, configurations=(GUARANTEED, HALF))
    instance = cluster([*opportunistic, host], (1,), (GUARANTEED, HALF, ONE))
    assert held(instance, AntMan()) == [("Vx0.5", 0, 0), ("Vx0.5", 0, 0), None]
    assert held(instance, AntMan(), until_s=1000.0)[2:] == [None, ("Vx0.6!", 0, 0)]


def test_antman_keeps_the_emptiest_node_for_a_gang_and_opportunistic_jobs_and_places_others_elsewhere():
    """Four guaranteed jobs on nodes of 2, 2 and 1 GPUs leave one free on node 1, which is kept for the gang of two."""
    jobs = [
        job(0.5, configurations=(ONE,), epochs=50.0), *(job(0.5, configurations=(ONE,)) for _ in range(3)),
        job(0.5, at_s=1.0, configurations=(TWO,)), job(0.5, at_s=1.0), job(0.5, at_s=1.0, opportunistic=True),
    ]  # fmt: skip
    instance = cluster(jobs, (2, 2, 1), (GUARANTEED, OPPORTUNISTIC, TWO, ONE))
    before = held(instance, AntMan(), until_s=1.0)
    assert before[:4] == [("Vx1", 2, -1), ("Vx1", 0, -1), ("Vx1", 0, -1), ("Vx1", 1, -1)]
    assert before[4:] == [None, None, ("Vx0.4", 1, 0)]
    after = held(instance, AntMan(), until_s=50.0)
    assert after[4:] == [None, ("Vx0.6!", 2, 0), ("Vx0.4", 1, 0)]


def test_antman_preempts_only_opportunistic_jobs_for_a_gang():
    jobs = [job(0.5, opportunistic=True), job(0.5, opportunistic=True), job(0.9, at_s=10.0, configurations=(TWO,))]
    found = held(cluster(jobs, (2,)), AntMan(), until_s=10.0)
    assert found == [None, None, ("Vx2", 0, -1)]
    elsewhere = held(cluster(jobs, (2, 1)), AntMan(), until_s=10.0)
    assert elsewhere[2] == ("Vx2", 0, -1)
    assert ("Vx0.4", 1, 0) in elsewhere[:2]


def test_antman_promotes_the_slowest_opportunistic_job_to_an_idle_gpu_if_that_gains_more_than_a_restart_takes():
    """When the guaranteed job of GPU 1 ends, the opportunistic job of GPU 0 moves there, if the gain is worth it."""
    jobs = [job(0.7, epochs=5000.0), job(0.9, epochs=100.0), job(0.9, opportunistic=True)]
    cheap, costly = cluster(jobs, (2,), restart_s=10.0), cluster(jobs, (2,), restart_s=1e5)
    assert held(cheap, AntMan(), until_s=50.0)[2] == ("Vx0.6!", 0, 1)
    assert held(costly, AntMan(), until_s=50.0)[2] == ("Vx0.4", 0, 0)
    assert held(cheap, AntMan(promotes=False), until_s=50.0)[2] == ("Vx0.4", 0, 0)


def test_antman_runs_a_guaranteed_job_on_an_opportunistic_share_once_it_has_waited_too_long():
    instance = cluster([job(0.3, epochs=3000.0), job(0.3)], (1,))
    assert simulate(instance, AntMan()).start_s[1] == pytest.approx(3000.0)
    assert simulate(instance, AntMan(auto_after_s=60.0)).start_s[1] == pytest.approx(60.0)


def test_guaranteed_jobs_run_at_their_speed_with_any_opportunistic_jobs():
    for seed in range(6):
        instance = by_utilisation(random_instance(seed, jobs=25, kinds=True))
        label = np.arange(25) % 2 == 0
        result = simulate(replace(instance, jobs=replace(instance.jobs, opportunistic=label)), AntMan())
        frame = result.intervals()
        for one in np.flatnonzero(~label):
            own = frame.filter(frame["job"] == one)
            names = [c.name for c in instance.configurations]
            column = names.index(own["configuration"][0])
            alone_s = instance.jobs.seconds_per_epoch[one, column] * instance.jobs.epochs_needed[one]
            if "x0." not in names[column]:
                assert own["end_s"].max() - own["start_s"].min() == pytest.approx(alone_s)


def test_fill_gives_the_highest_class_a_gpu_and_the_others_its_idle_time_where_an_epoch_takes_least():
    jobs = [job(0.5, weight=0.002), job(0.5, weight=0.001)]
    assert held(cluster(jobs, (2,)), Fill()) == [("Vx0.6!", 0, 0), ("Vx0.4", 0, 0)]
    jobs = [job(0.5, weight=0.002, epochs=100.0), job(0.5, weight=0.001)]
    assert held(cluster(jobs, (1,)), Fill(), until_s=50.0)[1] == ("Vx0.6!", 0, 0)
    jobs = [job(0.97, weight=0.002), job(0.5, weight=0.001)]
    assert held(cluster(jobs, (1,)), Fill()) == [("Vx0.6!", 0, 0), None]
    jobs = [job(0.6, weight=0.002), job(0.3, weight=0.002), job(0.9, weight=0.001), job(0.2, weight=0.0005)]
    found = held(cluster(jobs, (2,)), Fill())
    assert found[2] == ("Vx0.4", 0, 1)


def test_fill_uses_an_idle_gpu_for_a_job_that_would_be_late_on_an_opportunistic_share():
    """In the time that is left it takes 1,000 / 0.85 s."""
    jobs = [job(0.5, weight=0.002), job(0.5, weight=0.001, due_s=1100.0)]
    assert held(cluster(jobs, (2,)), Fill())[1] == ("Vx0.6!", 0, 1)
    slack = [jobs[0], job(0.5, weight=0.001, due_s=1200.0)]
    assert held(cluster(slack, (2,)), Fill())[1] == ("Vx0.4", 0, 0)


def test_fill_puts_a_higher_class_first_and_the_former_guaranteed_job_stays_as_an_opportunistic_one():
    jobs = [job(0.5, weight=0.001), job(0.4, at_s=100.0, weight=0.002)]
    instance = cluster(jobs, (1,))
    assert held(instance, Fill(), until_s=100.0) == [("Vx0.4", 0, 0), ("Vx0.6!", 0, 0)]
    # The opportunistic job has all it needs, 0.85 (1 - 0.4) / 0.5 > 1, ends at 1,000 s; the other then has 900 / 1.03.
    assert simulate(instance, Fill()).completion_s == pytest.approx([1000.0, 1000.0 + 1000.0 - 900.0 / 1.03])


@pytest.mark.parametrize(
    ("weight", "classes", "after"),
    [(0.001, 2, [None, "Vx0.4", "Vx0.6!"]), (0.0005, 3, ["Vx0.4", None, "Vx0.6!"])],
)
def test_fill_preempts_for_the_former_guaranteed_job_only_those_of_a_lower_class(weight, classes, after):
    jobs = [job(0.3, weight=0.001), job(0.3, weight=weight), job(0.3, at_s=100.0, weight=0.002)]
    instance, policy = cluster(jobs, (1,)), Fill(classes=classes)
    assert held(instance, policy) == [("Vx0.6!", 0, 0), ("Vx0.4", 0, 0)]
    assert [each and each[0] for each in held(instance, policy, until_s=100.0)] == after


def test_pack_puts_light_jobs_together_and_heavy_ones_apart():
    """Utilisations 0.05 and 0.1 have the label 0, 0.95 has 2: two jobs of it on a GPU take 1.9 times as long."""
    jobs = [job(u, configurations=(HALF, ONE)) for u in (0.95, 0.95, 0.1, 0.95, 0.05)]
    found = held(cluster(jobs, (2, 1), (HALF, ONE)), Pack())
    places = [each and each[1:] for each in found]
    assert places[:3] == [(1, 0), (0, 0), (0, 1)]
    assert places[3] == (0, 1)  # 0 + 2 may share a GPU, 2 + 2 may not
    assert places[4] in {(1, 0), (0, 0)}


def test_pack_labels_by_measured_pairs_too_and_puts_no_third_job_on_a_gpu():
    jobs = [job(0.1, configurations=(HALF, OPPORTUNISTIC, ONE)) for _ in range(4)]
    instance = cluster(jobs, (1,), (HALF, OPPORTUNISTIC, ONE))
    light = instance.with_mechanisms(Interference(np.full((1, 4, 4), 1.01)))
    heavy = instance.with_mechanisms(Interference(np.full((1, 4, 4), 1.5)))
    assert sum(each is not None for each in held(light, Pack())) == 2
    assert sum(each is not None for each in held(heavy, Pack())) == 1


def test_fill_goes_to_the_guaranteed_job_whose_gaps_are_filled_more():
    """Of 0.4 idle time 0.9 is filled, of 0.7 only 0.1; the number 0.85 would say the other way round."""
    jobs = [job(0.6, weight=0.1), job(0.3, weight=0.1), job(0.9)]
    instance = cluster(jobs, (2,))
    table = replace(instance.find("shares"), filled=np.array([[0.9], [0.1], [1.0]]))
    assert held(instance, Fill())[2] == ("Vx0.4", 0, 1)
    assert held(instance.with_mechanisms(table), Fill())[2] == ("Vx0.4", 0, 0)


def test_fill_lets_a_job_share_as_soon_as_its_application_is_profiled():
    """Both run alone for 100 s, one GPU each; then the lower class fills the idle time of the other one."""
    shares = (GUARANTEED, OPPORTUNISTIC, ONE)
    jobs = [job(0.5, weight=0.1, configurations=shares), job(0.3, configurations=shares)]
    instance = cluster(jobs, (2,), shares)
    instance = instance.with_mechanisms(replace(instance.find("shares"), profile_s=100.0))
    assert [each[0] for each in held(instance, Fill())] == ["Vx1", "Vx1"]
    after = held(instance, Fill(), until_s=100.0)
    assert [each[0] for each in after] == ["Vx0.6!", "Vx0.4"]
    assert after[0][1:] == after[1][1:]


def test_fill_and_pack_give_a_job_to_which_only_shares_are_open_a_share_of_an_idle_gpu():
    low, high = Configuration("V", 1, share=0.3), Configuration("V", 1, share=0.3, priority=1)
    for shares, open_ones in (
        ((HALF, OPPORTUNISTIC), (HALF,)),
        ((low, high, GUARANTEED), (high,)),
        ((GUARANTEED, OPPORTUNISTIC), (GUARANTEED,)),
    ):
        instance = cluster([job(0.5, configurations=open_ones)], (1,), (*shares, ONE))
        for policy in (Fill(), Pack()):
            assert held(instance, policy) == [(open_ones[0].name, 0, 0)]


def test_pack_takes_the_shortest_job_first():
    jobs = [job(0.5, epochs=500.0, configurations=(HALF, ONE)), job(0.9, epochs=100.0, configurations=(HALF, ONE))]
    result = simulate(cluster(jobs, (1,), (HALF, ONE)), Pack(most=0, light=1.0))
    assert result.start_s.tolist() == [100.0, 0.0]


@pytest.mark.parametrize("name", ["antman", "fill", "pack"])
def test_no_job_waits_for_ever_whichever_shares_it_may_use(name):
    """Shares that may not fit together, in one priority or several, on 30 clusters of one or two GPUs."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        parts = rng.choice([0.3, 0.4, 0.5, 0.6, 0.7, 0.9], 3, replace=False)
        shares = [Configuration("V", 1, share=part, priority=int(rng.integers(0, 3))) for part in parts.tolist()]
        there = (*shares, ONE, TWO)
        jobs = []
        for _ in range(8):
            open_ones = tuple(c for c in there[:4] if rng.random() < 0.4) or (shares[0],)
            label, weight = bool(rng.random() < 0.5), float(rng.uniform(0.0, 0.002))
            at_s = 100.0 * len(jobs)
            jobs.append(job(0.5, at_s=at_s, opportunistic=label, weight=weight, configurations=open_ones))
        result = simulate(cluster(jobs, (int(rng.integers(1, 3)),), there), make_policy(name))
        assert np.all(np.isfinite(result.completion_s))
