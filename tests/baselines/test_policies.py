"""The decisions of each reference policy, on small instances."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import (
    CapacityCurve,
    CarbonScaler,
    DispatchPolicy,
    Greedy,
    LocalSearch,
    PathRelinking,
    PauseByPrice,
    RandomGreedy,
    SlackSlice,
    StartByPrice,
    Sts,
    TimeSlice,
    Tiresias,
    make_policy,
    policy_descriptions,
    policy_names,
    usual_policy_names,
)
from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_baselines.registry import FAITHFUL, FORMER, GAVEL_OBJECTIVES, POLICIES, ablation_names
from gpusched_baselines.rollout_policy import RolloutPolicy
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_baselines.self_tuning import SelfTunedStsX
from gpusched_env import (
    ActiveJobs,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    Node,
    Policy,
    load_scenario,
    make_instance,
    simulate,
)
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.policy import memory_columns
from instances import HOUR, random_instance, three_jobs
from policies import quick_policy
from refusals import refused

BY_PRICE = StartByPrice | PauseByPrice | CarbonScaler | CapacityCurve


def first_round(instance, policy: Policy, seed: int = 0) -> State:
    state = begin_run(instance, preemption=policy.preemption)
    policy.decide(state.view, np.random.default_rng(seed))
    return state


def held(state: State) -> list[tuple[int, int]]:
    return [(int(row[0]), int(row[1])) for row in np.nan_to_num(state.view.jobs[:, [at.CONFIG, at.NODE]], nan=-1)]


def test_every_policy_has_a_source_and_how_faithful_it_is_and_no_two_have_one_place_among_colours():
    found = {word: {name for name, shipped in POLICIES.items() if shipped.faithful == word} for word in FAITHFUL}
    assert set().union(*found.values()) == set(POLICIES)
    assert all((shipped.source == "own") == (shipped.faithful == "own") for shipped in POLICIES.values())
    assert {"fifo", "edf", "priority", "greedy", "edf:mean", "slurm-backfill", "gavel:las"} <= found["conformed"]
    assert {"sts", "sts:published", "random-greedy", "multifactor", "gavel:las-agnostic"} <= found["modelled"]
    assert {"cap:tiers", "cap:thresholds", "capacity-curve", "cells-fifo"} <= found["named after"]
    assert {"sts-x", "sts-x:no-waiting", "greedy:fill", "edf:preemptive", "edf:conditional-mean"} <= found["own"]
    places = [shipped.style for shipped in POLICIES.values() if shipped.style is not None]
    assert len(set(places)) == len(places) > 3


def test_every_name_makes_a_policy_of_that_name():
    for name in policy_names():
        assert make_policy(name).name == name
        assert policy_descriptions()[name]
    with refused("policy", "nope", "one of .*fifo, edf"):
        make_policy("nope")


def test_what_stands_before_a_colon_is_a_policy_or_a_group_of_several_and_no_name_is_a_file_or_an_agent():
    for rule, _, option in (name.partition(":") for name in POLICIES if ":" in name):
        assert rule in POLICIES or sum(name.startswith(f"{rule}:") for name in POLICIES) > 2, rule
        assert re.fullmatch(r"[a-z-]+", option), option
    assert not [name for name in POLICIES if re.match(r"(agent|sb3|tuned):|.*\.py", name)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((f"gavel-{name}", f"gavel:{name}") for name in (*GAVEL_OBJECTIVES, "las-packed", "cost")),
        ("gavel-las:agnostic", "gavel:las-agnostic"), ("srpt-worst", "sept:worst"), ("edf-mean", "edf:mean"),
        ("edf-conditional-mean", "edf:conditional-mean"), ("random-greedy-fill", "random-greedy:fill"),
        ("sts-published", "sts:published"), ("sts-x-tuned", "sts-x:tuned"), ("atc-co-located", "atc:co-located"),
        ("zeus-limit-balanced", "zeus-limit:balanced"), ("time-slice-slack", "time-slice:slack"),
        ("cap-uniform", "cap:uniform"),
    ],
)  # fmt: skip
def test_a_former_name_is_refused_and_the_present_one_is_named_first(old, new):
    with refused("policy", old, f"one of {new}, ") as caught:
        make_policy(old)
    assert str(caught.value).endswith(f"did you mean {new}?")


def test_a_former_name_that_is_not_like_the_present_one_is_refused_with_it():
    assert not set(FORMER) & set(POLICIES)
    for old, new in FORMER.items():
        assert new in POLICIES
        with refused("policy", old, f"{new}, its name now$"):
            make_policy(old)


def test_the_usual_policies_are_registered_ones_without_variants_and_an_ablation_stands_in_no_list():
    usual = usual_policy_names()
    assert set(usual) < set(policy_names())
    assert {"edf", "edf:preemptive", "random-greedy", "sts", "sts-x"} <= set(usual)
    assert not {"edf:mean", "random-greedy:mean", "local-search", "path-relinking"} & set(usual)
    ablations = ablation_names("sts-x")
    assert [make_policy(name).name for name in ablations] == list(ablations)
    assert not set(ablations) & {*policy_names(), *usual_policy_names(), *policy_descriptions()}
    assert set(POLICIES) == {*policy_descriptions()}.union(*map(ablation_names, policy_names()))


def test_the_record_of_a_policy_is_true():
    for name, shipped in POLICIES.items():
        policy = shipped.make()
        assert shipped.slow == (getattr(policy, "constructions", 0) >= 1000), name
        interpreted = (
            isinstance(policy, TimeSlice | SlackSlice | RolloutPolicy | SelfTunedStsX | BY_PRICE)
            or getattr(policy, "solver", "exact") != "exact"
        )
        assert shipped.compiled == (not interpreted), name
        expects = "mean" in getattr(policy, "epochs", "worst") or getattr(policy, "work", "") == "expected"
        expects &= not getattr(policy, "co_located", False)  # its twin would plan with co-runners too
        expects &= not isinstance(policy, BY_PRICE)  # which knows of a length what its source does
        assert (shipped.worst_case is not None) == expects, name
        assert {shipped.ablation_of, shipped.worst_case} - {None} <= set(POLICIES), name


def test_a_dispatch_rule_is_a_function_of_the_active_jobs():
    """Least worst-case execution time first: C (2 epochs) before A (4); B ties with C and comes first by index."""
    rule = DispatchPolicy("shortest", lambda jobs: jobs.min_execution_s)
    assert held(first_round(three_jobs(), rule)) == [(-1, -1), (0, 1), (1, 0)]


def test_a_rule_sees_what_a_policy_may_know():
    seen: list[ActiveJobs] = []

    def rule(jobs: ActiveJobs):
        seen.append(jobs)
        return jobs.due_s

    first_round(three_jobs(), DispatchPolicy("look", rule))
    jobs = seen[0]
    assert jobs.epochs_left.tolist() == [4, 2, 2]
    assert jobs.expected_epochs_left.tolist() == [3, 2, 2]
    assert jobs.pressure / HOUR == pytest.approx([8 / 3 - 3.5, 4 / 3 - 10, 4 / 3 - 1.5])
    assert jobs.tardiness_weight_eur_per_s.tolist() == [0.001, 0.002, 0.003]


def test_random_greedy_never_takes_a_worse_round_than_greedy():
    for seed in range(20):
        instance = random_instance(seed, span_s=0.0)
        costs = []
        for policy in (Greedy(), RandomGreedy(constructions=50)):
            state = first_round(instance, policy, seed)
            view = state.view
            costs.append(proxy_cost(view.board, view.active))
        assert costs[1] <= costs[0]


def test_sts_keeps_due_dates_that_can_be_kept_with_gpus_for_all():
    for seed in range(10):
        instance = random_instance(seed, jobs=3, nodes=12, span_s=0.0)
        fastest = (instance.jobs.seconds_per_epoch.min(axis=1)) * instance.jobs.max_epochs
        nodes = tuple(replace(node, gpus=4) for node in instance.nodes)
        in_time = replace(instance, nodes=nodes, jobs=replace(instance.jobs, due_s=fastest * 1.2))
        assert simulate(in_time, Sts()).late_jobs == 0


@pytest.mark.parametrize("nodes", [2, 150])
def test_after_any_policy_jobs_can_still_be_placed(nodes):
    """After a policy's round the state is consistent: the configurations that fit are those of the free GPUs."""
    instance = random_instance(7, jobs=10, nodes=nodes, span_s=0.0)
    for name in policy_names():
        policy = quick_policy(name)
        state = begin_run(instance, memory_columns=memory_columns(policy, instance))
        policy.decide(state.view, np.random.default_rng(0))
        measured = state.view.capacity.copy()
        measure(state.view.board)
        np.testing.assert_array_equal(state.view.capacity, measured, err_msg=name)


def test_a_policy_keeps_nothing_of_a_run():
    for name in policy_names():
        policy = quick_policy(name)
        first = simulate(random_instance(1), policy)
        simulate(random_instance(2), policy)
        again = simulate(random_instance(1), policy)
        np.testing.assert_array_equal(first.log, again.log)


@pytest.mark.parametrize("policy", [policy(constructions=10) for policy in (LocalSearch, PathRelinking, RandomGreedy)])
def test_the_same_seed_gives_the_same_run_and_another_one_another(policy):
    costs = [simulate(random_instance(11, jobs=30), policy, seed=seed).total_eur for seed in (5, 5, 6, 7, 8)]
    assert costs[0] == costs[1]
    assert len(set(costs)) > 1


def test_decision_time_is_part_of_the_run(monkeypatch):
    class Slow(DispatchPolicy):
        def decide(self, view, rng):
            now_s[0] += 2.0
            super().decide(view, rng)

    now_s = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now_s[0])
    result = simulate(three_jobs(), Slow("slow", "due"))
    assert result.decision_s == 2.0 * result.rounds


DRAWN = ("random-greedy:fill", "random-greedy:mean", "random-greedy:conditional-mean", "local-search", "path-relinking")
"""Their random numbers depend on how many configurations there are."""


@pytest.mark.parametrize("name", [name for name in policy_names() if name not in (*DRAWN, "sts:ipopt", "sts:highs")])
def test_gpus_that_no_job_may_use_change_nothing(name):
    """Eight nodes of a type without a configuration for any job are no capacity, and no alternative to other types."""
    plain = make_instance(load_scenario("default").replace({"jobs.count": 12, "cluster.nodes": 3}), 1)
    nobody = np.full((len(plain.jobs), 1), np.inf)
    idle = replace(
        plain,
        gpu_types=(*plain.gpu_types, replace(plain.gpu_types[0], name="Z")),
        nodes=(*plain.nodes, *[Node("Z", plain.nodes[0].gpus)] * 8),
        configurations=(*plain.configurations, Configuration("Z", 1)),
        jobs=replace(plain.jobs, seconds_per_epoch=np.hstack([plain.jobs.seconds_per_epoch, nobody])),
    )
    costs = [simulate(instance, quick_policy(name), record=False).total_eur for instance in (plain, idle)]
    assert costs[1] == pytest.approx(costs[0], rel=1e-9)


A, B, C = range(3)

X1, X2 = range(2)


def test_a_job_that_holds_something_keeps_it():
    """B holds node 0 with both GPUs, though one would be cheaper; A takes what is left, in time or not, and C waits."""
    state = begin_run(three_jobs())
    view = state.view
    assert view.place(B, X2)
    dispatch(view.board, np.array([B, A, C]), np.array([2.0, 4.0, 2.0]))
    assert view.jobs[:, at.CONFIG].tolist() == [X1, X2, -1]


CERTAIN = EpochDistribution.certain()

GPU = GpuType("V", gpu_power_w=250.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=2)

ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def completed(jobs: list[tuple[float, float, Configuration]], limits: tuple[float, ...]) -> list[float]:
    """Run jobs (submission, seconds, configuration) on a node of two GPUs; return when they are complete."""
    made = [Job(at, 1e6, 0.001, long_s, CERTAIN, long_s, {config: 1.0}) for at, long_s, config in jobs]
    instance = Instance.from_jobs([GPU], [Node("V", 2)], made, (ONE, TWO))
    return simulate(instance, Tiresias(limits_gpu_s=limits)).completion_s.tolist()


def test_a_new_job_preempts_one_that_has_had_more_gpu_time_than_the_limit():
    """The first has had 200 GPU-s at 100 s; the second comes at 150 s, takes 100 s, and the first goes on."""
    assert completed([(0.0, 300.0, TWO), (150.0, 100.0, TWO)], (200.0,)) == pytest.approx([400.0, 250.0])


def test_in_a_queue_jobs_that_run_go_first_and_limits_must_rise():
    """Below the limit the second waits; else it runs from 100 s on, and stays when both are beyond it, at 200 s."""
    assert completed([(0.0, 300.0, TWO), (50.0, 300.0, TWO)], (1e9,)) == pytest.approx([300.0, 600.0])
    assert completed([(0.0, 300.0, TWO), (50.0, 300.0, TWO)], (200.0,)) == pytest.approx([600.0, 400.0])
    with refused("limits_gpu_s", [2.0, 1.0], "rising"):
        Tiresias(limits_gpu_s=(2.0, 1.0))
    assert replace(Tiresias(), limits_gpu_s=()).limits_gpu_s == ()


def test_a_job_that_was_preempted_waits_behind_those_that_wait_longer():
    """Job 0 waits from 100 s on, 1 from 250 s, behind 2; 0 runs at 300 s, and waits behind 1 when 3 preempts it."""
    jobs = [(0.0, 200.0, TWO), (90.0, 200.0, TWO), (250.0, 50.0, TWO), (310.0, 50.0, TWO)]
    assert completed(jobs, (200.0,)) == pytest.approx([500.0, 410.0, 300.0, 360.0])
