"""Every build of the compiled code gives the same, to the last bit, on what the smallest one covers."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import recorded_runs as recorded
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, Rent, Scenario, Tenants
from gpusched_env.errors import InputError
from gpusched_env.mechanisms import BUILDS
from gpusched_env.model import Cells, Instance, Tenant
from gpusched_env.named_arrays import build as built
from gpusched_env.simulator import Board, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import FORCED, common_build
from gpusched_env.simulator.run import Facts
from gpusched_env.workload import make_instance
from gpusched_experiments.report.warm_up import tiny_instance, warm_up_steps
from gpusched_operations.forecast import ForecastSettings, forecast
from gpusched_operations.live.env import LiveSlurmEnv
from instances import by_utilisation, random_instance, with_host_memory, with_switching
from simulated_cluster import SimulatedCluster
from vector_twins import assert_same, few_jobs, helped, priced, profiled, random_actions

BOARDS = [built(Board, names) for names in BUILDS.values()]
PlainBoard, NodesBoard, EnergyBoard, SharedBoard, Everything = BOARDS
POLICIES = ("edf", "cells-fifo", "sts", "sts-x")


def of_random(**more: Any) -> Instance:
    return random_instance(3, jobs=8, **more)


INSTANCES = {
    "plain": (PlainBoard, of_random),
    "nodes": (NodesBoard, lambda: make_instance(helped(), 1)),
    "spread": (NodesBoard, lambda: of_random(spread=True)),
    "prices, cap and limits": (EnergyBoard, lambda: tiny_instance(energy=True)),
    "pairs": (Everything, lambda: of_random(kinds=True, interference=True)),
    "shares of several": (SharedBoard, lambda: of_random(blocks=(1, 2))),
    "utilisation": (SharedBoard, lambda: by_utilisation(of_random(blocks=(1,)))),
    "switching": (SharedBoard, lambda: with_host_memory(with_switching(of_random(), 3), 3)),
}
SCENARIOS: dict[str, tuple[type[Board], list[Scenario]]] = {
    "plain": (PlainBoard, [few_jobs()]),
    "nodes": (NodesBoard, [helped()]),
    "energy": (EnergyBoard, [few_jobs(), priced()]),
    "shared": (SharedBoard, [profiled()]),
}


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the values of `GPUSCHED_BUILD`, each while it holds."""

    def each() -> Iterator[str]:
        for build in ("", "everything"):
            monkeypatch.setenv(FORCED, build)
            yield build

    return each()


@pytest.mark.parametrize("name", INSTANCES)
def test_policies_environment_and_forecast_are_the_same_in_the_smallest_build_and_in_everything(name, builds):
    smallest, make = INSTANCES[name]
    instance, texts, arrays = make(), [], []
    for build in builds:
        assert type(State(instance).board) is (smallest if build == "" else Everything)
        of_policies = [recorded.of_policy(instance, policy) for policy in POLICIES]
        texts.append([of_policies, [recorded.of_episode(instance, more) for more in recorded.SETTINGS.values()]])
        arrays.append({"forecast": forecast_of(instance), "board": board_after(instance, 3)})
    assert texts[0] == texts[1]
    assert_same(*arrays)


def forecast_of(instance: Instance) -> dict[str, Any]:
    state, policy = State(instance, record=False), recorded.policy("edf")
    state.advance()
    made = forecast(state, policy, np.random.default_rng(0), ForecastSettings(samples=3))
    return {name: getattr(made, name) for name in made.__slots__ if isinstance(getattr(made, name), np.ndarray)}


def board_after(instance: Instance, rounds: int) -> dict[str, Any]:
    """Return all arrays that each build of the board has, after some rounds of EDF.

    One column is read where the costs of switching depend on the distance alone, and not the same in all builds.
    """
    state, policy = State(instance), recorded.policy("edf")
    for _ in range(rounds):
        state.advance()
        state.begin_round(policy.preemption)
        policy.decide(state.view, np.random.default_rng(0))
        state.commit_round()
    arrays = {name: array for name, array in state.board.__getstate__().items() if name in Board._fields}
    jobs = arrays["jobs"] if instance.jobs.resume_s is not None else np.delete(arrays["jobs"], at.LAST_NODES, axis=1)
    facts = {name: array for name, array in arrays["facts"].__getstate__().items() if name in Facts._fields}
    return arrays | {"facts": facts, "jobs": jobs}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("shared_features", [False, True])
def test_environments_at_once_are_the_same_in_the_smallest_build_of_all_and_in_everything(
    name, shared_features, builds
):
    smallest, scenarios = SCENARIOS[name]
    runs = []
    for build in builds:
        smallest = common_build({smallest, SharedBoard}) if shared_features and build == "" else smallest
        env = GpuClusterVectorEnv(3, scenarios, shared_features=shared_features)
        seen, rng = [env.reset(seed=4)], np.random.default_rng(1)
        assert {type(view.board) for view in env.views} == {smallest if build == "" else Everything}
        seen += [env.step(random_actions(env.action_masks(), rng)) for _ in range(40)]
        later = GpuClusterVectorEnv(3, scenarios, shared_features=shared_features)
        later.set_state(env.get_state())
        assert_same(later.observations(), env.observations())
        actions = random_actions(env.action_masks(), rng)
        assert_same(later.step(actions), env.step(actions))
        runs.append(seen)
    assert_same(*map(tuple, runs))


def test_environments_at_once_go_over_to_a_larger_build_when_an_instance_needs_it_and_stay(builds):
    plain, rented = make_instance(few_jobs(), 1), make_instance(few_jobs(), 2).with_mechanisms(Rent(1.0))
    kinds, runs = {}, []
    for build in builds:
        env = GpuClusterVectorEnv(2, instance=plain, autoreset_mode=AutoresetMode.DISABLED)
        seen, rng, kinds[build] = [env.reset(seed=0)], np.random.default_rng(1), []
        for given in (None, rented, plain):  # the first environment goes on in all of them
            options = {"instance": [plain, given], "reset_mask": np.array([False, True])}
            seen += [] if given is None else [env.reset(options=options)]
            seen += [env.step(random_actions(env.action_masks(), rng)) for _ in range(2)]
            kinds[build].append({type(view.board) for view in env.views})
        runs.append(tuple(seen))
    assert kinds == {"": [{PlainBoard}, {EnergyBoard}, {EnergyBoard}], "everything": [{Everything}] * 3}
    assert_same(*runs)


def test_a_live_environment_with_features_of_shared_gpus_has_the_build_that_writes_them(monkeypatch):
    monkeypatch.setenv(FORCED, "")
    more = {"instance": of_random(), "shared_features": True}
    live, simulated = LiveSlurmEnv(conf=SimulatedCluster(), **more), GpuClusterEnv(**more)
    seen = [env.reset(seed=0)[0]["options"] for env in (live, simulated)]
    np.testing.assert_allclose(seen[0], seen[1], rtol=0.0, atol=1e-6)
    assert {type(env.view.board) for env in (live, simulated)} == {SharedBoard}


@pytest.mark.parametrize("name", dict(warm_up_steps()))
def test_every_policy_agent_bound_and_environment_runs_in_the_smallest_build(name, monkeypatch):
    monkeypatch.setenv(FORCED, "")
    dict(warm_up_steps())[name]()


def test_arrays_of_mechanisms_that_a_run_lacks_are_empty_in_its_view(monkeypatch):
    monkeypatch.setenv(FORCED, "")
    view = State(of_random()).view
    assert [len(view.prices), len(view.quota), len(view.cells), len(view.hosts)] == [0, 0, 0, 0]
    for name in ("price_rows", "_prices", "has_prices"):
        with pytest.raises(AttributeError, match=name):
            getattr(view, name)


def test_copies_of_a_board_stay_of_its_build(monkeypatch):
    monkeypatch.setenv(FORCED, "")
    board = State(of_random()).board
    copies = [deepcopy(board), board.replaced(tau=board.tau.copy())]
    copies.append(board.placed(np.zeros(board.words, dtype=np.int64)))
    assert {type(copy) for copy in copies} == {PlainBoard}
    assert copies[1].tau is not board.tau
    assert copies[1].jobs is board.jobs


def test_a_mixture_of_mechanisms_takes_the_build_that_has_all(monkeypatch):
    monkeypatch.setenv(FORCED, "")
    assert common_build([PlainBoard, EnergyBoard]) is EnergyBoard
    assert common_build([NodesBoard, EnergyBoard]) is Everything
    assert [common_build([board, PlainBoard]) for board in BOARDS] == BOARDS
    shared = of_random(blocks=(1,)).with_mechanisms(Rent(1.0))
    assert type(State(shared).board) is Everything
    quotas = of_random().with_mechanisms(Tenants((Tenant("a", (Cells("T0", 1, 1),)),), "quota"))
    assert type(State(quotas).board) is Everything
    assert type(State(of_random().with_mechanisms(Tenants((Tenant("a"),)))).board) is PlainBoard


def test_another_value_of_the_setting_is_refused(monkeypatch):
    monkeypatch.setenv(FORCED, "all")
    with pytest.raises(InputError, match=r"GPUSCHED_BUILD = 'all'; allowed: everything, or nothing"):
        State(of_random())
