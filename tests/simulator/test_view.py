"""What policies may see: read-only, live, and nothing of what is to come."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from gpusched_env import InputError, Instance, View
from gpusched_env.simulator import Choice, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import DistributionTable
from instances import random_instance

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
def test_the_arrays_of_a_view_are_read_only_but_the_memory(name: str):
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
    first = view.jobs[0, at.WAKE_S]
    other = copied(view)
    other.wake_up(0, 77.0)
    assert (view.jobs[0, at.WAKE_S], other.jobs[0, at.WAKE_S]) == (first, 77.0)
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
def test_distributions_are_nan_until_a_job_that_has_them_is_submitted(jobs: int):
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
    state.board.jobs[0, [at.HOME, at.HOME_SLOT]] = 1.0, 0.0
    columns = [at.WAKE_S, at.HOME, at.HOME_SLOT, at.CONFIG]
    for choice, expected in (
        (Choice(0), [-np.inf, 1.0, 0.0, -1.0]),
        (Choice(0, wake_s=50.0), [50.0, 1.0, 0.0, -1.0]),
        (Choice(-1, leaves=True), [50.0, -1.0, -1.0, -1.0]),
        (Choice(-1, wake_s=-np.inf), [-np.inf, -1.0, -1.0, -1.0]),
    ):
        state.view.apply(0, choice)
        assert state.view.jobs[0, columns].tolist() == expected


@pytest.mark.parametrize("choice", [0, None, (0, None, False), np.int64(1)])
def test_what_is_no_choice_is_refused(choice: object):
    with pytest.raises(InputError, match=r"^choice = .*allowed: a Choice$"):
        begun().view.apply(0, choice)


@pytest.mark.parametrize("wake_s", [float("nan"), -5.0, 1.1e12])
def test_a_choice_with_a_wake_up_out_of_its_range_changes_nothing(wake_s: float):
    state = begun()
    state.board.jobs[0, at.HOME] = 1.0
    with pytest.raises(InputError, match=r"^choice\.wake_s = "):
        state.view.apply(0, Choice(0, wake_s=wake_s, leaves=True))
    assert state.view.jobs[0, [at.WAKE_S, at.HOME]].tolist() == [-np.inf, 1.0]


@pytest.mark.parametrize("job", [-1, 1, 11, 99])
def test_only_jobs_that_are_active_can_be_decided(job: int):
    view = begun().view
    for call in (lambda: view.apply(job, Choice(0)), lambda: view.forget_place(job)):
        with pytest.raises(InputError, match=r"^job = "):
            call()
