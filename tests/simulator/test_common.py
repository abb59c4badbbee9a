"""What runs have in common is worked out once for each cluster."""

from dataclasses import replace

import numpy as np

from gpusched_env import load_scenario
from gpusched_env.simulator import Board, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import state as module
from gpusched_env.simulator.builds import FORCED
from gpusched_env.simulator.state import MOST_CLUSTERS, Common
from gpusched_env.workload import InstanceMaker


def boards(state: State) -> list[np.ndarray]:
    board = state.board
    rates = [board.node_rate, board.planning_rate, board.least_rate]
    return [*rates, *board.facts.__getstate__().values()]


def test_runs_of_one_cluster_have_the_same_facts_and_rates_worked_out_once(monkeypatch):
    maker, common, worked_out = InstanceMaker(load_scenario("tiny")), Common(), []
    own = module.facts_of
    monkeypatch.setattr(module, "facts_of", lambda *arguments: worked_out.append(1) or own(*arguments))
    states = [State(maker.make(seed), common=common) for seed in range(3)]
    assert len(worked_out) == 1
    for state in states:
        assert all(one is other for one, other in zip(boards(state), boards(states[0]), strict=True))
        for one, other in zip(boards(state), boards(State(state.instance)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_cluster_or_price_has_facts_and_rates_of_its_own():
    instance, common = InstanceMaker(load_scenario("tiny")).make(0), Common()
    others = [
        instance,
        replace(instance, energy_price_eur_per_kwh=1.0),
        replace(instance, pue=2.0),
        replace(instance, nodes=instance.nodes[:1]),
    ]
    for other in [*others, *others]:
        for one, alone in zip(boards(State(other, common=common)), boards(State(other)), strict=True):
            np.testing.assert_array_equal(one, alone)


def test_jobs_that_share_gpus_with_interference_bring_facts_of_their_own():
    maker, common = (
        InstanceMaker(load_scenario("sharing").replace({"jobs.count": 5, "sharing.interference": "measured"})),
        Common(),
    )
    for seed in range(4):
        instance = maker.make(seed)
        assert instance.interference is not None
        for one, alone in zip(boards(State(instance, common=common)), boards(State(instance)), strict=True):
            np.testing.assert_array_equal(one, alone)


def test_no_more_than_so_many_clusters_are_kept():
    instance, common = InstanceMaker(load_scenario("tiny")).make(0), Common()
    kept = []
    for _ in range(MOST_CLUSTERS + 3):
        kept.append(replace(instance, nodes=(*instance.nodes,)))  # alive: each has nodes of its own
        State(kept[-1], common=common)
    assert len(common._clusters) <= MOST_CLUSTERS


def test_constants_of_mechanisms_are_in_the_builds_that_have_them(monkeypatch):
    monkeypatch.setenv(FORCED, "")
    common, sharing = Common(), load_scenario("sharing").replace({"jobs.count": 5})
    _, plain, _ = common.cluster(InstanceMaker(load_scenario("tiny")).make(0), Board)
    _, shared, _ = common.cluster(InstanceMaker(sharing).make(0), Board)
    assert set(plain.__getstate__()) == {"configs", "shares", "kilowatts", "planned"}
    assert shared.has_shares
    assert shared.sharing.shape == (at.SHARING_COLUMNS,)
