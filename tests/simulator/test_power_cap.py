"""A site's power cap: worked out by hand on two jobs of 1 kW each, and rules that hold for every run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from first_rounds import begin_run
from gpusched_baselines import make_policy
from gpusched_env import Configuration, Instance, Rent, load_scenario, make_instance, simulate
from gpusched_env.audit import audit
from gpusched_env.mechanisms.cap.kernels import grown_kw
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.saved_power.model import SavedPower
from gpusched_env.model import peak_kw
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernels import can_place_on, can_resize, place, show_nodes
from run_files import audited
from scripted import Scripted
from small_instances import hours_job, kilowatt_cluster

HOUR = 3600.0
ONE = Configuration("V", 1)


def two_jobs(site: PowerCap | None, *, base_w: float = 0.0, gpu_hour_eur: float = 0.0) -> Instance:
    """Make two jobs of 1 h, due after 1 h and 9 h, on a node of two GPUs that cost 1 €/h each while busy."""
    made = kilowatt_cluster([hours_job(1.0, {ONE: 1.0}), hours_job(9.0, {ONE: 1.0})], [2], [ONE], base_w)
    return made.with_mechanisms(Rent(gpu_hour_eur), *(() if site is None else (site,)))


def constant(kilowatts: float, soft: float | None = None) -> PowerCap:
    return PowerCap((0.0,), (kilowatts,), soft_eur_per_kwh=soft)


def test_a_job_that_does_not_fit_under_the_cap_waits():
    result = simulate(two_jobs(constant(1.5)), make_policy("edf"))
    assert result.start_s.tolist() == [0.0, HOUR]
    assert result.cap_forced_s == 0.0


def test_the_base_power_of_a_node_counts_when_it_is_switched_on():
    """The first job draws 1.5 kW with the node, the second 1 kW more."""
    assert simulate(two_jobs(constant(2.4), base_w=500.0), make_policy("edf")).start_s.tolist() == [0.0, HOUR]
    assert simulate(two_jobs(constant(2.5), base_w=500.0), make_policy("edf")).start_s.tolist() == [0.0, 0.0]


def test_a_job_may_go_to_the_node_that_is_on_and_not_to_one_whose_base_power_is_too_much():
    """The first job draws 1.5 kW with its node. On that node the second draws 1 kW, on the other 1.5 kW."""
    made = kilowatt_cluster([hours_job(9.0, {ONE: 1.0}) for _ in range(2)], [2, 2], [ONE], 500.0)
    state = State(made.with_mechanisms(constant(2.6)))
    state.advance()
    state.begin_round(False)
    board = state.board
    assert place(board, 0, 0)
    on = int(board.jobs[0, at.NODE])
    preferred = board.jobs[1, at.PREFERRED_NODE]
    assert [can_place_on(board, 1, 0, node) for node in (on, 1 - on)] == [True, False]
    assert board.jobs[1, at.PREFERRED_NODE] == preferred


@pytest.mark.parametrize(
    ("jobs", "added_kw", "allowed"), [(1, [0.0, 1.0], [True, True]), (2, [1.0, 2.0], [True, False])]
)
def test_a_job_that_leaves_a_share_adds_the_power_of_the_gpus_that_were_idle(jobs, added_kw, allowed):
    """Alone it takes the shared GPU along; else the other job keeps that one. The cap has room for 2.5 GPUs."""
    half, two = Configuration("V", 1, share=0.5), Configuration("V", 2)
    every = [hours_job(9.0, {half: 2.0, ONE: 1.0, two: 0.7}) for _ in range(jobs)]
    state = begin_run(kilowatt_cluster(every, [3], [half, ONE, two]).with_mechanisms(constant(2.5)))
    for each in range(jobs):
        assert place(state.board, each, 0)
    assert [grown_kw(state.board, 0, config) for config in (1, 2)] == pytest.approx(added_kw)
    assert [can_resize(state.board, 0, config) for config in (1, 2)] == allowed


def test_other_nodes_are_shown_with_the_power_of_what_is_not_free_there_or_without():
    made = kilowatt_cluster([hours_job(9.0, {ONE: 1.0})], [2, 2], [ONE], 500.0)
    state = State(made.with_mechanisms(constant(2.6)))
    state.advance()
    state.begin_round(False)
    board = state.board
    kept, shown = board.nodes.copy(), board.nodes.copy()
    shown[0, at.FREE] = 0
    show_nodes(board, shown, True)
    assert board.clock[at.KW] == 2.5
    show_nodes(board, shown, False)
    assert (board.nodes[:, at.FREE].tolist(), board.clock[at.KW]) == ([0, 2], 2.5)
    show_nodes(board, kept, True)
    show_nodes(board, shown, False)
    assert (board.nodes[:, at.FREE].tolist(), board.clock[at.KW]) == ([0, 2], 0.0)
    assert place(board, 0, 0)
    assert board.jobs[0, at.NODE] == 1


def test_what_a_policy_leaves_above_a_cap_that_falls_is_paused_with_least_pressure_first():
    """At 0.5 h the cap falls to 1 kW for an hour: the second job, due later, is paused for half an hour at least.

    The first ends at 1 h, and the second goes on then: it was throttled for half an hour.
    """
    cap = PowerCap.with_events(2.0, [(0.5 * HOUR, HOUR, 0.5, 0.0)])
    result = simulate(two_jobs(cap), make_policy("edf"))
    assert result.completion_s.tolist() == [HOUR, 1.5 * HOUR]
    assert result.cap_forced_s == 0.5 * HOUR
    assert result.switches.tolist() == [0, 2]


def test_a_throttled_job_gets_the_lowest_limit_of_its_gpus():
    """At 0.5 h the cap falls from 2 to 1.7 kW: the second job's GPU gets 0.6 kW, and the first goes on as it is."""
    limits = [replace(ONE, power_limit=limit) for limit in (0.8, 0.6, 0.7)]
    times = {ONE: 1.0} | dict.fromkeys(limits, 20.0)
    made = kilowatt_cluster([hours_job(1.0, times), hours_job(30.0, times)], [2], [ONE, *limits])
    cap = PowerCap((0.0, 0.5 * HOUR), (2.0, 1.7))
    drawn = []

    def look(state: State) -> None:
        drawn.append((state.board.clock[at.NOW] / HOUR, state.board.clock[at.KW]))

    simulate(
        made.with_mechanisms(SavedPower(((0.0, 0.2, 0.4, 0.3),))).with_mechanisms(cap),
        make_policy("edf"),
        on_round=look,
    )
    assert drawn[:3] == [(0.0, 2.0), (0.5, pytest.approx(1.6)), (1.0, pytest.approx(0.6))]


def test_the_cap_is_kept_between_rounds_too():
    """With rounds every two hours, there is one at 0.5 h all the same, when the cap falls, and none when it rises."""
    cap = PowerCap.with_events(2.0, [(0.5 * HOUR, HOUR, 0.5, 0.0)])
    result = simulate(replace(two_jobs(cap), decision_interval_s=2.0 * HOUR), make_policy("edf"))
    assert result.completion_s.tolist() == [HOUR, 2.5 * HOUR]
    assert result.cap_forced_s == 1.5 * HOUR


def test_power_above_a_soft_cap_costs_by_the_kilowatt_hour_and_is_split_by_what_jobs_are_charged():
    """Two kWh at 1 €, and for the hour 0.5 kW above 1.5 kW at 4 €/kWh."""
    result = simulate(two_jobs(constant(1.5, 4.0)), make_policy("edf"))
    assert result.start_s.tolist() == [0.0, 0.0]
    assert result.over_cap_eur == pytest.approx(2.0)
    assert result.energy_eur == pytest.approx(4.0)
    assert result.job_energy_eur.tolist() == pytest.approx([2.0, 2.0])
    assert result.energy_kwh == pytest.approx(2.0)


def test_held_gpus_are_billed_by_the_hour_beside_their_energy():
    result = simulate(two_jobs(None, gpu_hour_eur=3.0), make_policy("edf"))
    assert result.gpu_eur == pytest.approx(6.0)
    assert result.energy_eur == pytest.approx(8.0)
    assert result.job_energy_eur.tolist() == pytest.approx([4.0, 4.0])
    assert result.energy_kwh == pytest.approx(2.0)


def test_policies_see_the_cap_and_the_next_one_from_its_notice_on():
    cap = PowerCap((0.0, 0.5 * HOUR, 0.75 * HOUR), (2.0, 1.0, 2.0), (0.0, 0.25 * HOUR, 0.5 * HOUR))
    seen = []

    class Watch(type(make_policy("edf"))):
        __slots__ = ()

        def decide(self, view, rng):
            clock = view.clock
            seen.append([clock[c] for c in (at.NOW, at.CAP_KW, at.NEXT_CAP_S, at.NEXT_CAP_KW, at.KW)])
            super().decide(view, rng)

    simulate(two_jobs(cap), Watch("watch", "due"))
    assert seen == [
        [0.0, 2.0, np.inf, 2.0, 0.0],
        [0.25 * HOUR, 2.0, 0.5 * HOUR, 1.0, 2.0],
        [0.5 * HOUR, 1.0, 0.75 * HOUR, 2.0, 2.0],
        [0.75 * HOUR, 2.0, np.inf, 2.0, 1.0],
        [HOUR, 2.0, np.inf, 2.0, 1.0],
    ]


def test_of_several_changes_of_the_cap_the_next_is_seen_and_those_to_come_are_not_on_the_board():
    clock = State(two_jobs(PowerCap((0.0, HOUR, 2.0 * HOUR), (2.0, 1.0, 1.5), (0.0, 0.0, 0.0)))).board.clock
    assert (clock[at.NEXT_CAP_S], clock[at.NEXT_CAP_KW]) == (HOUR, 1.0)
    one, other = (State(two_jobs(PowerCap((0.0, HOUR), (2.0, kw)))) for kw in (1.0, 1.5))
    for name, array in one.board.__getstate__().items():
        if name != "facts":
            np.testing.assert_array_equal(array, getattr(other.board, name))


def capped(seed: int, share: float, *, notice_s: float = 0.0, scenario: str = "default") -> Instance:
    """Make a small workload whose cap is a part of the peak and falls by a quarter every few hours."""
    values = {"jobs.count": 8, "cluster.nodes": 3, "arrivals.kind": "exponential", "arrivals.lambda_s": 2000.0}
    made = make_instance(load_scenario(scenario).replace(values | {"epochs.library_size": 2}), seed)
    events = [(4000.0 + 20_000.0 * i, 10_800.0, 0.25, notice_s) for i in range(40)]
    return made.with_mechanisms(PowerCap.with_events(share * peak_kw(made), events))


POLICIES = ("edf", "edf:preemptive", "greedy:fill", "sts", "sts-x")


@pytest.mark.parametrize(("name", "scenario"), [*((name, "default") for name in POLICIES), ("sts-x", "sharing")])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0.5, 0.9))
def test_the_site_is_never_above_a_hard_cap_after_a_round(name, scenario, seed, share):
    def check(state: State) -> None:
        clock = state.board.clock
        nodes = state.board.nodes
        drawn = state.board.facts.kilowatts[nodes[:, at.NODE_TYPE], nodes[:, at.USABLE] - nodes[:, at.FREE]].sum()
        assert clock[at.KW] == pytest.approx(drawn, abs=1e-9)
        assert drawn <= clock[at.CAP_KW] * (1.0 + 2e-9)

    instance = capped(seed, share, scenario=scenario)
    simulate(instance, make_policy(name), on_round=check)


@pytest.mark.parametrize("name", POLICIES)
def test_a_cap_above_the_peak_changes_nothing_but_adds_rounds_at_its_changes(name):
    made = replace(capped(3, 0.7), mechanisms=())
    free = simulate(made, make_policy(name))
    wide = simulate(made.with_mechanisms(constant(peak_kw(made))), make_policy(name))
    assert wide.cap_forced_s == 0.0
    for field in ("energy_eur", "tardiness_eur", "rounds"):
        assert getattr(free, field) == getattr(wide, field)
    np.testing.assert_array_equal(free.log, wide.log)


@pytest.mark.parametrize("name", POLICIES)
def test_the_past_does_not_depend_on_caps_that_policies_are_not_told_of(name):
    made = capped(5, 0.6)
    caps = made.of(PowerCap).cap_kw
    lower = made.with_mechanisms(replace(made.of(PowerCap), cap_kw=(*caps[:3], *(0.9 * kw for kw in caps[3:]))))
    time_s = made.of(PowerCap).start_s[3]
    first, second = (simulate(each, make_policy(name)).log for each in (made, lower))
    first, second = (log[log[:, at.LOG_START] < time_s][:, : at.LOG_END] for log in (first, second))
    np.testing.assert_array_equal(first[np.lexsort(first.T)], second[np.lexsort(second.T)])


@pytest.mark.parametrize("soft", [None, 0.7])
@pytest.mark.parametrize("name", ["edf", "sts-x"])
def test_the_audit_agrees_and_finds_a_cap_that_was_not_kept(tmp_path, name, soft):
    made = capped(7, 0.5)
    made = made.with_mechanisms(Rent(2.0), replace(made.of(PowerCap), soft_eur_per_kwh=soft))
    result = simulate(made, make_policy(name))
    assert audited(result, tmp_path / "run") == []
    text = (tmp_path / "run" / "instance.json").read_text(encoding="utf-8")
    kilowatts = ",".join(repr(0.5 * kw) for kw in made.of(PowerCap).cap_kw)
    before = ",".join(repr(kw) for kw in made.of(PowerCap).cap_kw)
    assert before in text
    (tmp_path / "run" / "instance.json").write_text(text.replace(before, kilowatts), encoding="utf-8")
    found = {difference.what for difference in audit(tmp_path / "run")}
    assert ("power of all nodes, and cap [kW]" if soft is None else "over_cap_eur") in found


def test_a_scripted_policy_cannot_place_above_the_cap():
    script = Scripted({0.0: {0: (0, 0, None), 1: (0, 0, None)}})
    with pytest.raises(AssertionError, match="job 1 does not fit"):
        simulate(two_jobs(constant(1.0)), script)
