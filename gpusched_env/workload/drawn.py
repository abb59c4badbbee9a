"""Random scenarios over a wide range of clusters, loads and due dates: where nobody tuned a policy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload.interference_model import offered_load
from gpusched_env.workload.maker import Maker
from gpusched_env.workload.scenario.reading import read_values
from gpusched_env.workload.scenario.scenario import Scenario
from gpusched_env.workload.scenario.scenario_toml import scenario_toml
from gpusched_env.workload.tables.applications import builtin_gpu_types

GPU_TYPES = ("H200", "H100", "A100", "L40S", "A10", "L4", "V100", "T4", "P100", "K80")
KINDS = {"plain": 18, "own": 12, "multi-node": 6, "sharing": 6, "tenants": 6}
"""Kinds of scenarios and how many of 48 are of each: measured applications on single nodes; applications of their own,
half of them on rented GPUs; jobs over several nodes; shared GPUs; two tenants with quotas."""
RESTARTS_S = (0.0, 30.0, 120.0, 300.0, 1800.0, "measured")
FAMILIES = ("histogram", "geometric", "beta", "two-point", "lognormal")
SPEED = {"H200": 6.0, "H100": 5.0, "A100": 3.0, "L40S": 2.2, "A10": 1.3, "L4": 1.0, "V100": 1.7, "T4": 0.65,
         "P100": 1.0, "K80": 0.3}  # fmt: skip
"""Rough speed of a GPU beside an L4, from which times of drawn applications are drawn."""
RENT_EUR_PER_H = {"H200": 4.0, "H100": 3.5, "A100": 2.0, "L40S": 1.2, "A10": 0.8, "L4": 0.7, "V100": 1.0, "T4": 0.5,
                  "P100": 0.6, "K80": 0.3}  # fmt: skip
"""Rough price of a rented GPU [€/h], which draws multiply by 0.5 to 1.5."""
Settings = dict[str, Any]


def draw_scenario(seed: int, index: int, most_jobs: int = 500) -> Scenario:
    """Draw a scenario: its cluster, jobs, load, due dates, weights, prices and restarts.

    Loads are log-uniform in 0.06 to 1.9 (`offered_load`), slacks in 0.02 to 3.2, smallest tardiness weights in 1e-6 to
    3e-3 €/s, numbers of jobs in 20 to 500 (at most 200 on shared GPUs, 150 on several nodes), and of nodes in 1 to 100
    (at most 20 on several nodes, 16 with shares or tenants). The same seed and index draw the same scenario.

    Args:
        seed: Seed of the draw, a whole number from 0 to 2^63 - 1.
        index: Number of the scenario in the draw, ≥ 0.
        most_jobs: Most jobs, ≥ 1. Where the draw has more, the scenario has so many, at the same gaps.

    Raises:
        InputError: An argument is out of its range.
    """
    checks.seed(seed)
    checks.whole("most_jobs", most_jobs)
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise InputError("index", index, "a whole number >= 0")
    rng = np.random.default_rng([int(seed), index])
    kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
    rented = kind == "own" and rng.random() < 0.5
    pools = _pools(rng, kind)
    settings: Settings = {
        "restart_s": RESTARTS_S[rng.integers(len(RESTARTS_S) - (kind != "plain"))],
        "cluster.pools": [{"gpu_type": f"{v}-rent" if rented else v, "nodes": n} for v, n in pools.items()],
        "jobs.count": _whole(rng, 20, {"sharing": 200, "multi-node": 150}.get(kind, 500)),
        "due_dates.slack": _log(rng, 0.02, 3.2),
        "prices.energy_price_eur_per_kwh": _log(rng, 0.03, 0.6),
        "prices.pue": round(rng.uniform(1.1, 1.6), 2),
        "epochs.family": str(rng.choice(FAMILIES)),
    }
    weight = _log(rng, 1e-6, 3e-3)
    settings |= {"weights.min_eur_per_s": weight, "weights.max_eur_per_s": weight * rng.uniform(1.2, 10.0)}
    settings |= _arrivals(rng)
    if kind == "own":
        settings |= _own(rng, list(pools), rented=rented)
    elif kind == "sharing":
        interference, placement = str(rng.choice(["measured", "random"])), str(rng.choice(["fastest", "fullest"]))
        if interference == "random":  # then all GPUs are equally fast
            placement = "fullest"
        settings |= {"sharing.interference": interference, "sharing.placement": placement}
    elif kind == "tenants":
        settings |= _tenants(rng, pools)
    load = _log(rng, 0.06, 1.9)
    settings["name"] = f"drawn-{seed}-{index}"
    settings["description"] = f"Drawn with seed {seed}, number {index}: {kind}, load {load:.2f}."
    base = Scenario(**read_values({"multi-node": "multi-node", "sharing": "sharing"}.get(kind, "default")))
    scenario = _at_load(base.replace(settings), load)
    jobs = min(most_jobs, scenario.jobs.count)
    return scenario.replace({"jobs.count": jobs, "description": settings["description"]})


@cache
def drawn_toml(seed: int, index: int) -> str:
    """Return the file of a drawn scenario."""
    return scenario_toml(draw_scenario(seed, index))


def _at_load(scenario: Scenario, load: float) -> Scenario:
    for _ in range(2):
        gap = scenario.arrivals.mean_gap_s or 1000.0
        loads = [offered_load(Maker(scenario).make(seed)) for seed in range(3)]
        scenario = scenario.replace({"arrivals.mean_gap_s": round(gap * float(np.mean(loads)) / load, 3)})
    return scenario


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number of four significant digits, log-uniform."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.4g}")


def _whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def _pools(rng: np.random.Generator, kind: str) -> dict[str, int]:
    if kind == "multi-node":
        types = [["A100"], ["T4"], ["T4", "A100"]][rng.integers(3)]
        return {v: max(4, _whole(rng, 4, 20 // len(types))) for v in types}
    names = [str(v) for v in rng.permutation(GPU_TYPES)[: rng.integers(1, 5)]]
    most = 16 if kind in {"sharing", "tenants"} else 60
    return {v: _whole(rng, 1, max(1, most // len(names))) for v in names}


def _arrivals(rng: np.random.Generator) -> Settings:
    kind = str(rng.choice(["exponential", "poisson", "profile"], p=[0.7, 0.2, 0.1]))
    settings: Settings = {"arrivals.kind": kind, "arrivals.mean_gap_s": 1000.0, "arrivals.lambda_s": None}
    if kind == "profile":
        settings["arrivals.profile"] = str(rng.choice(["philly", "openb"]))
    return settings


def _own(rng: np.random.Generator, types: list[str], *, rented: bool) -> Settings:
    """Draw one to five applications with times of their own, and rents of GPUs."""
    known, applications = builtin_gpu_types(), []
    for number in range(rng.integers(1, 6)):
        exponent, work = rng.uniform(0.3, 1.0), _log(rng, 60.0, 3000.0)
        seconds = {}
        for v in types:
            one = work / SPEED[v] * rng.uniform(0.7, 1.4)
            sizes = [g for g in (1, 2, 4, 8) if g <= known[v].max_gpus_per_node]
            seconds[f"{v}-rent" if rented else v] = {str(g): round(one / g**exponent, 3) for g in sizes}
        applications.append(
            {
                "name": f"own-{number}",
                "max_epochs": _whole(rng, 10, 250),
                "memory_gib": min(float(rng.choice([4.0, 10.0, 14.0])), max(known[v].memory_gib for v in types)),
                "seconds_per_epoch": seconds,
            }
        )
    names = tuple(a["name"] for a in applications)
    settings: Settings = {"applications": applications, "jobs.applications": names, "jobs.gpu_counts": (1, 2, 4, 8)}
    if rented:
        settings["gpu_types"] = [_rented(rng, v, known[v].max_gpus_per_node) for v in types]
    return settings


def _rented(rng: np.random.Generator, name: str, gpus: int) -> Settings:
    rent = round(RENT_EUR_PER_H[name] * gpus * rng.uniform(0.5, 1.5), 2)
    return {"name": f"{name}-rent", "like": name, "node_eur_per_h": [rent] * gpus}


def _tenants(rng: np.random.Generator, pools: dict[str, int]) -> Settings:
    """Two tenants; each has a quota of half of the GPUs of every type, one node at least."""
    known = builtin_gpu_types()
    pools = {v: max(2, nodes) for v, nodes in pools.items()}
    cells = {v: [known[v].max_gpus_per_node] * (nodes // 2) for v, nodes in pools.items()}
    share = round(rng.uniform(0.5, 4.0), 2)
    return {
        "tenancy": "quota",
        "tenants": [{"name": "a", "share": share, "cells": cells}, {"name": "b", "share": 1.0, "cells": cells}],
        "cluster.pools": [{"gpu_type": v, "nodes": n} for v, n in pools.items()],
    }
