"""STS, step by step: plans, timers, ranks of GPU types, and when it solves again.

Two GPU types without base power, at 1 €/kWh: "cheap" draws 500 W and "costly" 1,000 W a GPU. On either an epoch takes
1 h on one GPU and 36 min on two. So an epoch costs 0.50 € and 0.60 € on cheap, twice that on costly.
"""

from dataclasses import replace

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import Sts, edf
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR

CHEAP1, CHEAP2, DEAR1, DEAR2 = range(4)
CONFIGURATIONS = [Configuration(v, g) for v in ("cheap", "costly") for g in (1, 2)]


def job(due_h: float, epochs: float = 2.0, distribution: EpochDistribution = CERTAIN) -> Job:
    seconds = {c: HOUR * (1.0 if c.gpus_per_node == 1 else 0.6) for c in CONFIGURATIONS}
    return Job(0.0, due_h * HOUR, 0.01, epochs, distribution, epochs, seconds)


def instance(*jobs: Job, cheap: int = 2, costly: int = 2) -> Instance:
    types = [GpuType("cheap", 500.0, 0.0, 16.0, 8), GpuType("costly", 1000.0, 0.0, 16.0, 8)]
    nodes = [Node("cheap", cheap), Node("costly", costly)]
    return Instance.from_jobs(types, nodes, jobs, CONFIGURATIONS, energy_price_eur_per_kwh=1.0, pue=1.0)


def rounds(of: Instance, number: int, policy: Sts | None = None) -> list[tuple[float, list[int]]]:
    """Run some rounds; list the time [h] and the configuration of every job in each."""
    state = State(of)
    seen = []
    for _ in range(number):
        state.advance()
        state.begin_round(preemption=True)
        (policy or Sts()).decide(state.view, np.random.default_rng(0))
        seen.append(
            (state.view.now_s / HOUR, np.nan_to_num(state.view.jobs[:, at.CONFIG], nan=-1).astype(int).tolist())
        )
        state.commit_round()
    return seen


def test_a_job_without_time_starts_slow_and_speeds_up_when_its_segment_ends():
    """Two epochs in 1.6 h: 0.4 h must be saved, each epoch on two GPUs saves 0.4 h: the second epoch runs on two."""
    assert rounds(instance(job(1.6)), 2) == [(0.0, [CHEAP1]), (pytest.approx(1.0), [CHEAP2])]


def test_a_first_segment_below_one_per_cent_is_skipped_and_without_time_the_fastest_that_fits_is_taken():
    """Two epochs in 1.2 h and 20 s: the slow segment would be 50 s long, 0.7 % of the epochs."""
    assert rounds(instance(job(1.2 + 20 / HOUR)), 1) == [(0.0, [CHEAP2])]
    assert rounds(instance(job(1.2 + 40 / HOUR)), 1) == [(0.0, [CHEAP1])]
    assert rounds(instance(job(1.0)), 1) == [(0.0, [CHEAP2])]
    assert rounds(instance(job(1.0), cheap=1), 1) == [(0.0, [DEAR2])]


def test_a_job_whose_timer_has_expired_takes_more_gpus():
    """The timer is set by hand in the middle of a plan that needs no more GPUs."""
    state = begin_run(instance(job(10.0)))
    Sts().decide(state.view, np.random.default_rng(0))
    state.view.set_timer(0, 0.5 * HOUR)
    state.commit_round()
    state.advance()
    state.begin_round(preemption=True)
    Sts().decide(state.view, np.random.default_rng(0))
    assert (state.view.now_s, state.view.jobs[0, at.CONFIG]) == (0.5 * HOUR, CHEAP2)


def test_a_job_on_its_second_choice_moves_when_a_better_type_is_free():
    """The tight job takes the cheap GPU; the other starts on the costly type, and moves when that is done."""
    of = instance(job(1.05, epochs=1.0), job(10.0, epochs=3.0), cheap=1)
    assert rounds(of, 2) == [(0.0, [CHEAP1, DEAR1]), (1.0, [-1, CHEAP1])]


def test_a_job_that_follows_its_plan_keeps_what_it_has_unless_one_of_higher_pressure_comes():
    late_comer = replace(job(30.0), submission_s=0.25 * HOUR)
    of = instance(job(10.0), late_comer)
    assert rounds(of, 2) == [(0.0, [CHEAP1, -1]), (0.25, [CHEAP1, CHEAP1])]
    only_cheap = {CONFIGURATIONS[CHEAP1]: HOUR}
    patient = replace(job(30.0), seconds_per_epoch=only_cheap)
    critical = replace(job(1.3, epochs=1.0), submission_s=0.25 * HOUR, seconds_per_epoch=only_cheap)
    assert rounds(instance(patient, critical, cheap=1), 2) == [(0.0, [CHEAP1, -1]), (0.25, [-1, CHEAP1])]


def test_types_are_ranked_by_expected_cost_or_as_published():
    """Both types meet the due date on one GPU: the published rank gives both cost 0, and takes the first."""
    of = instance(job(10.0))
    swapped = replace(of, gpu_types=(replace(of.gpu_types[0], gpu_power_w=2000.0), of.gpu_types[1]))
    assert rounds(swapped, 1, Sts()) == [(0.0, [DEAR1])]
    assert rounds(swapped, 1, Sts("published")) == [(0.0, [CHEAP1])]


def test_cheapest_meeting_the_due_date_means_in_the_worst_case_and_to_the_second():
    """Two epochs: one GPU takes 2 h. EDF takes it when exactly 2 h are left, and not a second later."""
    for due_h, expected in ((2.0, CHEAP1), (2.0 - 1 / HOUR, CHEAP2), (2.2, CHEAP1)):
        state = begin_run(instance(job(due_h)), preemption=False)
        edf().decide(state.view, np.random.default_rng(0))
        assert state.view.jobs[0, at.CONFIG] == expected


def test_a_plan_that_ends_exactly_at_its_due_date_is_not_late_for_rounding():
    """For any due date the second segment is the one planned, not the other type's faster, costlier GPUs."""
    rng = np.random.default_rng(0)
    for due_h in rng.uniform(1.25, 1.95, 200):
        of = instance(job(float(due_h)))
        faster = of.jobs.seconds_per_epoch * np.array([1.0, 1.0, 0.99, 0.99])
        of = replace(of, jobs=replace(of.jobs, seconds_per_epoch=faster))
        assert [configs for _, configs in rounds(of, 2)] == [[CHEAP1], [CHEAP2]]


def test_with_less_than_one_per_cent_to_go_a_job_with_time_stays_cheap():
    state = begin_run(instance(job(1e3, epochs=2.0)))
    state.board.jobs[0, at.EPOCHS] = 1.99
    assert Sts().choose(state.view, 0).config == CHEAP1


def paused(policy: Sts) -> list[int]:
    """Return what a job that held two GPUs, and was paused, has in three rounds: at 0, at 0.25 h, and at 0.85 h.

    Only the cheap node counts. The first job, four epochs due at 30 h, gets two GPUs by hand; the second takes both
    for 36 min from 0.25 h on, since it has no slack. At 0.85 h the first would be in time on one.
    """
    only_cheap = {c: HOUR * (1.0 if c.gpus_per_node == 1 else 0.6) for c in CONFIGURATIONS[:2]}
    first = replace(job(30.0, epochs=4.0), seconds_per_epoch=only_cheap)
    critical = replace(job(0.85, epochs=1.0), submission_s=0.25 * HOUR, seconds_per_epoch=only_cheap)
    state, seen = State(instance(first, critical)), []
    for _ in range(3):
        state.advance()
        state.begin_round(preemption=True)
        if state.view.now_s == 0.0:
            state.view.place(0, CHEAP2)
        else:
            policy.decide(state.view, np.random.default_rng(0))
        seen.append(int(state.view.jobs[0, at.CONFIG]))
        state.commit_round()
    return seen


def test_a_paused_job_comes_back_with_no_fewer_gpus_than_it_held_unless_it_may():
    assert paused(Sts()) == [CHEAP2, -1, CHEAP2]
    assert paused(Sts(restarts_small=True)) == [CHEAP2, -1, CHEAP1]


def test_by_the_published_rank_a_type_that_misses_the_due_date_comes_after_those_that_meet_it_in_its_fastest():
    """Only "costly" is in time, at twice the price. With nothing in time the first type is taken, not the faster."""
    of = instance(job(1.4))
    slower = replace(of, jobs=replace(of.jobs, seconds_per_epoch=of.jobs.seconds_per_epoch * [1.5, 1.5, 1.0, 1.0]))
    assert rounds(slower, 1, Sts("published")) == rounds(slower, 1, Sts()) == [(0.0, [DEAR1])]
    late = replace(slower, jobs=replace(slower.jobs, due_s=slower.jobs.due_s * 0.5))
    assert rounds(late, 1, Sts("published")) == [(0.0, [CHEAP2])]
    assert rounds(late, 1, Sts()) == [(0.0, [DEAR2])]
