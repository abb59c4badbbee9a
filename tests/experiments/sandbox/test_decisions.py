"""What a policy wants is done on the true board as the policy would have done it, or refused in a line."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from entries import OnACopy
from gpusched_baselines import make_policy
from gpusched_env import Cells, Configuration, Tenant
from gpusched_env.simulator import State, simulate
from gpusched_env.simulator import layout as at
from gpusched_experiments.sandbox.decisions import SEEN, SentBoard, apply_decisions, rows_of, written
from gpusched_experiments.sandbox.submitted import SubmissionError, one_line
from instances import random_instance
from small_instances import hours_job, kilowatt_cluster

ONE, TWO, BOTH, HALF = (
    Configuration("V", 1),
    Configuration("V", 2),
    Configuration("V", 2, 2),
    Configuration("V", 1, share=0.5),
)
CONFIGS = [ONE, TWO, BOTH, HALF]


@pytest.mark.parametrize("policy", ["edf", "greedy", "sts-x", "las", "pack"])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_is_the_same_to_the_last_bit_whether_the_policy_gets_the_board_or_a_copy(policy, seed):
    instance = random_instance(seed, jobs=12, nodes=4, types=2, kinds=True, spread=seed % 2 > 0)
    one, other = simulate(instance, make_policy(policy)), simulate(instance, OnACopy(make_policy(policy)))
    assert (one.energy_eur, one.tardiness_eur) == (other.energy_eur, other.tardiness_eur)
    np.testing.assert_array_equal(one.log, other.log)


def open_round(jobs=3, nodes=(2, 2), quota=None):
    """Three jobs at the beginning of a round on two nodes of two GPUs; the last may not use two nodes.

    With a quota, they are all of one tenant, who may hold so many GPUs.
    """
    hours = dict.fromkeys(CONFIGS, 1.0)
    all_jobs = [hours_job(4.0, hours) for _ in range(jobs - 1)] + [hours_job(4.0, {ONE: 1.0, TWO: 1.0, HALF: 1.0})]
    instance = kilowatt_cluster(all_jobs, nodes, CONFIGS)
    if quota is not None:
        instance = replace(instance, tenants=(Tenant("a", (Cells("V", 1, quota),)),), tenancy="quota")
    state = State(instance)
    state.advance()
    state.begin_round(True)
    return state


def decisions(*rows):
    """Rows of configuration, node, GPU and timer; what is left out waits."""
    full = [*rows, *[(-1, -1, -1)] * (3 - len(rows))]
    return np.array([(*row, *(np.inf,) * (4 - len(row))) for row in full], dtype=np.float64)


def test_what_is_wanted_is_held_and_the_books_are_right():
    state = open_round()
    apply_decisions(state.board, decisions((0, 1, -1, 60.0), (3, 1, 1), (3, 1, 1)), np.array([-1, -1]))
    rows = state.board.jobs[:, [at.CONFIG, at.NODE, at.SLOT, at.TIMER_S]].tolist()
    assert rows == [[0, 1, -1, 60.0], [3, 1, 1, np.inf], [3, 1, 1, np.inf]]
    assert state.board.nodes[:, at.FREE].tolist() == [2, 0]


def test_whole_nodes_are_held_as_a_chain():
    state = open_round()
    apply_decisions(state.board, decisions((2, 0, -1)), np.array([1, -1]))
    assert state.board.nodes[:, [at.FREE, at.NEXT]].tolist() == [[0, 1], [0, -1]]


@pytest.mark.parametrize(
    ("rows", "chain", "words"),
    [
        ([(np.nan, 0, -1)], (-1, -1), "job 0 was given what is no number"),
        ([(0.5, 0, -1)], (-1, -1), "job 0 was given what is no number"),
        ([(1e300, 0, -1)], (-1, -1), "job 0 was given what is no number"),
        ([(0, 0, -1, np.nan)], (-1, -1), "job 0 was given a timer that is no time"),
        ([(0, 0, -1, -5.0)], (-1, -1), "job 0 was given a timer that is no time"),
        ([(4, 0, -1)], (-1, -1), "job 0 was given a configuration that is not there"),
        ([(0, 0, -1), (0, 2, -1)], (-1, -1), "job 1 was given a node that is not there"),
        ([(0, -3, -1)], (-1, -1), "job 0 was given a node that is not there"),
        ([(1, 0, -1), (0, 0, -1)], (-1, -1), "job 1 was given GPUs that are not free"),
        ([(0, 0, 1)], (-1, -1), "job 0 was given GPUs that are not free"),
        ([(3, 0, 0), (3, 0, 0), (3, 0, 0)], (-1, -1), "job 2 was given a share of a GPU that is not free"),
        ([(1, 0, -1), (3, 0, 0)], (-1, -1), "job 1 was given a share of a GPU that is not free"),
        ([(3, 0, 2)], (-1, -1), "job 0 was given a share of a GPU that is not free"),
        ([(2, 0, -1)], (-1, -1), "job 0 was given whole nodes that are not empty, or no chain"),
        ([(2, 0, -1)], (0, -1), "job 0 was given whole nodes that are not empty, or no chain"),
        ([(2, 0, -1)], (99, -1), "job 0 was given whole nodes that are not empty, or no chain"),
        ([(0, 1, -1), (2, 0, -1)], (1, -1), "job 1 was given whole nodes that are not empty, or no chain"),
        ([(-1, 0, -1), (-1, 0, -1), (2, 0, -1)], (1, -1), "job 2 was given a configuration that is not there, or that"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(rows, chain, words):
    with pytest.raises(SubmissionError, match=words):
        apply_decisions(open_round().board, decisions(*rows), np.array(chain))


@pytest.mark.parametrize(
    ("quota", "rows", "chain", "job"),
    [
        (1, [(0, 0, -1), (0, 1, -1)], (-1, -1), 1),
        (1, [(0, 0, -1), (3, 1, 0)], (-1, -1), 1),
        (2, [(3, 0, 0), (3, 0, 0), (1, 1, -1)], (-1, -1), 2),
        (5, [(1, 0, -1), (2, 1, -1)], (-1, 2, -1), 1),
    ],
)
def test_more_than_the_quota_of_a_tenant_is_refused_though_the_gpus_are_free(quota, rows, chain, job):
    nodes = (2,) * len(chain)
    apply_decisions(open_round(nodes=nodes, quota=sum(nodes)).board, decisions(*rows), np.array(chain))
    with pytest.raises(SubmissionError, match=f"job {job} was given more than the quota of the job's tenant"):
        apply_decisions(open_round(nodes=nodes, quota=quota).board, decisions(*rows), np.array(chain))


def test_of_jobs_that_are_not_submitted_nothing_is_sent_and_nothing_that_is_hidden():
    instance = random_instance(1, jobs=12, nodes=4, types=2)
    state = State(instance)
    state.advance()
    assert set(SEEN) | {"facts", "memory", "keys", "order"} == set(state.board.__getstate__())
    shapes, parts = written(state.board)
    sent = {
        name: np.frombuffer(part, dtype=kind).reshape(shape)
        for (name, kind, shape), part in zip(shapes, parts, strict=True)
    }
    come = state.board.count[at.SUBMITTED]
    assert come < 12
    assert np.isnan(sent["jobs"][come:]).all()
    assert np.isnan(sent["tau"][come:]).all()
    needed = instance.jobs.epochs_needed[instance.jobs.epochs_needed < instance.jobs.max_epochs]
    assert len(needed) > 3
    assert not any(np.isin(needed, array).any() for array in sent.values() if array.dtype == np.float64)


def test_only_rows_that_changed_are_sent_again():
    state = State(random_instance(1, jobs=12, nodes=4, types=2))
    sent, before = SentBoard(state.board), deepcopy(state.board)
    assert sent.changes(state.board) == ([], [])
    state.advance()
    counts, _ = sent.changes(state.board)
    changed = {
        name: np.sum(np.any(rows_of(getattr(state.board, name)) != rows_of(getattr(before, name)), axis=1))
        for name in SEEN
    }
    assert dict(counts) == {name: count for name, count in changed.items() if count}
    assert sent.changes(state.board) == ([], [])


def test_what_an_entry_says_is_shown_as_one_plain_line():
    assert one_line("a\nb\x1b[31m\tc") == "a b?[31m c"
    assert len(one_line("x" * 10_000)) < 400
