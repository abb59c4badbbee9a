"""The exact solver where prices tie: against the dual of the plan problem in rational numbers, and its plan's cost."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import Plan, solve_single_job
from gpusched_env import EpochDistribution

EPOCHS = 10


@dataclass(frozen=True)
class Case:
    """A job of ten epochs in equal bins; `weight` [€/s] is None for a due date that must be met."""

    tau: tuple[float, ...]
    price: tuple[float, ...]
    masses: tuple[float, ...]
    done: float
    time_left: float
    weight: float | None

    @property
    def distribution(self) -> EpochDistribution:
        return EpochDistribution.from_masses(self.masses)

    def solve(self) -> Plan:
        facts = (self.tau, self.price, self.distribution, EPOCHS, self.time_left, self.done)
        return solve_single_job(*facts, tardiness_weight_eur_per_s=self.weight)

    def bins(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        """List what is left of the bins: begin and end [epochs], and S there over S now."""
        edges = [Fraction(edge) * EPOCHS for edge in self.distribution.edges.tolist()]
        survival = [Fraction(s) for s in self.distribution.survival.tolist()]
        first = max(i for i, edge in enumerate(edges[:-1]) if edge <= Fraction(self.done))
        begins = [max(edge, Fraction(self.done)) for edge in edges[first:-1]]
        return [
            (a, b, s / survival[first]) for a, b, s in zip(begins, edges[first + 1 :], survival[first:], strict=True)
        ]

    def ways(self) -> list[tuple[Fraction, Fraction]]:
        """List how an epoch can be done: seconds before the due date, and cost; late ones take no such seconds."""
        own = [(Fraction(tau), Fraction(price)) for tau, price in zip(self.tau, self.price, strict=True)]
        if self.weight is None:
            return own
        return own + [(Fraction(0), price + Fraction(self.weight) * tau) for tau, price in own]


def least_cost(case: Case) -> Fraction | None:
    """Return the optimum, as the largest value of its dual, in which a second before the due date costs y; None: late.

    The dual is concave and linear between the y at which two ways cost the same in some bin.
    """
    bins, ways, time_left = case.bins(), case.ways(), max(Fraction(0), Fraction(case.time_left))
    if sum(b - a for a, b, _ in bins) * min(tau for tau, _ in ways) > time_left:
        return None
    at = {Fraction(0)}
    for (tau, price), (other, more) in combinations(ways, 2):
        if tau != other:
            at |= {max(Fraction(0), s * (more - price) / (tau - other)) for _, _, s in bins}
    return max(sum((b - a) * min(s * p + y * t for t, p in ways) for a, b, s in bins) - y * time_left for y in at)


def executed(case: Case, plan: Plan) -> float:
    """Return the expected cost of a plan's segments, one after the other on the clock."""
    clock, cost, weight = Fraction(0), Fraction(0), Fraction(case.weight or 0.0)
    for segment in plan.segments:
        tau, price = Fraction(case.tau[segment.configuration]), Fraction(case.price[segment.configuration])
        begin, end = Fraction(segment.start_epoch), Fraction(segment.end_epoch)
        due = begin + max(Fraction(0), Fraction(case.time_left) - clock) / tau
        for a, b, s in case.bins():
            cost += s * price * max(Fraction(0), min(b, end) - max(a, begin))
            cost += s * weight * tau * max(Fraction(0), min(b, end) - max(a, begin, due))
        clock += (end - begin) * tau
    return float(cost)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw whole seconds, and cents on a line or near one; a second of delay often costs as much as one saved."""
    tau = sorted(draw(st.sets(st.integers(5, 60), min_size=1, max_size=5)), reverse=True)
    first, each = draw(st.integers(1, 9)) / 100, draw(st.integers(1, 9)) / 1000
    price = [round(first + each * (tau[0] - t), 3) for t in tau]
    for k in draw(st.sets(st.integers(0, len(tau) - 1), max_size=2)):
        price[k] = max(0.001, round(price[k] + draw(st.integers(-5, 5)) / 1000, 3))
    tied = [each, *((q - p) / (t - u) for (t, p), (u, q) in pairwise(zip(tau, price, strict=True)) if q >= p)]
    weight = draw(st.none() | st.sampled_from(tied) | st.floats(0.0, 0.1))
    masses = draw(st.sampled_from([(1.0,), (0.5, 0.5), (0.0, 1.0, 1.0), (1.0, 2.0, 1.0, 4.0), (1.0, 0.0)]))
    done = draw(st.sampled_from([0.0, 0.0, 2.5, 3.0]))
    left = EPOCHS - done
    time_left = float(draw(st.integers(int(left * tau[-1]) - 5, int(left * tau[0]) + 5)))
    mixed = draw(st.permutations(range(len(tau))))
    return Case(tuple(float(tau[i]) for i in mixed), tuple(price[i] for i in mixed), masses, done, time_left, weight)


@settings(max_examples=600, deadline=None)
@given(case=cases())
def test_a_plan_is_optimal_and_costs_what_it_says_wherever_prices_tie(case):
    plan, optimum = case.solve(), least_cost(case)
    ends = [case.done, *(segment.end_epoch for segment in plan.segments)]
    assert [segment.start_epoch for segment in plan.segments] == ends[:-1]
    assert ends[-1] == EPOCHS
    assert all(a < b for a, b in pairwise(ends))
    seconds = [case.tau[segment.configuration] for segment in plan.segments]
    assert all(slow > fast for slow, fast in pairwise(seconds))
    assert plan.expected_cost_eur == pytest.approx(executed(case, plan), rel=1e-11)
    if optimum is None:
        assert plan.status == "late"
        return
    assert plan.expected_cost_eur == pytest.approx(float(optimum), rel=1e-9)
    if case.weight is None:
        assert plan.worst_case_s <= case.time_left + 1e-6


@pytest.mark.parametrize(
    ("tau", "price", "time_left", "optimum"),
    [
        ((55, 46, 45, 43), (0.02, 0.047, 0.05, 0.056), 440.0, 0.39),
        ((51, 24, 18, 10), (0.03, 0.219, 0.261, 0.317), 166.0, 1.9155),
    ],
)
def test_configurations_on_one_line_run_one_after_the_other(tau, price, time_left, optimum):
    """Half of the jobs end after five of ten epochs. Slopes that are equal but for rounding came out falling."""
    case = Case(tuple(map(float, tau)), price, (0.5, 0.5), 0.0, time_left, None)
    plan = case.solve()
    assert plan.worst_case_s == pytest.approx(time_left)
    assert plan.expected_cost_eur == pytest.approx(optimum)
    assert sum(segment.end_epoch - segment.start_epoch for segment in plan.segments) == EPOCHS


def test_where_a_late_second_costs_what_one_saved_does_the_plan_costs_what_either_would():
    """45 s for 1 cent or 7 s for 36: a second saved costs 35/38 cents, and so does a late one."""
    case = Case((45.0, 7.0), (0.01, 0.36), (0.5, 0.5), 0.0, 413.0, 0.35 / 38)
    assert case.solve().expected_cost_eur == pytest.approx(5 * 0.01 + 2.5 * 0.01 + 0.5 * (450 - 413) * 0.35 / 38)
