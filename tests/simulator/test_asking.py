"""How rounds ask: every setting is checked where it is made, and an environment takes the same ones."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from gpusched_env import GpuClusterEnv
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import AskingSettings
from instances import three_jobs
from refusals import refused

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


def test_every_field_has_a_wrong_value_here():
    assert {field for field, _, _ in WRONG} == {field.name for field in fields(Asking)}


def test_the_keywords_of_an_environment_are_the_fields():
    assert AskingSettings.__annotations__.keys() == {field.name for field in fields(Asking)}


def test_flags_of_numpy_are_flags():
    asking = Asking(preemption=np.bool_(False), consolidation=np.bool_(True))
    assert (asking.preemption, asking.consolidation) == (False, True)
    assert isinstance(asking.preemption, bool)


def test_settings_never_change():
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
