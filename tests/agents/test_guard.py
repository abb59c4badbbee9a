"""The guard: no choice that must be late where another one is not and costs less."""

from __future__ import annotations

from gpusched_agents.network.inference import guarded
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.study import VARIANTS
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_env import Configuration
from gpusched_env.simulator import State
from refusals import refused
from small_instances import hours_job, kilowatt_cluster

ONE, TWO, FOUR = (Configuration("V", gpus) for gpus in (1, 2, 4))
HOURS = {ONE: 10.0, TWO: 6.0, FOUR: 4.0}  # of one epoch: 10, 12 and 16 € of energy at 1 € an hour and GPU


def guard(choice: int, due_h: float, weight_eur_per_h: float = 100.0, gpus: int = 4) -> int:
    """Return the guarded choice for the only job, which needs all its epochs for certain."""
    state = State(kilowatt_cluster([hours_job(due_h, HOURS, weight_eur_per_h)], [gpus], [ONE, TWO, FOUR]))
    state.advance()
    state.begin_round(preemption=True)
    return int(guarded(state.board, 0, choice))


def test_a_choice_that_is_in_time_stays():
    assert [guard(choice, due_h=10.5) for choice in (0, 1, 2)] == [0, 1, 2]


def test_one_that_must_be_late_is_replaced_by_the_cheapest_that_is_not():
    assert guard(0, due_h=7.0) == 1  # 12 € of energy against 10 and 300 of tardiness
    assert guard(0, due_h=5.0) == guard(1, due_h=5.0) == 2


def test_it_stays_where_tardiness_is_cheaper_than_energy():
    assert guard(0, due_h=9.0, weight_eur_per_h=1.9) == 0  # an hour late costs 1.90 €, two GPUs cost 2 € more
    assert guard(0, due_h=9.0, weight_eur_per_h=2.1) == 1


def test_it_stays_where_all_are_late_or_what_is_in_time_does_not_fit():
    assert guard(0, due_h=3.0) == 0
    assert guard(0, due_h=5.0, gpus=2) == 0


def test_waiting_is_left_alone():
    assert guard(-1, due_h=7.0) == -1


def test_a_network_that_sets_controls_has_no_guard():
    with refused("network.guard", True):
        NetworkConfig("control-set", guard=True)
    base = TrainingConfig()
    assert VARIANTS["guarded"].config(base, 1000, 0).network.guard
    assert isinstance(VARIANTS["control-set"].config(base, 1000, 0).agent, EsConfig)
