"""STS-X tuned in its own run: its simulations are those of the simulator, and it knows nothing that is hidden."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_count
from gpusched_baselines.hindsight import VARIANTS, hindsight_cost, with_known_needs
from gpusched_baselines.rollout_policy.simulation import cost_of_policy, new_copy
from gpusched_baselines.self_tuning import SelfTunedStsX, TuningSettings, policy
from gpusched_baselines.self_tuning.candidates import RULES, a_rule, directions, policy_of
from gpusched_baselines.self_tuning.resampling import Workloads
from gpusched_baselines.self_tuning.search import LOAN, tuned_choice
from gpusched_env import GpuClusterEnv, Instance, load_scenario, make_instance, rollout, simulate
from gpusched_env.simulator import State, View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import environment_columns
from instances import random_instance
from refusals import refused

QUICK = TuningSettings(checks=(5, 9), jobs=6, samples=1, fresh=2, work=150.0, margin=0.0, certainty=0.0)


def small(seed: int = 1, jobs: int = 14) -> Instance:
    return make_instance(load_scenario("busy").replace({"jobs.count": jobs}), seed)


def at_round(instance: Instance, submitted: int) -> State:
    """Run STS-X until so many jobs are submitted, and open the round."""
    state, rng = State(instance, record=False, memory_columns=environment_columns(instance)), np.random.default_rng(0)
    while state.advance():
        if state.board.count[at.ACTIVE]:
            state.begin_round(True)
            if state.board.count[at.SUBMITTED] >= submitted:
                return state
            StsX().decide(state.view, rng)
            state.commit_round()
    raise AssertionError


@pytest.mark.parametrize("kinds", [False, True])
def test_a_copy_that_is_given_the_true_needs_and_jobs_costs_what_the_rest_of_the_run_costs(kinds):
    instance = random_instance(3, jobs=14, kinds=kinds, restart_s=20.0)
    state = at_round(instance, 7)
    board, hidden = state.board, state.hidden
    known, active = int(board.count[at.SUBMITTED]), board.active[: board.count[at.ACTIVE]]
    copy = new_copy(board, len(instance.jobs) - known, 0)
    outcome = np.full((len(instance.jobs), at.OUTCOME_COLUMNS), np.inf)
    outcome[active], outcome[known:, at.NEEDED] = hidden.outcome[active], hidden.outcome[known:, at.NEEDED]
    copy.hidden.jobs[known:], copy.hidden.tau[known:] = hidden.jobs[known:], hidden.tau[known:]
    for name in ("edges", "survival", "tail"):
        getattr(copy.hidden, name)[...] = getattr(hidden, name)
    paid = board.clock[at.BILL] + board.clock[at.TARDINESS_COST]
    cost, _, _ = cost_of_policy(copy, outcome, View(copy.work, instance.configurations), StsX(), 1_000)
    assert paid > 0.0
    assert cost == pytest.approx(simulate(instance, StsX()).total_eur - paid, rel=1e-9)


def test_the_jobs_so_far_come_again_in_their_order_with_other_needs():
    state = at_round(small(), 8)
    board = state.board
    found = Workloads(state.view, 3, 30, 0)
    known = int(board.count[at.SUBMITTED])
    windows = board.jobs[:known, at.DUE] - board.jobs[:known, at.SUBMISSION]
    for rows, outcome in zip(found._jobs, found._outcomes, strict=True):
        first = int(np.argmin(np.abs(windows - (rows[0, at.DUE] - rows[0, at.SUBMISSION]))))
        order = 1 + (first - 1 + np.arange(30)) % (known - 1)
        np.testing.assert_allclose(rows[:, at.DUE] - rows[:, at.SUBMISSION], windows[order])
        gaps = np.diff(rows[:, at.SUBMISSION], prepend=board.clock[at.NOW])
        np.testing.assert_allclose(gaps, np.diff(board.jobs[:known, at.SUBMISSION])[order - 1], atol=1e-6)
        assert np.all(outcome[-30:, at.NEEDED] <= rows[:, at.MAX_EPOCHS])
    assert len(np.unique(found._outcomes[:, -1, at.NEEDED])) > 1


def changes(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float, np.ndarray]]:
    """Run it, and list what each check did: submissions, work, and the choice."""
    found = []

    def noted(view, own, spent, settings):
        choice, work = real(view, own, spent, settings)
        found.append((int(view.board.count[at.ROUND]), work, choice))
        return choice, work

    real = policy.tuned_choice
    monkeypatch.setattr(policy, "tuned_choice", noted)
    simulate(instance, SelfTunedStsX(QUICK))
    monkeypatch.undo()
    return found


def test_what_jobs_need_that_have_not_ended_changes_no_decision_before_it_shows(monkeypatch):
    instance = small(8)
    made = changes(instance, monkeypatch)
    assert len(made) == 2
    assert any(choice.any() for _, _, choice in made)
    first = simulate(instance, SelfTunedStsX(QUICK))
    time_s = float(np.quantile(first.completion_s, 0.6))
    jobs, rows = instance.jobs, first.log[first.log[:, at.LOG_START] < time_s]
    done = np.zeros(len(jobs))
    for row in rows:
        job, config = int(row[at.LOG_JOB]), int(row[at.LOG_CONFIG])
        working = max(0.0, min(time_s, row[at.LOG_END]) - row[at.LOG_READY])
        done[job] += working / jobs.seconds_per_epoch[job, config]
    open_jobs = first.completion_s > time_s
    needed = np.where(open_jobs, 0.1 * done + 0.9 * jobs.max_epochs, jobs.epochs_needed)
    assert open_jobs.any()
    assert not np.array_equal(needed, jobs.epochs_needed)
    second = simulate(replace(instance, jobs=replace(jobs, epochs_needed=needed)), SelfTunedStsX(QUICK))
    np.testing.assert_array_equal(until(first, time_s), until(second, time_s))


def until(result, time_s: float) -> np.ndarray:
    log = result.log[result.log[:, at.LOG_START] < time_s]
    rows = log[:, [at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG, at.LOG_START, at.LOG_END]].copy()
    rows[:, 4] = np.minimum(rows[:, 4], time_s)
    return rows[np.lexsort((rows[:, 0], rows[:, 3]))]


def test_the_same_run_tunes_the_same_and_job_by_job_it_decides_the_same():
    instance = small(2)
    one, other = (simulate(instance, SelfTunedStsX(QUICK)) for _ in range(2))
    assert one.log.tobytes() == other.log.tobytes()
    env = GpuClusterEnv(instance=instance, milestones=0)
    assert rollout(env, SelfTunedStsX(QUICK), instance=instance)[0].total_eur == pytest.approx(one.total_eur)


def test_without_checks_or_without_work_it_is_sts_x_to_the_last_bit():
    instance = small(3)
    own = simulate(instance, StsX()).log.tobytes()
    for settings in (TuningSettings(checks=()), replace(QUICK, work=0.0)):
        assert simulate(instance, SelfTunedStsX(settings)).log.tobytes() == own


def test_checks_take_little_more_work_than_rounds_allow(monkeypatch):
    made = changes(small(4), monkeypatch)
    assert 0.0 < sum(work for _, work, _ in made) < 2.0 * LOAN * QUICK.work * made[-1][0]


def test_a_run_that_goes_on_with_other_jobs_keeps_its_choice():
    state = at_round(small(), 6)
    tuned, board = SelfTunedStsX(replace(QUICK, checks=(5,))), state.board
    tuned.decide(state.view, np.random.default_rng(0))
    columns = policy._columns(len(state.view.gpu_types))
    kept = board.memory[0, columns].copy()
    assert kept[0] == 1.0
    board.memory[0] = 0.0
    state.commit_round()
    state.advance()
    state.begin_round(True)
    tuned.decide(state.view, np.random.default_rng(0))
    np.testing.assert_array_equal(board.memory[0, columns], kept)


def test_candidates_are_sts_x_with_controls_and_rules_without():
    choice, rng = np.zeros(1 + 8 + 2), np.random.default_rng(0)
    choice[3] = 0.5
    found = {int(one[0]): one for one in (a_rule(choice, rng) for _ in range(50))}
    assert sorted(found) == [1, 2]
    assert not any(one[1:].any() for one in found.values())
    assert [policy_of(found[number], ("V",)).name for number in (1, 2)] == [rule().name for rule in RULES]
    assert directions(2).shape == (12 + 2 + 1, 12)


def test_settings_out_of_their_range_are_refused():
    for checks in ((1,), (9, 5), [5]):
        with refused("checks", checks, "a tuple of whole numbers >= 2 that rise"):
            TuningSettings(checks=checks)
    with refused("margin", 1.0, "a number from 0 to 1"):
        TuningSettings(margin=1.0)
    with refused("fresh", 1, "a whole number >= 2"):
        TuningSettings(fresh=1)


def test_hindsight_runs_the_settings_of_sts_x_first():
    instance = small(5, 10)
    costs = [simulate(with_known_needs(instance), StsX(**settings)).total_eur for settings in VARIANTS]
    assert len(set(costs)) > 1
    for runs in (1, 2, len(VARIANTS)):
        assert hindsight_cost(instance, runs) == min(costs[:runs])


@pytest.mark.parametrize(("scenario", "tries"), [("busy", True), ("de-lu", False)])
def test_where_prices_change_nothing_is_tried(scenario, tries):
    state = at_round(make_instance(load_scenario(scenario).replace({"jobs.count": 14}), 1), 9)
    own = np.zeros(1 + control_count(len(state.view.gpu_types)))
    _, work = tuned_choice(state.view, own, 0.0, replace(QUICK, work=1e4))
    assert (work > 0.0) == tries


def test_where_energy_is_free_and_no_job_is_late_it_is_sts_x():
    instance = replace(
        make_instance(load_scenario("slack").replace({"jobs.count": 14}), 1), energy_price_eur_per_kwh=0.0
    )
    result = simulate(instance, SelfTunedStsX(QUICK))
    assert result.total_eur == 0.0
    assert result.log.tobytes() == simulate(instance, StsX()).log.tobytes()
