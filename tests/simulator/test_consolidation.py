"""Consolidation: a job leaves its previous node, if that is off, for one of its GPU type that is on.

By hand, on nodes of two GPUs: A holds a whole node at first and one GPU later, B one GPU of another node. So later A's
node has free GPUs for B, whose own node is off until B comes back to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from boards import board_of
from gpusched_env import Configuration, GpuType, Instance, Job, Node
from gpusched_env.mechanisms.shares.placement import slots
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import should_consolidate
from instances import HOUR
from small_instances import CERTAIN, kilowatt_cluster

ONE, TWO, HALF = Configuration("V", 1), Configuration("V", 2), Configuration("V", 1, share=0.5)
WAIT, ON_ONE, ON_TWO, ON_HALF, ON_TWO_NODES = range(5)
ACTIONS = 5


def cluster(*nodes: int, jobs: int = 2, restart_s: float | Sequence[float] = 0.0) -> Instance:
    configurations = (ONE, TWO, HALF, Configuration("V", max(nodes), nodes=2))
    seconds = dict.fromkeys(configurations, 10.0 * HOUR)
    restarts = np.broadcast_to(restart_s, jobs).tolist()
    each = [Job(0.0, 20.0 * HOUR, 0.0, 1.0, CERTAIN, 1.0, seconds, restart_s=restart) for restart in restarts]
    return kilowatt_cluster(each, list(nodes), configurations, base_w=1000.0)


def play(instance: Instance, rounds: Sequence[Sequence[int]], consolidation: bool) -> AnyInstance:
    """Play rounds an hour apart, an action for every job, and stand at the beginning of the next one."""
    env = AnyInstance(instance, job_order="submission", milestones=0, consolidation=consolidation)
    env.reset()
    for number, actions in enumerate(rounds):
        env.set_timer(0, (number + 1) * HOUR)
        for job, action in enumerate(actions):
            assert env.job == job
            env.step(action)
    return env


def places(instance: Instance, *rounds: Sequence[int], consolidation: bool = True) -> list[tuple[int, int]]:
    """Play rounds, and give node and shared GPU of every job after the last one."""
    held = play(instance, rounds, consolidation).view.jobs[:, [at.OLD_NODE, at.OLD_SLOT]]
    return [tuple(row) for row in held.astype(int).tolist()]


# nodes, restart_s, rounds, places with consolidation, and without it where they differ
MOVES = {
    "whose node is off goes to the one in use": (
        (2, 2), 0.0, ((ON_TWO, ON_ONE), (ON_ONE, ON_ONE)), [(0, -1), (0, -1)], [(0, -1), (1, -1)],
    ),
    "stays where the node in use has no room": (
        (2, 2), 0.0, ((ON_TWO, ON_ONE), (ON_TWO, ON_ONE)), [(0, -1), (1, -1)], None,
    ),
    "that would pay a restart for nothing but the move stays": (
        (2, 2), 60.0, ((ON_TWO, ON_ONE), (ON_ONE, ON_ONE)), [(0, -1), (1, -1)], None,
    ),
    "that would pay a restart for nothing but the move of its share stays": (
        (2, 2), 60.0, ((ON_TWO, ON_HALF), (ON_HALF, ON_HALF)), [(0, 0), (1, 0)], None,
    ),
    "that pays a restart anyway moves, from two GPUs to one": (
        (2, 2), 60.0, ((ON_TWO, ON_TWO), (ON_ONE, ON_ONE)), [(0, -1), (0, -1)], [(0, -1), (1, -1)],
    ),
    "that was paused has no node to leave": (
        (2, 2), 60.0, ((ON_TWO, ON_ONE), (ON_ONE, WAIT), (ON_ONE, ON_ONE)), [(0, -1), (0, -1)], None,
    ),
    "joins with a share a shared GPU of the node in use, which has half a GPU left": (
        (2, 2), 0.0, ((ON_TWO, WAIT, ON_HALF), (ON_HALF, ON_ONE, ON_HALF)),
        [(0, 0), (0, -1), (0, 0)], [(0, 0), (0, -1), (1, 0)],
    ),
    "opens with a share a free GPU of the node in use": (
        (2, 2), 0.0, ((ON_TWO, ON_HALF), (ON_ONE, ON_HALF)), [(0, -1), (0, 0)], [(0, -1), (1, 0)],
    ),
    "that takes several nodes, the last two, goes back to its own": (
        (2, 2, 2), 0.0, ((ON_TWO, ON_TWO_NODES), (ON_ONE, ON_TWO_NODES)), [(0, -1), (1, -1)], None,
    ),
    "that goes from several nodes to one counts the first as its own": (
        (2, 2, 2), 0.0, ((ON_TWO, ON_TWO_NODES), (ON_ONE, ON_ONE)), [(0, -1), (0, -1)], [(0, -1), (1, -1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("job", MOVES)
def test_a_job(job):
    nodes, restart_s, rounds, expected, otherwise = MOVES[job]
    instance = cluster(*nodes, jobs=len(expected), restart_s=restart_s)
    assert places(instance, *rounds) == expected
    if otherwise:
        assert places(instance, *rounds, consolidation=False) == otherwise


@pytest.mark.parametrize(("consolidation", "rate"), [(True, 3.0), (False, 4.0)])
def test_the_node_that_it_left_costs_nothing_any_more(consolidation, rate):
    """For an hour both nodes are on, with three busy GPUs: 5 €/h. Then one node or both, with two."""
    env = play(cluster(2, 2), [(ON_TWO, ON_ONE), (ON_ONE, ON_ONE), (ON_ONE, ON_ONE)], consolidation)
    assert env.view.clock[at.NOW] == 3 * HOUR
    assert env.view.clock[at.BILL] == pytest.approx(5.0 + 2 * rate)


def test_a_job_whose_own_node_is_on_stays_although_another_one_fits_better():
    """A and C are on the first node, B on the second. Then A leaves two GPUs free there, B one, and C is asked."""
    rounds = (ON_TWO, ON_TWO, ON_ONE), (ON_ONE, ON_TWO, ON_ONE)
    instance = cluster(3, 3, jobs=3, restart_s=(60.0, 60.0, 0.0))
    assert places(instance, rounds[0]) == [(0, -1), (1, -1), (0, -1)]
    assert places(instance, *rounds) == [(0, -1), (1, -1), (0, -1)]


def test_a_job_that_comes_anew_goes_to_the_best_fit_as_always():
    """The first node, of three GPUs, is off; the second one fits better than that, or has no free GPU."""
    instance = cluster(3, 2, jobs=3)
    for consolidation in (True, False):
        assert places(instance, (ON_TWO, ON_ONE, ON_ONE), consolidation=consolidation) == [(1, -1), (0, -1), (0, -1)]


def test_a_share_whose_own_node_is_on_stays_on_its_gpu():
    """E's half is on the first node, beside A. Then D leaves half of the GPU that C shares on the second node."""
    first = (ON_TWO, ON_ONE, ON_HALF, ON_HALF, WAIT)
    second, third = (ON_TWO, WAIT, ON_HALF, ON_HALF, ON_HALF), (ON_TWO, WAIT, ON_HALF, WAIT, ON_HALF)
    instance = cluster(3, 3, jobs=5, restart_s=(60.0, 60.0, 60.0, 60.0, 0.0))
    assert places(instance, first, second)[2:] == [(1, 0), (1, 0), (0, 0)]
    assert places(instance, first, second, third)[2:] == [(1, 0), (-1, -1), (0, 0)]


def test_another_gpu_type_in_use_does_not_count():
    """A is on the only node of V, which has free GPUs; B's node of W is off until B comes back to it."""
    types = [GpuType(name, 1000.0, 1000.0, 16.0, 2) for name in ("V", "W")]
    seconds = {ONE: 10.0 * HOUR, Configuration("W", 1): 10.0 * HOUR}
    jobs = [Job(0.0, (20.0 + j) * HOUR, 0.0, 1.0, CERTAIN, 1.0, seconds) for j in range(2)]
    instance = Instance.from_jobs(types, [Node("V", 2), Node("W", 2), Node("W", 2)], jobs, list(seconds))
    on_v, on_w = 1, 2
    assert places(instance, (on_v, on_w), (on_v, on_w)) == [(0, -1), (1, -1)]


def test_what_fits_nowhere_lets_no_place_go():
    env = play(cluster(2, 2, jobs=3), [(ON_TWO, ON_ONE, ON_ONE)], consolidation=True)
    env.step(ON_TWO)
    view = env.view
    for action in (ON_TWO_NODES, ON_ONE):
        assert not should_consolidate(view.board, env.job, action - 1)[1]
        assert view.jobs[env.job, at.PREFERRED_NODE] == 1.0
    env.step(ON_TWO)
    assert not should_consolidate(view.board, env.job, ON_ONE - 1)[1]
    assert view.jobs[env.job, at.PREFERRED_NODE] == 1.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_asking_whether_a_job_should_leave_its_place_changes_nothing(seed):
    env = play(cluster(*[4] * 3, jobs=8), np.random.default_rng(seed).integers(0, ACTIONS, (3, 8)), consolidation=True)
    view = env.view
    before = view.jobs.tobytes(), view.nodes.tobytes(), view.capacity.tobytes()
    for job in range(8):
        for config in range(ACTIONS - 1):
            should_consolidate(view.board, job, config)
            assert (view.jobs.tobytes(), view.nodes.tobytes(), view.capacity.tobytes()) == before


@dataclass(frozen=True)
class Turn:
    """One decision of a round: what was placed, and how the nodes were just before."""

    action: int
    node: int
    nodes: np.ndarray
    keeps: bool

    def switches_on(self) -> bool:
        single = self.action in {ON_ONE, ON_TWO, ON_HALF} and self.node >= 0
        return single and self.nodes[self.node, at.FREE] == self.nodes[self.node, at.NODE_GPUS]

    def capacity_in_use(self) -> bool:
        on = self.nodes[self.nodes[:, at.FREE] < self.nodes[:, at.NODE_GPUS]]
        used = on[:, at.NODE_COLUMNS : at.NODE_COLUMNS + slots(board_of(nodes=self.nodes))]
        half_free = self.action == ON_HALF and bool(((used > 0) & (used <= at.UNITS // 2)).any())
        return half_free or bool((on[:, at.FREE] >= (2 if self.action == ON_TWO else 1)).any())


def turns(seed: int, consolidation: bool, restart_s: float = 0.0) -> list[Turn]:
    instance = cluster(*[4] * 6, jobs=8, restart_s=restart_s)
    env = AnyInstance(instance, job_order="submission", milestones=0, consolidation=consolidation)
    env.reset()
    view, played = env.view, []
    for number, actions in enumerate(np.random.default_rng(seed).integers(0, ACTIONS, (5, 8))):
        env.set_timer(0, (number + 1) * HOUR)
        for job, action in enumerate(actions[:-1]):
            nodes = view.nodes.copy()
            keeps = view.jobs[job, at.OLD_CONFIG] == action - 1
            env.step(action)
            played.append(Turn(action, int(view.jobs[job, at.NODE]), nodes, keeps))
        env.step(actions[-1])
    return played


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), restart_s=st.sampled_from([0.0, 60.0]))
def test_no_job_has_a_node_switched_on_while_an_equal_one_in_use_has_room(seed, restart_s):
    for turn in turns(seed, True, restart_s):
        stays = restart_s > 0.0 and turn.keeps
        assert stays or not (turn.switches_on() and turn.capacity_in_use())


def test_without_it_jobs_do():
    assert sum(turn.switches_on() and turn.capacity_in_use() for turn in turns(0, False)) >= 3


@pytest.mark.parametrize("actions", [(WAIT, ON_TWO, ON_TWO_NODES), (WAIT, ON_TWO)])
def test_nothing_changes_where_nodes_are_full_when_they_are_on(actions):
    rounds = np.random.default_rng(len(actions)).choice(actions, (6, 5))
    each = [places(cluster(2, 2, 2, 2, jobs=5), *rounds, consolidation=flag) for flag in (True, False)]
    assert each[0] == each[1]


def test_nothing_changes_where_every_node_is_on_already():
    """A, B and C, asked first, come back to their nodes, and leave a GPU of each for D, E and F."""
    drawn = np.random.default_rng(0).choice([WAIT, ON_ONE, ON_HALF], (8, 3))
    rounds = [(ON_TWO, ON_TWO, ON_TWO, *later) for later in ([ON_ONE] * 3, *drawn)]
    instance = cluster(3, 3, 3, jobs=6)
    assert [node for node, _ in places(instance, rounds[0])] == [0, 1, 2, 0, 1, 2]
    for last in range(1, len(rounds)):
        played = rounds[: last + 1]
        assert places(instance, *played) == places(instance, *played, consolidation=False)
