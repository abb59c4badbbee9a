"""What policies may see: read-only, live, and nothing of what is to come."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from any_instance import AnyInstance
from first_rounds import begin_run
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, View, rollout, simulate
from gpusched_env.simulator import Choice, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import DistributionTable
from instances import HOUR, random_instance
from refusals import refused

ARRAYS = sorted(View.__annotations__)


def later() -> Instance:
    """Make an instance of twelve jobs, of which the first alone has the distribution with most bins."""
    instance = random_instance(2, kinds=True)
    jobs = instance.jobs
    own = np.array([3, *[0, 1, 2] * 4][:12])
    return replace(instance, jobs=replace(jobs, distribution=own, epochs_needed=jobs.max_epochs))


def begun(jobs: int = 1) -> State:
    """Begin a run and play it, everybody waiting, until at least so many jobs are submitted."""
    state = State(later())
    while state.advance() and state.board.count[at.SUBMITTED] < jobs:
        state.begin_round(preemption=True)
        state.commit_round()
    state.begin_round(preemption=True)
    return state


@pytest.mark.parametrize("name", ARRAYS)
def test_the_arrays_of_a_view_are_read_only_but_the_memory(name):
    array = getattr(begun().view, name)
    if name == "memory":
        array[0, 0] = 3.0
    else:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_a_view_shows_what_the_simulator_does_and_the_simulator_keeps_its_memory():
    state = begun()
    seen = {name: getattr(state.view, name) for name in ARRAYS}
    assert state.view.place(0, int(np.flatnonzero(np.isfinite(state.view.tau[0]))[0]))
    state.view.memory[0, 1] = 4.0
    state.commit_round()
    state.advance()
    for name, array in seen.items():
        own = getattr(state.board.facts if name in {"configs", "slowdown"} else state.board, name)
        assert getattr(state.view, name) is array
        np.testing.assert_array_equal(array, own)
    assert state.board.memory[0, 1] == 4.0


def test_a_view_has_no_other_arrays():
    with pytest.raises(AttributeError, match="'View' object has no attribute 'hidden'"):
        _ = begun().view.hidden


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda view: pickle.loads(pickle.dumps(view))])  # noqa: S301
def test_the_arrays_of_a_copy_are_those_of_its_own_board(copied):
    view = begun().view
    first = view.jobs[0, at.TIMER_S]
    other = copied(view)
    other.set_timer(0, 77.0)
    assert (view.jobs[0, at.TIMER_S], other.jobs[0, at.TIMER_S]) == (first, 77.0)
    assert not other.jobs.flags.writeable


def test_a_copy_of_a_state_goes_on_by_itself():
    state = begun()
    other = copy.deepcopy(state)
    assert other.view.board is other.board
    other.commit_round()
    other.advance()
    assert other.view.now_s > state.view.now_s
    assert other.view.count[at.SUBMITTED] > state.view.count[at.SUBMITTED]


def test_rows_of_jobs_to_come_are_nan_in_the_view_and_on_the_board():
    for jobs in (1, 5, 12):
        state = begun(jobs)
        submitted = int(state.board.count[at.SUBMITTED])
        for table in (state.view.jobs, state.view.tau, state.board.jobs, state.board.tau):
            assert np.isnan(table[submitted:]).all()
            assert not np.isnan(table[:submitted]).all(axis=1).any()


@pytest.mark.parametrize("jobs", [1, 2, 3, 4])
def test_distributions_are_nan_until_a_job_that_has_them_is_submitted(jobs):
    state = begun(jobs)
    whole = DistributionTable.of(state.instance.jobs.distributions)
    submitted = int(state.board.count[at.SUBMITTED])
    known = np.unique(state.instance.jobs.distribution[:submitted])
    unknown = np.setdiff1d(np.arange(4), known)
    shown = state.view.distributions
    for table in (shown.survival, shown.tail, shown.edges, state.view.survival, state.view.tail, state.board.tail):
        assert np.isnan(table[unknown]).all()
        assert not np.isnan(table[known]).any()
    np.testing.assert_array_equal(shown.survival[known], whole.survival[known])
    np.testing.assert_array_equal(shown.tail[known], whole.tail[known])
    for d in known:
        np.testing.assert_array_equal(shown.curve(d).edges, whole.curve(d).edges)
    bins = np.setdiff1d(whole.bins, whole.bins[known])
    assert np.isnan(state.board.edges[bins]).all()
    assert np.isnan(state.view.edges[bins]).all()


def test_the_distributions_that_a_view_gives_are_copies():
    state = begun()
    state.view.distributions.survival[:] = 7.0
    state.view.distributions.edges[:] = 7.0
    assert state.board.survival[3, 0] == 1.0
    assert state.board.edges[int(state.board.jobs[0, at.EDGES]), 0] == 0.0


def test_a_choice_sets_the_wake_up_and_lets_the_place_go_and_places_nothing():
    state = begun()
    state.board.jobs[0, [at.PREFERRED_NODE, at.PREFERRED_SLOT]] = 1.0, 0.0
    columns = [at.TIMER_S, at.PREFERRED_NODE, at.PREFERRED_SLOT, at.CONFIG]
    for choice, expected in (
        (Choice(0), [-np.inf, 1.0, 0.0, -1.0]),
        (Choice(0, timer_s=50.0), [50.0, 1.0, 0.0, -1.0]),
        (Choice(-1, leaves=True), [50.0, -1.0, -1.0, -1.0]),
        (Choice(-1, timer_s=-np.inf), [-np.inf, -1.0, -1.0, -1.0]),
    ):
        state.view.apply(0, choice)
        assert state.view.jobs[0, columns].tolist() == expected


@pytest.mark.parametrize("choice", [0, None, (0, None, False), np.int64(1)])
def test_what_is_no_choice_is_refused(choice):
    with refused("choice", choice):
        begun().view.apply(0, choice)


@pytest.mark.parametrize("timer_s", [float("nan"), -5.0, 1.1e12])
def test_a_choice_with_a_wake_up_out_of_its_range_changes_nothing(timer_s):
    state = begun()
    state.board.jobs[0, at.PREFERRED_NODE] = 1.0
    with refused("choice.timer_s", timer_s):
        state.view.apply(0, Choice(0, timer_s=timer_s, leaves=True))
    assert state.view.jobs[0, [at.TIMER_S, at.PREFERRED_NODE]].tolist() == [-np.inf, 1.0]


ONE, HALF, ALL = Configuration("V", 1), Configuration("V", 1, share=0.5), Configuration("V", 2, nodes=2)


def four_nodes() -> State:
    """Begin the first round of three jobs that may use anything, on nodes of 2, 2, 1 and 2 GPUs."""
    gpu = GpuType("V", gpu_power_w=900.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=2)
    certain = EpochDistribution.certain()
    seconds = {ONE: HOUR, HALF: HOUR, ALL: HOUR}
    jobs = [Job(0.0, 9 * HOUR, 0.001, 1.0, certain, 1.0, seconds) for _ in range(3)]
    nodes = [Node("V", gpus) for gpus in (2, 2, 1, 2)]
    instance = Instance.from_jobs([gpu], nodes, jobs, [ONE, HALF, ALL], energy_price_eur_per_kwh=1.0, pue=1.0)
    return begin_run(instance)


def put(state: State, job: int, kind: Configuration, **place: object) -> list[float]:
    """Apply a choice with a place, do the placing, and give the node and the shared GPU that came of it."""
    config = state.view.configurations.index(kind)
    state.view.apply(job, Choice(config, **place))
    assert state.view.place(job, config)
    return state.view.jobs[job, [at.NODE, at.SLOT]].tolist()


def test_a_job_is_placed_on_the_node_that_was_chosen():
    assert put(four_nodes(), 0, ONE) == [2.0, -1.0]  # best fit: the node with fewest GPUs
    assert put(four_nodes(), 0, ONE, node=1) == [1.0, -1.0]
    assert put(four_nodes(), 0, ONE, node=np.int64(3), leaves=True) == [3.0, -1.0]
    assert put(four_nodes(), 0, HALF, node=1, gpu=1) == [1.0, 1.0]
    state = four_nodes()
    assert put(state, 0, ALL, node=3) == [0.0, -1.0]  # nodes of one job are a chain, by index
    assert state.view.nodes[:, at.FREE].tolist() == [0, 2, 1, 0]


def test_what_does_not_fit_where_it_was_put_goes_where_it_fits_best():
    state = four_nodes()
    assert put(state, 0, ONE, node=2) == [2.0, -1.0]
    state.board.jobs[1, at.PREFERRED_NODE] = 3.0  # where it was before
    assert put(state, 1, ONE, node=2) == [0.0, -1.0]
    state = four_nodes()
    assert put(state, 0, HALF, node=2, gpu=0) == [2.0, 0.0]
    assert put(state, 1, HALF, node=2, gpu=0) == [2.0, 0.0]
    assert put(state, 2, HALF, node=2, gpu=0) == [0.0, 0.0]
    state = four_nodes()
    assert put(state, 0, HALF, node=1) == [1.0, 0.0]
    assert put(state, 1, HALF, node=0) == [1.0, 0.0]  # the fullest shared GPU
    assert put(state, 2, HALF, node=0) == [0.0, 0.0]  # none is open


@pytest.mark.parametrize(
    ("place", "field", "allowed"),
    [
        ({"node": -1}, "node", "an index from 0 to 3, or None"),
        ({"node": 4}, "node", "an index from 0 to 3, or None"),
        ({"node": 1.5}, "node", "an index from 0 to 3, or None"),
        ({"node": True}, "node", "an index from 0 to 3, or None"),
        ({"node": "1"}, "node", "an index from 0 to 3, or None"),
        ({"node": 1, "gpu": 2}, "gpu", "an index from 0 to 1, or None"),
        ({"node": 2, "gpu": 1}, "gpu", "an index from 0 to 0, or None"),
        ({"node": 2, "gpu": -1}, "gpu", "an index from 0 to 0, or None"),
        ({"gpu": 0}, "gpu", "None without a node"),
    ],
)
def test_a_choice_of_a_place_that_is_not_there_is_named_and_changes_nothing(place, field, allowed):
    state = four_nodes()
    before = state.board.jobs.copy()
    with refused(f"choice.{field}", allowed=f"{allowed}$"):
        state.view.apply(0, Choice(0, timer_s=5.0, leaves=True, **place))
    np.testing.assert_array_equal(state.board.jobs, before)


class LastNode:
    """Puts every job on one GPU of the last node that has room, whole or half, always the last GPU there."""

    name, job_order, preemption = "last-node", "submission", True

    def choose(self, view: View, job: int) -> Choice:
        """Choose a whole GPU for jobs of even index, and half of one for the others."""
        kind = HALF if job % 2 else ONE
        node = int(np.flatnonzero(view.nodes[:, at.FREE] > 0)[-1])
        gpu = int(view.nodes[node, at.NODE_GPUS]) - 1 if kind is HALF else None
        return Choice(view.configurations.index(kind), node=node, gpu=gpu)

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for job in view.active.tolist():
            choice = self.choose(view, job)
            view.apply(job, choice)
            view.place(job, choice.config)


def test_a_policy_that_names_places_gets_them_in_a_simulation_and_in_an_environment():
    instance = four_nodes().instance
    direct = simulate(instance, LastNode())
    env = AnyInstance(instance, job_order="submission", preemption=True, milestones=0)
    stepped, _ = rollout(env, LastNode(), instance=instance)
    assert direct.intervals().sort("job")["node"].to_list() == [3, 3, 2]
    np.testing.assert_array_equal(stepped.log, direct.log)


@pytest.mark.parametrize("job", [-1, 1, 11, 99])
def test_only_jobs_that_are_active_can_be_decided(job):
    view = begun().view
    for call in (lambda: view.apply(job, Choice(0)), lambda: view.clear_preferred_node(job)):
        with refused("job", job):
            call()
