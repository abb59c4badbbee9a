"""Policies: the instances that they fit, their memory, and how rounds ask them."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from gpusched_baselines import DispatchPolicy, edf
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, simulate
from gpusched_env.errors import InputError
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import FREE_COLUMNS, AskingSettings, can_decide, check_fit, memory_columns
from gpusched_experiments.report import compare
from gpusched_experiments.report.warm_up import tiny_instance, warm_up
from instances import three_jobs
from refusals import refused


class OnlyTheThreeJobs:
    """Decides as EDF does, on instances of one name, and counts its rounds."""

    name, preemption = "choosy", False

    def __init__(self) -> None:
        self.rounds = 0

    def check(self, instance):
        if instance.name != "three-jobs":
            raise InputError("instance.name", instance.name, "three-jobs")

    def decide(self, view, rng):
        self.rounds += 1
        edf().decide(view, rng)


def test_a_policy_that_does_not_fit_is_named_with_what_it_lacks_and_one_without_a_check_fits_everything():
    check_fit([edf(), OnlyTheThreeJobs()], three_jobs())
    with refused("choosy: instance.name", "warm-up"):
        check_fit([edf(), OnlyTheThreeJobs()], tiny_instance())
    assert can_decide(edf(), tiny_instance())
    assert can_decide(OnlyTheThreeJobs(), three_jobs())
    assert not can_decide(OnlyTheThreeJobs(), tiny_instance())


def test_a_comparison_begins_no_run_if_a_policy_does_not_fit_one_of_the_instances():
    policy, runs = OnlyTheThreeJobs(), []
    with refused("choosy: instance.name", "warm-up"):
        compare([edf(), policy], lambda seed: tiny_instance() if seed else three_jobs(), [0, 1], on_run=runs.append)
    assert (runs, policy.rounds) == ([], 0)


def test_a_policy_that_does_not_fit_the_warm_up_is_left_out_of_it_and_compared():
    policy = OnlyTheThreeJobs()
    warm_up([policy])
    assert policy.rounds == 0
    first, second = compare([edf(), policy], lambda _: three_jobs(), [0])
    assert (first.policy, second.policy) == ("edf", "choosy")
    assert first.total_eur == second.total_eur
    assert policy.rounds == second.rounds


class Remembers(DispatchPolicy):
    """EDF that asks for as many columns as its order says."""

    columns = 40

    def memory_columns(self, instance):
        return self.columns * len(instance.gpu_types)


class TooFew(Remembers):
    columns = 0


def columns_seen(policy) -> set[int]:
    seen = set()
    simulate(three_jobs(), policy, on_round=lambda state: seen.add(state.view.memory.shape[1]))
    return seen


def test_a_policy_gets_three_columns_for_each_gpu_type_beside_the_free_ones_or_as_many_as_it_needs():
    assert columns_seen(DispatchPolicy("edf", "due")) == {FREE_COLUMNS + 3} == {26}
    assert State(three_jobs()).view.memory.shape == (3, 26)
    assert columns_seen(Remembers("edf", "due")) == {40}
    with refused("edf: memory_columns", 0):
        memory_columns(TooFew("edf", "due"), three_jobs())


def test_an_environment_has_room_for_controls_whichever_policy_chooses():
    env, vector = GpuClusterEnv(instance=three_jobs()), GpuClusterVectorEnv(1, instance=three_jobs())
    env.reset(seed=0)
    vector.reset(seed=0)
    assert env.unwrapped.view.memory.shape == vector.views[0].memory.shape == (3, 26 + 44 + 2)


WRONG = [
    ("preemption", 1, "True or False"),
    ("preemption", "yes", "True or False"),
    ("preemption", None, "True or False"),
    ("job_order", "size", "one of pressure, submission, due, weight"),
    ("job_order", ["due"], "one of pressure"),
    ("job_order", len, "one of pressure"),
    ("milestones", -1, ">= 0"),
    ("milestones", 1.5, "whole number"),
    ("milestones", True, "whole number"),
    ("idle_review_s", 0.0, "> 0"),
    ("idle_review_s", -1.0, "> 0"),
    ("idle_review_s", 1.1e12, "> 0"),
    ("idle_review_s", float("nan"), "> 0"),
    ("idle_review_s", "1 h", "> 0"),
    ("due_date_timers", 0, "True or False"),
    ("consolidation", np.array([True]), "True or False"),
]


@pytest.mark.parametrize(("field", "value", "allowed"), WRONG)
def test_a_wrong_setting_is_named_with_what_is_allowed(field, value, allowed):
    for make in (Asking, lambda **settings: GpuClusterEnv("tiny", **settings)):
        with refused(field, value, allowed):
            make(**{field: value})


def test_every_field_has_a_wrong_value_here_and_is_a_keyword_of_an_environment():
    assert {field for field, _, _ in WRONG} == {field.name for field in fields(Asking)}
    assert AskingSettings.__annotations__.keys() == {field.name for field in fields(Asking)}


def test_flags_of_numpy_are_flags_and_settings_never_change():
    asking = Asking(preemption=np.bool_(False), consolidation=np.bool_(True))
    assert (asking.preemption, asking.consolidation) == (False, True)
    assert isinstance(asking.preemption, bool)
    with pytest.raises(FrozenInstanceError):
        Asking().milestones = 2


def test_a_state_asks_as_it_is_told():
    asking = Asking(
        preemption=False, job_order="due", milestones=7, idle_review_s=60.0, due_date_timers=True, consolidation=True
    )
    board = State(three_jobs(), asking, review_s=5.0).board
    columns = [at.PREEMPTION, at.ORDER, at.MILESTONES, at.DUE_DATE_TIMERS, at.CONSOLIDATES]
    assert board.count[columns].tolist() == [0, 2, 7, 1, 1]
    assert board.clock[[at.IDLE_REVIEW, at.REVIEW]].tolist() == [60.0, 5.0]
    default = State(three_jobs(), Asking()).board
    assert default.count[columns].tolist() == [1, 0, 4, 0, 0]
    assert default.clock[[at.IDLE_REVIEW, at.REVIEW]].tolist() == [3600.0, np.inf]
