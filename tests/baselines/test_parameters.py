"""Parameters of policies that are out of their range."""

from dataclasses import replace
from functools import partial

import pytest

from gpusched_baselines import (
    AntMan,
    CapacityCurve,
    CappedStsX,
    CarbonScaler,
    DispatchPolicy,
    Fill,
    Gavel,
    GavelCost,
    LocalSearch,
    Pack,
    PathRelinking,
    PauseByPrice,
    RandomGreedy,
    SlackSlice,
    StartByPrice,
    Sts,
    StsX,
    TimeSlice,
    sept,
)
from gpusched_baselines.rollout_policy.policy import RolloutSettings
from refusals import refused

NAN = float("nan")
REFUSED = [
    (AntMan, {"most_busy": 0.0, "auto_after_s": -1.0, "promotes": 1}),
    (CappedStsX, {"rule": "half"}),
    (CapacityCurve, {"most_periods": 0}),
    (CarbonScaler, {"epochs": "most"}),
    (partial(DispatchPolicy, "x", "due"), {"epochs": "median"}),
    (Fill, {"classes": 11}),
    (Gavel, {"objective": "best", "round_s": 0.0, "reset_s": -1.0, "entities": 0, "within": "lifo"}),
    (GavelCost, {"epochs": "few"}),
    (LocalSearch, {"constructions": -1, "iterations": -1}),
    (LocalSearch, {"constructions": 1.5}),
    (Pack, {"light": 0.5, "most": -1}),
    (PathRelinking, {"constructions": -1, "elite": 0}),
    (PathRelinking, {"elite": 2.5}),
    (PauseByPrice, {"rule": "other"}),
    (RandomGreedy, {"epochs": "median"}),
    (RolloutSettings, {"first": 0, "challenger_samples": 1, "bases": ("edf",), "rounds": 0}),
    (RolloutSettings, {"bases": ()}),
    (SlackSlice, {"switching_share": 1.0, "least_quantum_s": 0.0, "margin": -0.1}),
    (StartByPrice, {"rule": "other", "reserved": 2.0}),
    (Sts, {"rank": "best", "solver": "gurobi"}),
    (StsX, {"full_nodes": -0.1}),
    (StsX, {"full_nodes": 1.1}),
    (StsX, {"full_nodes": NAN}),
    (TimeSlice, {"quantum_s": 0.0, "critical_eur_per_s": -1.0, "efficiency": -1.0}),
    (TimeSlice, {"critical_eur_per_s": NAN}),
    (partial(replace, sept()), {"work": "all", "due_scale": 0.0, "gpu_price": -1.0, "quantum": 0.0}),
    (partial(replace, sept()), {"quantum": 1.5}),
]
ALLOWED = {
    (CapacityCurve, "most_periods"): "a whole number",
    (CarbonScaler, "epochs"): "worst-case, mean",
    (PauseByPrice, "rule"): "threshold or cheapest",
    (StartByPrice, "reserved"): "a number from 0 to 1",
    (StartByPrice, "rule"): "one of lowest-slot",
    (Sts, "solver"): "one of exact, highs, ipopt, nlp, nlp-10",
}


def named(value: object) -> str:
    return getattr(value, "__name__", "made") if callable(value) else str(value)


@pytest.mark.parametrize(
    ("make", "field", "value"), [(make, *each) for make, wrong in REFUSED for each in wrong.items()], ids=named
)
def test_a_parameter_out_of_its_range_is_named(make, field, value):
    with refused(field, value, ALLOWED.get((make, field), "")):
        make(**{field: value})
