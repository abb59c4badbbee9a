"""The shipped policies by name, and what else is to be known of each: the one list of their names."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpusched_baselines.shipped_policy import ShippedPolicy
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpusched_env.simulator import Policy


def _make(place: str, *arguments: Any, **settings: Any) -> Callable[[], Policy]:
    """Return what imports and makes a policy, given as `module:name`: whoever lists policies loads none of them."""

    def make() -> Policy:
        module, _, name = place.partition(":")
        policy: Policy = getattr(import_module(f"gpusched_baselines.{module}"), name)(*arguments, **settings)
        return policy

    return make


GAVEL_OBJECTIVES = {
    "las": "max-min fairness of time on GPU types of unequal speed, by rounds",
    "makespan": "the jobs that are there are done soonest",
    "finish-time": "the worst time to completion, relative to that with a fair share, is least",
    "cost-slo": "most epochs per euro while due dates are met",
    "hierarchical": "max-min fairness by water filling, among entities and in them",
    "fifo": "in order, each on the fastest GPU type with room",
}
"""A line on every objective of Gavel."""

_ablation = partial(ShippedPolicy, origin="ours", usual=False, ablation_of="sts-x")
_index = partial(ShippedPolicy, origin="ours", usual=False)
_sharing = partial(ShippedPolicy, origin="ours", usual=False)
_solved = partial(ShippedPolicy, origin="ours", usual=False, compiled=False)


def _gavels(suffix: str, *, aware: bool) -> dict[str, ShippedPolicy]:
    """Make the records of Gavel's policies; those that take all GPU types for equally fast are ablations."""
    found = {}
    for objective, line in GAVEL_OBJECTIVES.items():
        of, name = f"gavel-{objective}", f"gavel-{objective}{suffix}"
        make = _make("gavel.policy:Gavel", objective, aware=aware, name=name)
        says, ablates = (f"Gavel: {line}", None) if aware else (f"{of} that takes all GPU types for equally fast", of)
        found[name] = _solved(make, says, ablation_of=ablates)
    return found


POLICIES: Mapping[str, ShippedPolicy] = MappingProxyType(
    {
        "fifo": ShippedPolicy(
            _make("dispatching.dispatch:fifo"),
            "First submitted, first served; the cheapest configuration that meets the due date",
            teacher=4,
        ),
        "edf": ShippedPolicy(
            _make("dispatching.dispatch:edf"),
            "Earliest due date first; the cheapest configuration that meets it",
            teacher=3,
            style=1,
        ),
        "edf-preemptive": ShippedPolicy(
            _make("dispatching.dispatch:edf_preemptive"),
            "EDF that places all jobs anew in every round: what preemption alone saves",
            origin="ours",
        ),
        "priority": ShippedPolicy(
            _make("dispatching.dispatch:priority"),
            "Largest tardiness weight first; the cheapest configuration that meets the due date",
            teacher=5,
        ),
        "greedy": ShippedPolicy(
            _make("dispatching.greedy:Greedy"),
            "All jobs anew by pressure; the cheapest configuration that meets the due date",
            style=3,
        ),
        "greedy-fill": ShippedPolicy(
            _make("dispatching.greedy:Greedy", fill=True),
            "Greedy, and then idle GPUs of a node go to the job that gains the most speed",
            origin="ours",
        ),
        "random-greedy": ShippedPolicy(
            _make("search.random_greedy:RandomGreedy"),
            "Greedy and up to 1,000 randomised constructions a round; the best by a proxy",
            slow=True,
            style=2,
        ),
        "random-greedy-fill": ShippedPolicy(
            _make("search.random_greedy:RandomGreedy", fill=True),
            "Random Greedy with passing on to the next best, and idle GPUs for the job that gains the most speed",
            origin="ours",
            usual=False,
            slow=True,
        ),
        "sts": ShippedPolicy(
            _make("sts.sts:Sts"),
            "Stochastic: plan each job against the distribution of its epochs, speed up if it survives",
            teacher=2,
            style=0,
        ),
        "sts-x": ShippedPolicy(
            _make("sts_x.policy:StsX"),
            "STS over all GPU types at once; tardiness and GPU-seconds have a price, and who can wait does",
            origin="ours",
            teacher=1,
            style=4,
        ),
        "look-ahead": ShippedPolicy(
            _make("look_ahead.policy:LookAhead"),
            "STS-X or ATC, whichever sampled roll-outs of the rounds to come favour, and changes that they favour",
            origin="ours",
            usual=False,
            compiled=False,
            teacher=6,
        ),
        "sts-published": ShippedPolicy(
            _make("sts.sts:Sts", rank="published", name="sts-published"),
            "STS with the published rank of GPU types: all alike on which a job has time enough",
            usual=False,
        ),
        "sts-ipopt": ShippedPolicy(
            _make("sts.sts:Sts", solver="ipopt", name="sts-ipopt"),
            "STS as published: ten iterations of Ipopt, used as they are",
            usual=False,
            compiled=False,
        ),
        "sts-highs": ShippedPolicy(
            _make("sts.sts:Sts", solver="highs", name="sts-highs"),
            "STS with HiGHS on the linear program over bins",
            origin="ours",
            usual=False,
            compiled=False,
        ),
        "edf-mean": ShippedPolicy(
            _make("dispatching.dispatch:edf_mean"),
            "EDF on mean instead of worst-case execution times",
            usual=False,
            style=6,
            worst_case="edf",
        ),
        "edf-conditional-mean": ShippedPolicy(
            _make("dispatching.dispatch:edf_conditional_mean"),
            "EDF on the execution times expected given the epochs done",
            origin="ours",
            usual=False,
            worst_case="edf",
        ),
        "random-greedy-mean": ShippedPolicy(
            _make("search.random_greedy:random_greedy_mean"),
            "Random Greedy on mean instead of worst-case execution times",
            usual=False,
            slow=True,
            style=5,
            worst_case="random-greedy",
        ),
        "random-greedy-conditional-mean": ShippedPolicy(
            _make("search.random_greedy:random_greedy_conditional_mean"),
            "Random Greedy on the execution times expected given the epochs done",
            origin="ours",
            usual=False,
            slow=True,
            worst_case="random-greedy",
        ),
        "local-search": ShippedPolicy(
            _make("search.local_search:LocalSearch"),
            "Random Greedy's best, improved by exchanges and moves of jobs as long as the proxy falls",
            origin="ours",
            usual=False,
            slow=True,
            style=7,
        ),
        "path-relinking": ShippedPolicy(
            _make("search.path_relinking:PathRelinking"),
            "The best of Random Greedy's ten best rounds and of the paths between them",
            origin="ours",
            usual=False,
            slow=True,
        ),
        "atc": _index(
            _make("index_rules.policy:atc"),
            "Weight per expected GPU-seconds left, less with slack, first; efficient configurations",
            worst_case="atc-worst",
        ),
        "atc-company": _index(
            _make("index_rules.policy:atc_company"),
            "ATC that plans shares of a GPU beside the company to be expected there",
        ),
        "atc-worst": _index(_make("index_rules.policy:atc_worst"), "ATC on the GPU-seconds left in the worst case"),
        "gittins": _index(
            _make("index_rules.policy:gittins"), "Weight per GPU-second at the best moment to give up first"
        ),
        "sept": _index(
            _make("index_rules.policy:sept"),
            "Weight per expected GPU-seconds left first; efficient configurations",
            worst_case="srpt-worst",
        ),
        "srpt-worst": _index(
            _make("index_rules.policy:srpt_worst"), "Weight per GPU-seconds left in the worst case first"
        ),
        "las": _index(_make("index_rules.policy:las"), "Least GPU-seconds attained per weight first, by quanta"),
        "time-slice": ShippedPolicy(
            _make("dispatching.time_slice:TimeSlice"),
            "Urgent jobs at once, the others in turns of a quantum, least GPU-seconds attained per weight first",
            origin="ours",
            usual=False,
            compiled=False,
        ),
        **_gavels("", aware=True),
        "gavel-cost": _solved(
            _make("gavel.policy:GavelCost"),
            "Gavel's least cost with due dates over all configurations, lateness priced",
        ),
        "antman": _sharing(
            _make("shared_gpus.antman:AntMan"),
            "AntMan: guaranteed jobs are hosts, by submission; opportunistic ones guests on the least busy GPU",
        ),
        "fill": _sharing(
            _make("shared_gpus.fill:Fill"),
            "As FIKIT: jobs of the highest class own GPUs; others fill the gaps where they are fastest",
        ),
        "pack": _sharing(
            _make("shared_gpus.pack:Pack"),
            "As Lucid: shortest first; two jobs on a GPU if their applications go together",
        ),
        **_gavels(":agnostic", aware=False),
        "hived": ShippedPolicy(
            _make("dispatching.hived:HiveD"),
            "FIFO in every tenant's virtual cluster of cells, and opportunistic jobs on what nobody uses",
            usual=False,
        ),
        "as-traced": ShippedPolicy(
            _make("dispatching.as_traced:AsTraced"),
            "The schedule that really ran: of traces that tell when jobs started, and on how many GPUs",
            origin="ours",
            usual=False,
            replays=True,
        ),
        "sts-x:alone-rates": _ablation(
            _make("sts_x.policy:StsX", full_nodes=0.0, name="sts-x:alone-rates"),
            "STS-X at the rates of a job alone on its node",
        ),
        "sts-x:no-waiting": _ablation(
            _make("sts_x.policy:StsX", waits=False, name="sts-x:no-waiting"), "STS-X in which no job with slack waits"
        ),
        "sts-x:no-consolidation": _ablation(
            _make("sts_x.policy:StsX", consolidates=False, name="sts-x:no-consolidation"),
            "STS-X in which no job leaves a node that the round can do without",
        ),
        "sts-x:no-spreading": _ablation(
            _make("sts_x.policy:StsX", spreads=False, name="sts-x:no-spreading"), "STS-X that leaves idle GPUs idle"
        ),
        "sts-x:guaranteed": _ablation(
            _make("sts_x.policy:StsX", guarantees=True, name="sts-x:guaranteed"),
            "STS-X that meets due dates whatever that costs",
        ),
        "sts-x:no-price": _ablation(
            _make("sts_x.policy:StsX", priced=False, name="sts-x:no-price"), "STS-X in which GPU-seconds have no price"
        ),
        "sts-x:by-slack": _ablation(
            _make("sts_x.policy:StsX", by_value=False, name="sts-x:by-slack"),
            "STS-X with jobs that must be late by slack too",
        ),
        "sts-x:moving": _ablation(
            _make("sts_x.policy:StsX", stays=False, name="sts-x:moving"), "STS-X in which jobs may move without need"
        ),
        "sts-x:worst-company": _ablation(
            _make("sts_x.policy:StsX", company=False, name="sts-x:worst-company"),
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
