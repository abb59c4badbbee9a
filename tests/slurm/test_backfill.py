"""Slurm starts drawn queues as our policy does, and not as in another order of jobs."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gpusched_reproductions.conform.slurm import compare
from gpusched_reproductions.conform.slurm_runs import run_queue
from slurm_clusters import needs_slurm

pytestmark = needs_slurm

CASES = ((5, "slurm-backfill"), (16, "one-reservation"))
LOAD_S = 12.0
"""How much later a busy machine may start a job [s]; in these queues a second more or less changes no decision."""


@pytest.fixture(scope="module")
def runs():
    with ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(lambda case: run_queue(*case), CASES), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_slurm_starts_a_queue_in_our_order(runs, case):
    answer = compare(case, runs[case], LOAD_S)
    assert answer.agrees, answer


def test_the_starts_of_the_order_of_submission_are_not_those_of_another_one(runs):
    for queue, rule in CASES:
        assert not compare((queue, "multifactor"), runs[queue, rule], LOAD_S).agrees
