"""The rules of Muri's program, by hand: an iteration of 1 s takes 1.015 s, and a restart of bert 10 s."""

from math import inf

import pytest

from gpusched_reproductions.systems.muri.preemptive import MuriTiresias, Srtf
from gpusched_reproductions.systems.muri.program import simulate_trace
from gpusched_reproductions.systems.muri.sharing import MuriAntMan, iterations_below
from gpusched_reproductions.systems.muri.traces import Stages, TraceJob
from refusals import refused

STAGES = Stages(1.0, 0.5, 0.25, 0.0)
BELOW = Stages(1.0, 0.25, 0.5, 0.0)
"""Of a job that takes two iterations of one with STAGES: one for its data, one for its computing."""


def job(
    iterations: float,
    gpus: int = 1,
    at_s: float = 0.0,
    *,
    stages: Stages = STAGES,
    opportunistic: bool = False,
    model: str = "bert",
) -> TraceJob:
    return TraceJob(at_s, gpus, model, 4, float(iterations), stages, opportunistic)


def below(iterations: float, gpus: int = 1, at_s: float = 0.0) -> TraceJob:
    return job(iterations, gpus, at_s, stages=BELOW, opportunistic=True)


def times(jobs, policy):
    done = simulate_trace(jobs, policy)
    return [each.start_s for each in done], pytest.approx([each.end_s for each in done])


@pytest.mark.parametrize("policy", [MuriAntMan, MuriTiresias, Srtf])
def test_at_every_event_a_job_that_runs_loses_its_restart_time_or_all_since_the_event_before(policy):
    """The first loses 10 s at 100 s, 3 s at 103 s, and 10 s when the others end together."""
    starts, ends = times([job(1000), job(10, at_s=100.0), job(10, at_s=103.0)], policy(1))
    assert starts == [0.0, 100.0, 103.0]
    assert ends == [1015.0 + 10.0 + 3.0 + 10.0, 113.15, 113.15]


@pytest.mark.parametrize("policy", [MuriAntMan, MuriTiresias, Srtf])
def test_jobs_come_in_order_of_submission_and_one_that_needs_too_many_gpus_never_ends(policy):
    done = simulate_trace([job(10, at_s=1.0), job(20, at_s=2.0, gpus=16), job(30)], policy(1))
    assert [each.trace.iterations for each in done] == [30.0, 10.0, 20.0]
    assert [each.end_s < inf for each in done] == [True, True, False]


def test_a_job_whose_restart_time_is_not_known_is_refused():
    with refused("model and GPUs of a job", allowed="bert on 8"):
        simulate_trace([job(1, gpus=3)], Srtf(1))


def test_tiresias_moves_a_job_on_after_whole_seconds_and_serves_the_first_queue_first():
    """On 8 GPUs queues end after 407 s and 900 s. The second job runs when the first one is in the second queue."""
    starts, ends = times([job(1000, gpus=8), job(100, gpus=8, at_s=100.0)], MuriTiresias(1))
    assert starts == [0.0, 407.0]
    assert ends == [
        1015.0 + 101.5 + 10.0 + 10.0 + 10.0,
        407.0 + 101.5,
    ]  # three events while it runs: 100, 407, 1001.5 s


def test_tiresias_puts_a_job_that_moves_on_behind_all_that_wait_in_the_next_queue():
    """They take turns: 407 s each, then 493 s each; what is left of either is 135 s."""
    _, ends = times([job(1000, gpus=8), job(1000, gpus=8)], MuriTiresias(1))
    assert ends == [1800.0 + 135.0, 1800.0 + 135.0 + 135.0]


def test_tiresias_resumes_a_preempted_job_before_those_that_have_waited_in_its_queue():
    """From 814 s the first job runs in the second queue. The third preempts it at 900 s; then the first goes on."""
    jobs = [job(1000, gpus=8), job(1000, gpus=8), job(100, gpus=8, at_s=900.0)]
    _, ends = times(jobs, MuriTiresias(1))
    assert ends == [1901.5 + 145.0, 1901.5 + 145.0 + 135.0, 1001.5]


def test_tiresias_starts_a_later_job_that_fits():
    starts, _ = times([job(100, gpus=4), job(100, gpus=8), job(100, gpus=4)], MuriTiresias(1))
    assert starts == pytest.approx([0.0, 101.5, 0.0])


def test_srtf_runs_the_shortest_first_and_whole_nodes_may_be_missing_where_many_gpus_are_free():
    """At 600 s 425 s are left of the first job; 15 GPUs are too few for the third, and the second goes on.

    At 1,025 s the third one is shorter than what is left of the second, 1,025 s, and preempts it.
    """
    starts, ends = times([job(1000), job(2000, gpus=8), job(500, gpus=16, at_s=600.0)], Srtf(2))
    assert starts == pytest.approx([0.0, 0.0, 1025.0])
    assert ends == [1025.0, 1532.5 + 1025.0, 1532.5]


def test_of_jobs_with_the_same_time_left_srtf_runs_first_what_was_submitted_first():
    _, ends = times([job(100, gpus=8), job(100, gpus=8)], Srtf(1))
    assert ends == [101.5, 203.0]


def test_a_guaranteed_job_holds_what_is_free_until_it_has_all():
    """The third job would fit from 200 s on, but the second holds the four GPUs that the first one leaves."""
    starts, ends = times([job(1000, gpus=4), job(100, gpus=8, at_s=100.0), job(10, gpus=4, at_s=200.0)], MuriAntMan(1))
    assert starts == pytest.approx([0.0, 1035.0, 1136.5])
    assert ends == [1035.0, 1136.5, 1146.65]


def test_it_holds_gpus_of_the_node_with_most_free_ones_and_stays_there():
    """Two jobs leave 2 GPUs of the first node free, one leaves 4 of the second: it waits for that one, the longer."""
    starts, _ = times([job(10, gpus=4), job(10, gpus=2), job(1000, gpus=4), job(100, gpus=8)], MuriAntMan(2))
    assert starts == pytest.approx([0.0, 0.0, 0.0, 1025.0])


def test_a_job_of_two_nodes_holds_one_and_takes_the_other_only_when_it_is_wholly_free():
    """The first node has a job, and 7 GPUs are held by the third: it comes before the second, which needs all 8."""
    starts, _ = times([job(1000), job(100, gpus=16), job(10, gpus=8)], MuriAntMan(2))
    assert starts == pytest.approx([0.0, 1025.15, 1015.0])


def test_an_opportunistic_job_is_slowed_by_a_guaranteed_one_also_by_one_that_comes_later():
    """At 50 s it has done 40 s of 101.5 s; the rest takes twice as long."""
    assert times([job(1000, gpus=8), below(10)], MuriAntMan(1))[1] == [1025.0, 20.3]
    starts, ends = times([below(100, gpus=8), job(1000, gpus=8, at_s=50.0)], MuriAntMan(1))
    assert starts == [0.0, 50.0]
    assert ends == [50.0 + 123.0, 50.0 + 1015.0 + 10.0]


def test_a_guaranteed_job_that_waits_slows_none_and_its_gpus_are_taken_first():
    """GPUs 4 to 7 are held for the second job; the opportunistic one comes there, and is as fast as alone."""
    _, ends = times([job(1000, gpus=4), job(100, gpus=8), below(10)], MuriAntMan(1))
    assert ends == [1025.0, 1126.5, 10.15]


def test_an_opportunistic_job_takes_free_gpus_first_of_any_nodes_and_all_at_once():
    """The first job leaves 12 GPUs. The second takes 8 of them, the third the rest and its own; the fourth waits."""
    jobs = [job(1000, gpus=4), below(100, gpus=8), below(100, gpus=8), below(10, gpus=4)]
    starts, ends = times(jobs, MuriAntMan(2))
    assert starts == pytest.approx([0.0, 0.0, 0.0, 101.5])
    assert ends == [1015.0 + 30.0, 101.5, 203.0 + 20.0, 111.65]


def test_two_opportunistic_jobs_share_no_gpu_and_a_later_one_that_fits_starts():
    jobs = [below(100, gpus=4), below(100, gpus=8), below(100, gpus=4), below(10, at_s=50.0)]
    starts, _ = times(jobs, MuriAntMan(1))
    assert starts == pytest.approx([0.0, 111.5, 0.0, 213.0])


def test_ends_that_hardly_differ_are_one_event_at_the_end_of_a_guaranteed_job():
    """The first job ends 60 ns before the second, 5e-10 of the time, and the third 60 µs after it."""
    short = Stages(1.0, 0.1, 0.0, 0.0)
    second = (111.5 + 6e-8 - 50.0) / 1.015
    jobs = [job(100, stages=short, opportunistic=True), job(second, at_s=50.0), job(second + 6e-5, at_s=50.0)]
    first_s, second_s, third_s = (each.end_s for each in simulate_trace(jobs, MuriAntMan(1)))
    assert first_s == second_s == pytest.approx(111.5 + 6e-8, abs=1e-8)
    assert third_s > second_s + 5e-5


@pytest.mark.parametrize(
    ("own", "above", "iterations"),
    [
        ((1.0, 2.0, 0.0), (3.0, 1.0, 0.0), 2),  # data fit into computing, of 1 s; then 2 s of 3 s without computing
        ((2.5, 0.5, 0.0), (3.0, 1.0, 0.0), 4),
        ((0.5, 0.5, 0.5), (1.0, 1.0, 1.0), 1),  # it computes while the other synchronises
        ((0.5, 1.5, 1.5), (1.0, 1.0, 1.0), 2),  # 0.5 s of computing are left; it synchronises in the same iteration
        ((0.5, 2.0, 1.0), (1.0, 1.0, 1.0), 2),  # 1 s of computing is left: no time after it in that iteration
        ((0.5, 2.0, 1.5), (1.0, 1.0, 1.0), 3),
        ((0.5, 0.75, 1.5), (1.0, 1.0, 1.0), 2),
        ((0.0, 0.0, 4.0), (1.0, 1.0, 1.0), 2),
        ((1.0, 0.0, 0.0), (1.0, 0.1, 0.0), 11),  # 10 by the quotient, and one for the remainder, by rounding
    ],
)
def test_an_opportunistic_job_takes_whole_iterations_of_the_job_above_it(own, above, iterations):
    assert iterations_below(Stages(1.0, *own), Stages(1.0, *above)) == iterations
