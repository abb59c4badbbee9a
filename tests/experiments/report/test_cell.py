import pickle
from dataclasses import dataclass

import pytest

from gpusched_baselines import make_policy
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report.cell import Cell, is_slow
from gpusched_reproductions.published import workloads
from gpusched_reproductions.published.changes import Misspecified, SpeedUp
from gpusched_reproductions.published.workloads import ONE_ROUND, one_round

TINY = load_scenario("tiny")
CELL = Cell((("nodes", 3),), TINY, "edf", 1)


def test_labels_and_the_scenarios_name_are_not_part_of_what_is_run_but_code_and_changes():
    named = TINY.replace({"name": "mine", "description": "what for", "compare.seeds": "0-3"})
    assert Cell((("size", "small"),), named, "edf", 1).key("code") == CELL.key("code")
    changes = (Misspecified("uniform"), Misspecified("average"), SpeedUp(0.5, 0.5), SpeedUp(0.5, 0.6))
    assert len({Cell((), TINY, "edf", 1, change).key("code") for change in changes}) == 4
    assert CELL.key("code") != CELL.key("other code")
    assert CELL.key("code") == pickle.loads(pickle.dumps(CELL)).key("code")  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    "other",
    [
        Cell((), TINY.replace({"restart_s": 1.0}), "edf", 1),
        Cell((), TINY, "fifo", 1),
        Cell((), TINY, "edf", 2),
        Cell((), TINY, "edf", 1, Misspecified("uniform")),
        Cell((), TINY, "edf", 1, measure=ONE_ROUND),
    ],
)
def test_any_other_difference_is_another_run(other):
    assert other.key("code") != CELL.key("code")


def test_a_whole_run_gives_what_simulate_gives_after_a_change():
    values = CELL.run()
    result = simulate(make_instance(TINY, 1), make_policy("edf"), seed=1)
    assert (values["energy_eur"], values["total_eur"]) == (result.energy_eur, result.total_eur)
    assert (values["jobs"], values["late_jobs"], values["rounds"]) == (10, result.late_jobs, result.rounds)
    assert values["run_s"] > 0.0
    assert {"policy", "seed"} & set(values) == set()
    changed = Cell((), TINY, "edf", 1, SpeedUp(0.9, 0.9)).run()
    result = simulate(SpeedUp(0.9, 0.9)(make_instance(TINY, 1)), make_policy("edf"), seed=1)
    assert changed["energy_eur"] == result.energy_eur != CELL.run()["energy_eur"]


def test_the_time_of_a_round_is_that_of_the_first_with_all_jobs_that_are_there():
    scenario = TINY.replace({"arrivals.kind": "simultaneous", "jobs.count": 6, "cluster.nodes": 6})
    values = Cell((), scenario, "edf", 0, measure=ONE_ROUND).run()
    assert (values["jobs"], values["placed"], values["repeats"]) == (6, 6, 15)
    assert 0.0 < values["least_round_s"] <= values["round_s"] < values["run_s"]
    assert Cell((), TINY, "edf", 0, measure=ONE_ROUND).run()["jobs"] < 10


@dataclass
class Slow:
    """Takes the next of these times for each round, by a clock of its own."""

    rounds_s: list
    now_s: float = 0.0
    name: str = "slow"
    preemption: bool = False

    def decide(self, view, rng):
        self.now_s += self.rounds_s.pop(0)

    def clock(self):
        return self.now_s


@pytest.mark.parametrize(
    ("rounds_s", "repeats", "median", "least"),
    [
        ([0.03125] + 14 * [0.015625], 15, 0.015625, 0.015625),
        ([0.25, 0.125, 0.0625, 0.125, 9.0], 4, 0.125, 0.0625),
        ([9.0, 0.125, 0.25, 9.0], 3, 0.25, 0.125),
        ([0.5, 0.5, 9.0], 2, 0.5, 0.5),
        ([3.0, 5.0, 9.0], 2, 4.0, 3.0),
        ([20.0, 9.0], 1, 20.0, 20.0),
    ],
)
def test_a_round_is_repeated_unless_that_takes_long(rounds_s, repeats, median, least, monkeypatch):
    slow = Slow(rounds_s)
    monkeypatch.setattr(workloads.time, "perf_counter", slow.clock)
    values = one_round(make_instance(TINY, 0), slow, 0)
    assert (values["repeats"], values["round_s"], values["least_round_s"]) == (repeats, median, least)


def test_plans_that_another_solver_gave_instead_are_counted_for_one_round():
    class Falling:
        name, preemption, fallbacks = "falling", False, 0

        def decide(self, view, rng):
            self.fallbacks += 3

    instance = make_instance(TINY, 0)
    assert one_round(instance, Falling(), 0)["fallbacks"] == 3.0
    assert one_round(instance, make_policy("edf"), 0)["fallbacks"] == 0.0


def test_the_share_of_the_time_in_another_solver_is_that_of_all_repetitions(monkeypatch):
    class Solving(Slow):
        solver_s = 100.0  # of rounds before

        def decide(self, view, rng):
            super().decide(view, rng)
            self.solver_s += 0.25

    solving, instance = Solving([0.5, 0.5]), make_instance(TINY, 0)
    assert one_round(instance, make_policy("sts"), 0)["solver_share"] == 0.0
    monkeypatch.setattr(workloads.time, "perf_counter", solving.clock)
    assert one_round(instance, solving, 0)["solver_share"] == 0.5


def test_policies_are_slow_that_construct_a_thousand_times_or_are_not_compiled():
    assert [name for name in ("edf", "sts", "random-greedy", "sts:ipopt", "agent:default") if is_slow(name)] == [
        "random-greedy", "sts:ipopt",
    ]  # fmt: skip
