"""The shipped policies by name, and what else is to be known of each: the one list of their names."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpusched_baselines.dispatching.as_traced import AsTraced
from gpusched_baselines.dispatching.dispatch import (
    edf,
    edf_conditional_mean,
    edf_mean,
    edf_preemptive,
    fifo,
    priority,
)
from gpusched_baselines.dispatching.greedy import Greedy
from gpusched_baselines.dispatching.hived import HiveD
from gpusched_baselines.dispatching.time_slice import TimeSlice
from gpusched_baselines.gavel import Gavel, GavelCost
from gpusched_baselines.gavel.policy import OBJECTIVES
from gpusched_baselines.index_rules import atc, atc_company, atc_worst, gittins, las, sept, srpt_worst
from gpusched_baselines.look_ahead import LookAhead
from gpusched_baselines.search.local_search import LocalSearch
from gpusched_baselines.search.path_relinking import PathRelinking
from gpusched_baselines.search.random_greedy import (
    RandomGreedy,
    random_greedy_conditional_mean,
    random_greedy_mean,
)
from gpusched_baselines.shared_gpus.antman import AntMan
from gpusched_baselines.shared_gpus.fill import Fill
from gpusched_baselines.shared_gpus.pack import Pack
from gpusched_baselines.shipped_policy import ShippedPolicy
from gpusched_baselines.sts.sts import Sts
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.simulator import Policy

_ablation = partial(ShippedPolicy, origin="ours", usual=False, ablation_of="sts-x")
_index = partial(ShippedPolicy, origin="ours", usual=False)
_sharing = partial(ShippedPolicy, origin="ours", usual=False)
_solved = partial(ShippedPolicy, origin="ours", usual=False, compiled=False)


def _gavels(suffix: str, *, aware: bool) -> dict[str, ShippedPolicy]:
    """Make the records of Gavel's policies; those that take all GPU types for equally fast are ablations."""
    found = {}
    for objective, line in OBJECTIVES.items():
        of, name = f"gavel-{objective}", f"gavel-{objective}{suffix}"
        make = partial(Gavel, objective, aware=aware, name=name)
        says, ablates = (f"Gavel: {line}", None) if aware else (f"{of} that takes all GPU types for equally fast", of)
        found[name] = _solved(make, says, ablation_of=ablates)
    return found


POLICIES: Mapping[str, ShippedPolicy] = MappingProxyType(
    {
        "fifo": ShippedPolicy(
            fifo, "First submitted, first served; the cheapest configuration that meets the due date", teacher=4
        ),
        "edf": ShippedPolicy(
            edf, "Earliest due date first; the cheapest configuration that meets it", teacher=3, style=1
        ),
        "edf-preemptive": ShippedPolicy(
            edf_preemptive, "EDF that places all jobs anew in every round: what preemption alone saves", origin="ours"
        ),
        "priority": ShippedPolicy(
            priority, "Largest tardiness weight first; the cheapest configuration that meets the due date", teacher=5
        ),
        "greedy": ShippedPolicy(
            Greedy, "All jobs anew by pressure; the cheapest configuration that meets the due date", style=3
        ),
        "greedy-fill": ShippedPolicy(
            partial(Greedy, fill=True),
            "Greedy, and then idle GPUs of a node go to the job that gains the most speed",
            origin="ours",
        ),
        "random-greedy": ShippedPolicy(
            RandomGreedy,
            "Greedy and up to 1,000 randomised constructions a round; the best by a proxy",
            slow=True,
            style=2,
        ),
        "random-greedy-fill": ShippedPolicy(
            partial(RandomGreedy, fill=True),
            "Random Greedy with passing on to the next best, and idle GPUs for the job that gains the most speed",
            origin="ours",
            usual=False,
            slow=True,
        ),
        "sts": ShippedPolicy(
            Sts,
            "Stochastic: plan each job against the distribution of its epochs, speed up if it survives",
            teacher=2,
            style=0,
        ),
        "sts-x": ShippedPolicy(
            StsX,
            "STS over all GPU types at once; tardiness and GPU-seconds have a price, and who can wait does",
            origin="ours",
            teacher=1,
            style=4,
        ),
        "look-ahead": ShippedPolicy(
            LookAhead,
            "STS-X or ATC, whichever sampled roll-outs of the rounds to come favour, and changes that they favour",
            origin="ours",
            usual=False,
            compiled=False,
            teacher=6,
        ),
        "sts-published": ShippedPolicy(
            partial(Sts, rank="published", name="sts-published"),
            "STS with the published rank of GPU types: all alike on which a job has time enough",
            usual=False,
        ),
        "sts-ipopt": ShippedPolicy(
            partial(Sts, solver="ipopt", name="sts-ipopt"),
            "STS as published: ten iterations of Ipopt, used as they are",
            usual=False,
            compiled=False,
        ),
        "sts-highs": ShippedPolicy(
            partial(Sts, solver="highs", name="sts-highs"),
            "STS with HiGHS on the linear program over bins",
            origin="ours",
            usual=False,
            compiled=False,
        ),
        "edf-mean": ShippedPolicy(
            edf_mean,
            "EDF on mean instead of worst-case execution times",
            usual=False,
            style=6,
            worst_case="edf",
        ),
        "edf-conditional-mean": ShippedPolicy(
            edf_conditional_mean,
            "EDF on the execution times expected given the epochs done",
            origin="ours",
            usual=False,
            worst_case="edf",
        ),
        "random-greedy-mean": ShippedPolicy(
            random_greedy_mean,
            "Random Greedy on mean instead of worst-case execution times",
            usual=False,
            slow=True,
            style=5,
            worst_case="random-greedy",
        ),
        "random-greedy-conditional-mean": ShippedPolicy(
            random_greedy_conditional_mean,
            "Random Greedy on the execution times expected given the epochs done",
            origin="ours",
            usual=False,
            slow=True,
            worst_case="random-greedy",
        ),
        "local-search": ShippedPolicy(
            LocalSearch,
            "Random Greedy's best, improved by exchanges and moves of jobs as long as the proxy falls",
            origin="ours",
            usual=False,
            slow=True,
            style=7,
        ),
        "path-relinking": ShippedPolicy(
            PathRelinking,
            "The best of Random Greedy's ten best rounds and of the paths between them",
            origin="ours",
            usual=False,
            slow=True,
        ),
        "atc": _index(
            atc,
            "Weight per expected GPU-seconds left, less with slack, first; efficient configurations",
            worst_case="atc-worst",
        ),
        "atc-company": _index(atc_company, "ATC that plans shares of a GPU beside the company to be expected there"),
        "atc-worst": _index(atc_worst, "ATC on the GPU-seconds left in the worst case"),
        "gittins": _index(gittins, "Weight per GPU-second at the best moment to give up first"),
        "sept": _index(
            sept, "Weight per expected GPU-seconds left first; efficient configurations", worst_case="srpt-worst"
        ),
        "srpt-worst": _index(srpt_worst, "Weight per GPU-seconds left in the worst case first"),
        "las": _index(las, "Least GPU-seconds attained per weight first, by quanta"),
        "time-slice": ShippedPolicy(
            TimeSlice,
            "Urgent jobs at once, the others in turns of a quantum, least GPU-seconds attained per weight first",
            origin="ours",
            usual=False,
            compiled=False,
        ),
        **_gavels("", aware=True),
        "gavel-cost": _solved(GavelCost, "Gavel's least cost with due dates over all configurations, lateness priced"),
        "antman": _sharing(
            AntMan, "AntMan: guaranteed jobs are hosts, by submission; opportunistic ones guests on the least busy GPU"
        ),
        "fill": _sharing(
            Fill, "As FIKIT: jobs of the highest class own GPUs; others fill the gaps where they are fastest"
        ),
        "pack": _sharing(Pack, "As Lucid: shortest first; two jobs on a GPU if their applications go together"),
        **_gavels(":agnostic", aware=False),
        "hived": ShippedPolicy(
            HiveD,
            "FIFO in every tenant's virtual cluster of cells, and opportunistic jobs on what nobody uses",
            usual=False,
        ),
        "as-traced": ShippedPolicy(
            AsTraced,
            "The schedule that really ran: of traces that tell when jobs started, and on how many GPUs",
            origin="ours",
            usual=False,
            replays=True,
        ),
        "sts-x:alone-rates": _ablation(
            partial(StsX, full_nodes=0.0, name="sts-x:alone-rates"),
            "STS-X at the rates of a job alone on its node",
        ),
        "sts-x:no-waiting": _ablation(
            partial(StsX, waits=False, name="sts-x:no-waiting"), "STS-X in which no job with slack waits"
        ),
        "sts-x:no-consolidation": _ablation(
            partial(StsX, consolidates=False, name="sts-x:no-consolidation"),
            "STS-X in which no job leaves a node that the round can do without",
        ),
        "sts-x:no-spreading": _ablation(
            partial(StsX, spreads=False, name="sts-x:no-spreading"), "STS-X that leaves idle GPUs idle"
        ),
        "sts-x:guaranteed": _ablation(
            partial(StsX, guarantees=True, name="sts-x:guaranteed"), "STS-X that meets due dates whatever that costs"
        ),
        "sts-x:no-price": _ablation(
            partial(StsX, priced=False, name="sts-x:no-price"), "STS-X in which GPU-seconds have no price"
        ),
        "sts-x:by-slack": _ablation(
            partial(StsX, by_value=False, name="sts-x:by-slack"), "STS-X with jobs that must be late by slack too"
        ),
        "sts-x:moving": _ablation(
            partial(StsX, stays=False, name="sts-x:moving"), "STS-X in which jobs may move without need"
        ),
        "sts-x:worst-company": _ablation(
            partial(StsX, company=False, name="sts-x:worst-company"),
            "STS-X that plans shares of a GPU beside the worst neighbours there can be",
        ),
    }
)
"""Every name that `make_policy` knows, in the order of tables."""


def policy_names() -> tuple[str, ...]:
    """List the names of the shipped policies, but of what replays a trace: those that decide on any workload."""
    return tuple(name for name, shipped in POLICIES.items() if shipped.ablation_of is None and not shipped.replays)


def usual_policy_names() -> tuple[str, ...]:
    """List the names of the policies that are compared if none are named: all but slow ones and variants."""
    return tuple(name for name, shipped in POLICIES.items() if shipped.usual)


def ablation_names(of: str) -> tuple[str, ...]:
    """List the names of what the policy `of` is without one of its parts."""
    return tuple(name for name, shipped in POLICIES.items() if shipped.ablation_of == of)


def teacher_names() -> tuple[str, ...]:
    """List the names of the policies that an agent may imitate, the best first."""
    places = {shipped.teacher: name for name, shipped in POLICIES.items() if shipped.teacher is not None}
    return tuple(places[place] for place in sorted(places))


def policy_descriptions() -> dict[str, str]:
    """Give a line on every shipped policy, by name; those that replay a trace stand last."""
    replays = [name for name, shipped in POLICIES.items() if shipped.replays]
    return {name: POLICIES[name].line for name in (*policy_names(), *replays)}


def make_policy(name: str) -> Policy:
    """Make the policy `name` with its defaults.

    Raises:
        InputError: There is no such policy.
    """
    if name not in POLICIES:
        raise InputError("policy", name, f"one of {', '.join(policy_descriptions())}")
    return POLICIES[name].make()
