"""Plans that may be late: against an independent linear program, their own trajectories, and plans in time."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpusched_baselines import Plan, solve_single_job
from gpusched_baselines.planning.plan import add_late_point, cost_of_waiting, find_hull, new_scratch, solve_late
from gpusched_env import EpochDistribution, load_scenario, make_instance
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from refusals import refused
from single_job import two_speeds

HOUR = 3600.0
HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Case:
    """A job whose due date may be missed; times in seconds, like those that the solver takes."""

    tau: np.ndarray
    price: np.ndarray
    distribution: EpochDistribution
    largest: float
    done: float
    time_left: float
    weight: float

    def solve(self, weight: float | None) -> Plan:
        facts = (self.tau, self.price, self.distribution, self.largest, self.time_left, self.done)
        return solve_single_job(*facts, tardiness_weight_eur_per_s=weight)

    def priced(self) -> Plan:
        return self.solve(self.weight)

    def bins(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of what is left of the bins [epochs], and S(x)/S(w) on them."""
        edges = self.distribution.edges * self.largest
        first = int(np.searchsorted(edges, self.done, side="right")) - 1
        edges = np.append(self.done, edges[first + 1 :])
        return edges, self.distribution.survival[first:] / self.distribution.survival[first]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a job: jumps and plateaus of S, also to 0, one configuration or many, any due date, any weight."""
    count = draw(st.integers(1, 6))
    tau = np.array(draw(st.lists(st.integers(5, 200), min_size=count, max_size=count))) / 10.0
    price = np.array(draw(st.lists(st.floats(0.0, 5.0), min_size=count, max_size=count)))
    masses = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 0.1, 1.0, 5.0]), min_size=1, max_size=12)))
    masses[draw(st.integers(0, len(masses) - 1))] += 1.0
    widths = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=len(masses), max_size=len(masses))))
    edges = np.append(0.0, np.cumsum(widths) / widths.sum())
    edges[-1] = 1.0
    distribution = EpochDistribution.from_masses(masses, edges)
    largest = draw(st.floats(1.0, 100.0))
    reached = largest * float(edges[np.flatnonzero(masses)[-1]])
    done = draw(st.sampled_from([0.0, 0.3, 0.9])) * reached
    span = (largest - done) * float(tau.max())
    time_left = draw(st.sampled_from([-1.0, 0.0]) | st.floats(0.0, 1.1)) * span
    weight = draw(st.sampled_from([0.0, 1e4]) | st.floats(0.0, 3.0))
    return Case(tau, price, distribution, largest, done, time_left, weight)


def linear_program(case: Case) -> float:
    """Solve the relaxation: epochs y of every bin and configuration before the due date, z after it, in any order."""
    edges, alive = case.bins()
    length, rest = np.diff(edges), case.largest - case.done
    late = case.price + case.weight * case.tau
    cost = np.concatenate([np.outer(alive, case.price).ravel(), np.outer(alive, late).ravel()])
    time = np.concatenate([np.tile(case.tau, len(length)), np.zeros(len(length) * len(case.tau))])
    each = np.kron(np.eye(len(length)), np.ones(len(case.tau)))
    scale = max(1.0, float(late.max()))
    solution = linprog(
        cost / scale,
        A_ub=time[None, :] / case.tau.max(),
        b_ub=[max(0.0, case.time_left) / case.tau.max() / rest],
        A_eq=np.hstack([each, each]),
        b_eq=length / rest,
        method="highs-ds",
        options=HIGHS,
    )
    assert solution.status == 0
    return float(solution.fun) * scale * rest


def executed(case: Case, plan: Plan) -> tuple[float, float]:
    """Execute a plan epoch by epoch; return its expected energy and tardiness from now on [€].

    Bins are cut where configurations change and where the due date is, so that all is constant in between.
    """
    edges, alive = case.bins()
    clock, energy, tardiness = 0.0, 0.0, 0.0
    for segment in plan.segments:
        tau = case.tau[segment.configuration]
        due = segment.start_epoch + (case.time_left - clock) / tau
        cuts = {segment.start_epoch, segment.end_epoch, *edges.tolist(), due}
        inside = sorted(x for x in cuts if segment.start_epoch <= x <= segment.end_epoch)
        for start, end in pairwise(inside):
            middle = 0.5 * (start + end)
            share = alive[np.clip(np.searchsorted(edges, middle) - 1, 0, len(alive) - 1)]
            energy += share * (end - start) * case.price[segment.configuration]
            tardiness += share * (end - start) * tau * case.weight * (middle > due)
        clock += (segment.end_epoch - segment.start_epoch) * tau
    return float(energy), float(tardiness)


@settings(max_examples=500, deadline=None)
@given(case=cases())
def test_it_equals_a_linear_program_in_which_epochs_may_be_late_in_any_order(case):
    plan = case.priced()
    assert plan.expected_cost_eur == pytest.approx(linear_program(case), rel=1e-7, abs=1e-7 * (1.0 + case.weight))


@settings(max_examples=500, deadline=None)
@given(case=cases())
def test_the_plan_executed_in_time_costs_what_it_states(case):
    plan = case.priced()
    energy, tardiness = executed(case, plan)
    near = 1e-9 * (1.0 + case.weight * case.tau.max()) * case.largest
    assert plan.expected_tardiness_eur == pytest.approx(tardiness, rel=1e-9, abs=near)
    assert plan.expected_cost_eur == pytest.approx(energy + tardiness, rel=1e-9, abs=near)
    assert plan.segments[0].start_epoch == case.done
    assert plan.segments[-1].end_epoch == case.largest
    for now, following in pairwise(plan.segments):
        assert now.end_epoch == following.start_epoch
        assert case.tau[now.configuration] > case.tau[following.configuration]
    seconds = [(s.end_epoch - s.start_epoch) * case.tau[s.configuration] for s in plan.segments]
    assert plan.worst_case_s == pytest.approx(sum(seconds))


@settings(max_examples=300, deadline=None)
@given(case=cases())
def test_a_huge_weight_gives_the_plan_that_is_in_time_and_none_the_cheapest_one(case):
    guaranteed = case.solve(None)
    if guaranteed.status != "late" and case.distribution.survival[-1] > 0.0 and case.time_left > 0.0:
        strict = case.solve(1e9)
        assert strict.expected_cost_eur == pytest.approx(guaranteed.expected_cost_eur, rel=1e-9, abs=1e-9)
        assert strict.worst_case_s == pytest.approx(guaranteed.worst_case_s)
    edges, alive = case.bins()
    free = case.solve(0.0)
    assert free.expected_cost_eur == pytest.approx(case.price.min() * np.dot(alive, np.diff(edges)), rel=1e-9)
    assert free.expected_tardiness_eur == 0.0


@pytest.mark.parametrize(
    ("hours", "weight", "segments", "cost", "tardiness"),
    [
        (5.0, 1.0, [(0, 4.0)], 3.0, 0.0),
        (3.5, 0.5, [(0, 4.0)], 3.125, 0.125),
        (3.5, 1.0, [(0, 2.5), (1, 4.0)], 3.2, 0.0),
        (3.0, 1.0, [(0, 2.0), (1, 4.0)], 2 + 19 / 15 + 1 / 6, 1 / 6),
        (3.0, 0.7, [(0, 4.0)], 3.35, 0.35),
        (0.0, 1.0, [(1, 4.0)], 3 * (19 / 15 + 2 / 3), 2.0),
        (0.0, 0.5, [(0, 4.0)], 3 * 1.5, 1.5),
    ],
)
def test_a_worked_example(hours, weight, segments, cost, tardiness):
    """Epochs of 1 h for 1 € or 40 min for 19/15 €, so 0.8 €/h for what is saved; four at most, half of the jobs two.

    3.5 h at 0.5 €/h: the last half hour is late, with probability ½. 3 h at 1 €/h: the second half is fast, which saves
    40 minutes at 0.4 €/h; the other 20 would cost 0.8 €/h in the first half and are late for 0.5. At 0.7 €/h the fast
    configuration is worth nothing: the hour is late, with probability ½. Without time all epochs are late: three are
    expected, at 19/15 + 2/3 or 1 + ½ · 1 €.
    """
    job = two_speeds(hours * HOUR)
    plan = solve_single_job(*job.arguments, tardiness_weight_eur_per_s=weight / HOUR)
    assert [(s.configuration, s.end_epoch) for s in plan.segments] == [(c, pytest.approx(end)) for c, end in segments]
    assert plan.expected_cost_eur == pytest.approx(cost)
    assert plan.expected_tardiness_eur == pytest.approx(tardiness)


def test_the_status_says_whether_time_is_left_and_is_needed_and_past_tardiness_is_not_counted_again():
    now, before = (
        solve_single_job(*two_speeds(time_left).arguments, tardiness_weight_eur_per_s=1 / HOUR)
        for time_left in (0.0, -7 * HOUR)
    )
    assert now == before
    assert now.status == "late"
    hours = (5.0, 3.5, 1.0, 0.0, -1.0)
    plans = [solve_single_job(*two_speeds(h * HOUR).arguments, tardiness_weight_eur_per_s=1e-3) for h in hours]
    assert [plan.status for plan in plans] == ["slack", "tight", "tight", "late", "late"]


@pytest.mark.parametrize("weight", [-1e-9, np.nan, np.inf, "1", True, 1e308])
def test_a_wrong_weight_is_named(weight):
    with refused("tardiness_weight_eur_per_s", weight):
        solve_single_job(*two_speeds(HOUR).arguments, tardiness_weight_eur_per_s=weight)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.8, 2.0])
def test_what_waiting_costs_is_what_the_plan_that_begins_later_costs_more(share):
    """The kernel speeds the plan up further; here both plans are made again. Waits are shares of the time left."""
    instance = make_instance(load_scenario("published-high"), 0)
    state = State(instance)
    while state.board.count[at.SUBMITTED] < 15:
        state.advance()
    rate, configs = state.board.least_rate[0], len(instance.configurations)
    scratch, compared = new_scratch(configs + 1), 0
    for job in range(15):
        tau, weight = state.board.tau[job], float(state.board.jobs[job, at.WEIGHT]) / 300.0
        seconds, price = tau.copy(), tau * rate
        time_left = float(state.board.jobs[job, at.DUE] - state.board.clock[at.NOW])
        wait = share * abs(time_left)
        points = find_hull(seconds, price, scratch)
        points = add_late_point(scratch.points, scratch.hull, points, weight)
        solve_late(state.board, job, points, time_left, scratch)
        given = cost_of_waiting(state.board, job, points, wait, weight, scratch)
        distribution = instance.jobs.distributions[int(state.board.jobs[job, at.DISTRIBUTION])]
        now, later = (
            solve_single_job(
                tau, price, distribution, state.board.jobs[job, at.MAX_EPOCHS], left, tardiness_weight_eur_per_s=weight
            ).expected_cost_eur
            for left in (time_left, time_left - wait)
        )
        late = min(wait, max(0.0, wait - time_left))
        assert given == pytest.approx(later + weight * late - now, rel=1e-6, abs=1e-9)
        compared += given > 0.0
    assert compared >= 5
