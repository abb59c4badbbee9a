"""STS when a job goes on after a change: its timer, and the GPUs that it holds already.

One GPU type without base power: 500 W a GPU at 1 €/kWh. An epoch takes 1 h on one GPU and 36 min on two: 0.50 € and
0.60 €. The job has two epochs. A change of configuration costs 0.1 h without progress.
"""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import Sts
from gpusched_env import Configuration, GpuType, Instance, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR

ONE, TWO, NOTHING = 0, 1, -1
CONFIGURATIONS = [Configuration("V", g) for g in (1, 2)]


def state(due_h: float) -> State:
    """Return the first round of a job with two epochs; a review opens another one each half hour."""
    seconds = {CONFIGURATIONS[ONE]: HOUR, CONFIGURATIONS[TWO]: 0.6 * HOUR}
    job = Job(0.0, due_h * HOUR, 0.01, 2.0, CERTAIN, 2.0, seconds)
    of = Instance.from_jobs(
        [GpuType("V", 500.0, 0.0, 16.0)], [Node("V", 2)], [job], CONFIGURATIONS, restart_s=0.1 * HOUR
    )
    return begin_run(of, review_s=0.5 * HOUR)


def hold(of: State, config: int, timer_h: float = -np.inf) -> None:
    """Place the job on a configuration by hand, with a timer, and open the next round, half an hour later."""
    if config != NOTHING:
        of.view.place(0, config)
    of.view.set_timer(0, timer_h * HOUR)
    of.commit_round()
    of.advance()
    of.begin_round(preemption=True)


def decide(of: State) -> tuple[int, float]:
    """Decide by STS; return the configuration and the timer [h] of the job."""
    Sts().decide(of.view, np.random.default_rng(0))
    return int(of.view.jobs[0, at.CONFIG]), of.view.jobs[0, at.TIMER_S] / HOUR


def test_at_its_first_start_a_timer_expires_when_the_segment_ends_without_any_restart():
    """Two epochs in 1.6 h: 0.4 h must be saved, by two GPUs in the second epoch."""
    assert decide(state(due_h=1.6)) == (ONE, pytest.approx(1.0))


def test_the_timer_of_a_job_that_resumes_expires_later_by_the_restart_overhead():
    """It runs until 0.5 h and rests until 1 h. Then 1.5 epochs are left for 1.3 h: 0.2 h must be saved.

    So one GPU for one epoch, which begins at 1.1 h: its timer expires at 2.1 h.
    """
    resumed = state(due_h=2.3)
    hold(resumed, ONE)
    hold(resumed, NOTHING)
    assert resumed.view.now_s == HOUR
    assert decide(resumed) == (ONE, pytest.approx(2.1))


def test_a_job_that_keeps_its_configuration_is_planned_without_a_restart_and_gives_no_gpu_back():
    """It runs on one GPU until 0.5 h, without a plan. Then 1.5 epochs are left for 1.3 h: slow for one, until 1.5 h."""
    running = state(due_h=1.8)
    hold(running, ONE)
    assert decide(running) == (ONE, pytest.approx(1.5))
    # It holds two GPUs without a plan, with so much time that one GPU would be cheaper.
    running = state(due_h=10.0)
    hold(running, TWO)
    assert decide(running) == (TWO, np.inf)
    # There is no configuration of three GPUs; the cheapest that fits would be one GPU, and would set no plan.
    running = state(due_h=10.0)
    hold(running, TWO, timer_h=0.5)
    assert decide(running) == (TWO, np.inf)
