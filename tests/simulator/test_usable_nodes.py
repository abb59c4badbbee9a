"""A node that is up, one that is free and one that is busy are three things: nothing is placed on one that is down."""

import importlib

import numpy as np
import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.free_capacity import measure
from gpusched_env.simulator.state import State
from instances import random_instance

module = importlib.import_module("gpusched_env.simulator.policy_run")


class NodeDown(State):
    """A run in which the second node is down from the start to the end."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.board.nodes[1, [at.USABLE, at.FREE, at.OLD_FREE]] = 0
        measure(self.board)


@pytest.mark.parametrize(
    "name", ["edf", "edf:preemptive", "greedy", "random-greedy:fill", "sts", "sts-x", "las", "atc"]
)
def test_nothing_is_placed_on_a_node_that_is_down(name, monkeypatch):
    instance = random_instance(5, nodes=4, kinds=True, equal=True)
    up = module.simulate(instance, make_policy(name))
    monkeypatch.setattr(module, "State", NodeDown)

    def check(state: State) -> None:
        nodes = state.board.nodes
        assert nodes[1, at.FREE] == nodes[1, at.USABLE] == 0
        assert nodes[1, at.NODE_GPUS] == instance.nodes[1].gpus

    down = module.simulate(instance, make_policy(name), on_round=check)
    assert 1 in set(up.intervals()["node"])
    assert set(down.intervals()["node"]) <= {0, 2, 3}
    assert np.isfinite(down.completion_s).all()
