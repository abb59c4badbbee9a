"""The shipped policies by name, with their descriptions: the only list of their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from gpusched_env.errors import InputError, nearest_first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.simulator import Policy


Faithful = Literal["conformed", "modelled", "named after", "own"]
FAITHFUL: Mapping[Faithful, str] = MappingProxyType(
    {
        "conformed": "its decisions or figures agree with the program or the published answers of its authors",
        "modelled": "written from the published rules; not compared with a program, or some answers differ",
        "named after": "takes an idea of the source",
        "own": "made in this project",
    }
)
"""What a policy has to do with its source, the most faithful first."""


@dataclass(frozen=True, slots=True)
class ShippedPolicy:
    """A policy that has a name, and what lists of policies show of it.

    Attributes:
        place: Where it is made, as `module:name` in this package: listing policies loads none of them.
        line: One line on what it does.
        settings: The settings with which it is made; all others are its defaults.
        source: The paper or system from which it is, in short; "own" if it is from none.
        faithful: What it has to do with that, a word of `FAITHFUL`.
        usual: Whether a comparison that names no policies includes it.
        on_clusters: Whether it does so only on a trace of a cluster: what operators use there.
        slow: Whether it tries a thousand constructions a round: it runs on fewer seeds where clusters are large.
        compiled: Whether its rounds are compiled as a whole; else they take minutes where clusters are large.
        style: Its place among the colours and marks of figures, from 0; with None it gets one that is left.
        ablation_of: The policy from which it differs in one part; lists of policies do not contain ablations.
        replays: Whether it replays the schedule of a trace. Only traces with start times have one, so lists of
            policies for any workload do not contain it.
        worst_case: The policy from which it differs only by planning on mean or expected, not worst-case, times.
        simulated_only: Whether its memory has numbers of jobs of the run, which requests to a service number otherwise.
    """

    place: str
    line: str
    settings: Mapping[str, object] = field(default_factory=dict)
    source: str = "own"
    faithful: Faithful = "own"
    usual: bool = True
    on_clusters: bool = False
    slow: bool = False
    compiled: bool = True
    style: int | None = None
    replays: bool = False
    ablation_of: str | None = None
    worst_case: str | None = None
    simulated_only: bool = False

    def make(self) -> Policy:
        module, _, name = self.place.partition(":")
        policy: Policy = getattr(import_module(f"gpusched_baselines.{module}"), name)(**self.settings)
        return policy


GAVEL_OBJECTIVES = {
    "las": "max-min fairness of time on GPU types of unequal speed, by rounds",
    "makespan": "least makespan of the active jobs",
    "finish-time": "least worst-case ratio of the time to completion to that with a fair share",
    "cost-slo": "most epochs per euro while due dates are met",
    "hierarchical": "max-min fairness by water filling, between entities and within them",
    "fifo": "in order, each on the fastest GPU type with free capacity",
}
"""A line on every objective of Gavel."""

_variant = partial(ShippedPolicy, usual=False)
_solved = partial(_variant, compiled=False)

_STS = "Filippini 2024"
_SEARCHES = "Filippini 2022"
_GAVEL = "Gavel 2020"
_GAIA = "GAIA 2024"
_GAVELS_OWN_ANSWERS = {"las", "makespan", "cost-slo", "fifo"}
"""Objectives whose values or figures agree with those of Gavel's program."""


def _gavels(suffix: str, *, aware: bool) -> dict[str, ShippedPolicy]:
    """Make the records of Gavel's policies; those that treat all GPU types as equally fast are ablations."""
    found = {}
    for objective, line in GAVEL_OBJECTIVES.items():
        of, name = f"gavel:{objective}", f"gavel:{objective}{suffix}"
        shown, ablates = (f"Gavel: {line}", None) if aware else (f"{of} that treats all GPU types as equally fast", of)
        settings = {"objective": objective, "aware": aware, "name": name}
        faithful: Faithful = "conformed" if aware and objective in _GAVELS_OWN_ANSWERS else "modelled"
        found[name] = _solved("gavel.policy:Gavel", shown, settings, _GAVEL, faithful, ablation_of=ablates)
    return found


_START_RULES = {
    "lowest-slot": "GAIA: starts in the cheapest hour within the waiting limit",
    "lowest-window": "GAIA: starts where the price over its mean length is least within the waiting limit",
    "carbon-time": "GAIA: starts where most is saved per hour until the mean end, within the waiting limit",
}
"""A line on every rule of GAIA that chooses one start."""


_WITHOUT: dict[str, tuple[str, dict[str, object]]] = {
    "alone-rates": ("STS-X at the rates of a job alone on its node", {"full_nodes": 0.0}),
    "no-waiting": ("STS-X in which no job with slack waits", {"waits": False}),
    "guaranteed": ("STS-X that meets due dates at any cost", {"guarantees": True}),
    "no-price": ("STS-X in which GPU-seconds have no price", {"priced": False}),
    "price-blind": ("STS-X that plans as if energy cost the same at all times", {"by_price": False}),
    "worst-co-runners": (
        "STS-X that plans shares of a GPU with the worst possible co-runners",
        {"co_located": False},
    ),
}
"""STS-X without one of its parts: a line on it, and the setting. Most parts have no setting."""


def _without(part: str, line: str, setting: dict[str, object]) -> ShippedPolicy:
    settings = {**setting, "name": f"sts-x:{part}"}
    return _variant("sts_x.policy:StsX", line, settings, ablation_of="sts-x")


POLICIES: Mapping[str, ShippedPolicy] = MappingProxyType(
    {
        "fifo": ShippedPolicy(
            "dispatching.dispatch:fifo",
            "By submission; a job that does not fit lets later ones pass; the cheapest configuration that is in time",
            source=_STS,
            faithful="conformed",
        ),
        "edf": ShippedPolicy(
            "dispatching.dispatch:edf",
            "Earliest due date first; the cheapest configuration that meets it",
            source=_STS,
            faithful="conformed",
            style=1,
        ),
        "edf:preemptive": ShippedPolicy(
            "dispatching.dispatch:edf_preemptive",
            "EDF that places all jobs again in every round; shows what preemption alone saves",
        ),
        "priority": ShippedPolicy(
            "dispatching.dispatch:priority",
            "Largest tardiness weight first; the cheapest configuration that meets the due date",
            source=_STS,
            faithful="conformed",
        ),
        "greedy": ShippedPolicy(
            "dispatching.dispatch:Greedy",
            "Places all jobs again, by pressure; the cheapest configuration that meets the due date",
            source=_STS,
            faithful="conformed",
            style=3,
        ),
        "greedy:fill": ShippedPolicy(
            "dispatching.dispatch:Greedy",
            "Greedy, and then idle GPUs of a node go to the job that gains the most speed",
            {"fill": True},
        ),
        "random-greedy": ShippedPolicy(
            "search.constructions:RandomGreedy",
            "Best of Greedy and up to 1,000 randomised constructions a round, by a proxy cost",
            source=_STS,
            faithful="modelled",
            slow=True,
            style=2,
        ),
        "random-greedy:fill": _variant(
            "search.constructions:RandomGreedy",
            "Random Greedy that tries the next best choices, and gives idle GPUs to the job that gains the most speed",
            {"fill": True},
            slow=True,
        ),
        "sts": ShippedPolicy(
            "sts:Sts",
            "Plans each job against the distribution of its epochs: starts slow, and speeds up if the job goes on",
            source=_STS,
            faithful="modelled",
            style=0,
        ),
        "sts:priced": ShippedPolicy(
            "sts_priced:StsPriced",
            "STS whose plans follow the prices of energy by period, and may pause until energy is cheaper",
            usual=False,
        ),
        "sts-x": ShippedPolicy(
            "sts_x.policy:StsX",
            "STS over all GPU types at once; tardiness, GPU time and capped power have prices; jobs may wait",
            style=4,
        ),
        "sts-x:tuned": _solved(
            "self_tuning.policy:SelfTunedStsX",
            "STS-X that is tuned in its own run, by simulations of workloads that are resampled from the jobs so far",
        ),
        "rollout": _solved(
            "rollout_policy.policy:RolloutPolicy",
            "The cheapest of STS-X, ATC and changes of their plans, by sampled simulations of the next rounds",
            source="Bertsekas 1997",
            faithful="named after",
        ),
        "sts:published": ShippedPolicy(
            "sts:Sts",
            "STS with the published rank of GPU types: all types that meet the due date rank equal",
            {"rank": "published", "name": "sts:published"},
            source=_STS,
            faithful="modelled",
            usual=False,
        ),
        "sts:ipopt": ShippedPolicy(
            "sts:Sts",
            "STS as published: the result of ten iterations of Ipopt",
            {"solver": "ipopt", "name": "sts:ipopt"},
            source=_STS,
            faithful="modelled",
            usual=False,
            compiled=False,
        ),
        "sts:highs": _solved(
            "sts:Sts",
            "STS with HiGHS on the linear program over bins",
            {"solver": "highs", "name": "sts:highs"},
        ),
        "edf:mean": ShippedPolicy(
            "dispatching.dispatch:edf_mean",
            "EDF on mean instead of worst-case execution times",
            source=_STS,
            faithful="conformed",
            usual=False,
            style=6,
            worst_case="edf",
        ),
        "edf:conditional-mean": _variant(
            "dispatching.dispatch:edf_conditional_mean",
            "EDF on the execution times expected given the epochs done",
            worst_case="edf",
        ),
        "random-greedy:mean": ShippedPolicy(
            "search.constructions:random_greedy_mean",
            "Random Greedy on mean instead of worst-case execution times",
            source=_STS,
            faithful="modelled",
            usual=False,
            slow=True,
            style=5,
            worst_case="random-greedy",
        ),
        "random-greedy:conditional-mean": _variant(
            "search.constructions:random_greedy_conditional_mean",
            "Random Greedy on the execution times expected given the epochs done",
            slow=True,
            worst_case="random-greedy",
        ),
        "local-search": _variant(
            "search.path_relinking:LocalSearch",
            "Random Greedy's best, improved by exchanges and moves of jobs while the proxy cost falls",
            source=_SEARCHES,
            faithful="named after",
            slow=True,
            style=7,
        ),
        "path-relinking": _variant(
            "search.path_relinking:PathRelinking",
            "The best of Random Greedy's ten best rounds and of the paths between them",
            source=_SEARCHES,
            faithful="named after",
            slow=True,
        ),
        "atc": _variant(
            "index_rules.policy:atc",
            "Largest weight per expected GPU-seconds left first, discounted by slack; efficient configurations",
            source="Vepsalainen 1987",
            faithful="named after",
            worst_case="atc:worst",
        ),
        "atc:co-located": _variant(
            "index_rules.policy:atc_co_located",
            "ATC that plans shares of a GPU with the expected slowdown of co-runners",
            source="Vepsalainen 1987",
            faithful="named after",
        ),
        "atc:worst": _variant(
            "index_rules.policy:atc_worst",
            "ATC on the GPU-seconds left in the worst case",
            source="Vepsalainen 1987",
            faithful="named after",
        ),
        "gittins": _variant(
            "index_rules.policy:gittins",
            "Gittins index: largest weight per GPU-second at the best stopping time first",
            source="Gittins 1979",
            faithful="named after",
        ),
        "sept": _variant(
            "index_rules.policy:sept",
            "Largest weight per expected GPU-seconds left first; efficient configurations",
            source="Sevcik 1974",
            faithful="named after",
            worst_case="sept:worst",
        ),
        "sept:worst": _variant(
            "index_rules.policy:srpt_worst",
            "Largest weight per GPU-seconds left in the worst case first",
            source="Schrage 1968",
            faithful="named after",
        ),
        "las": _variant(
            "index_rules.policy:las",
            "Least GPU-seconds attained per weight first, by quanta",
            source="Nuyens 2008",
            faithful="named after",
        ),
        "zeus-limit": _variant(
            "dispatching.zeus_limit:ZeusLimit",
            "Preemptive EDF; each application has the power limit with which its GPUs draw least energy, as in Zeus",
            source="Zeus 2023",
            faithful="named after",
        ),
        "zeus-limit:balanced": _variant(
            "dispatching.zeus_limit:ZeusLimit",
            "The same with equal weights of energy and of time at full power",
            {"eta": 0.5, "name": "zeus-limit:balanced"},
            source="Zeus 2023",
            faithful="named after",
        ),
        "tiresias": _variant(
            "dispatching.tiresias:Tiresias",
            "Tiresias: queues by the GPU-seconds attained, first come, first served within a queue",
            source="Tiresias 2019",
            faithful="modelled",
        ),
        "time-slice": _solved(
            "dispatching.time_slice:TimeSlice",
            "Critical jobs at once; the others take turns of a quantum, least GPU-seconds attained per weight first",
        ),
        "time-slice:slack": _solved(
            "dispatching.slack_slice:SlackSlice",
            "Jobs are preempted at the latest start of another; turns as long as switching is at most 5 % of the time",
        ),
        **_gavels("", aware=True),
        "gavel:las-packed": _solved(
            "gavel.packed:GavelPacked",
            "Gavel: max-min fairness of time, with two jobs on a GPU where that is better",
            source=_GAVEL,
            faithful="conformed",
            simulated_only=True,
        ),
        "gandiva": _solved(
            "gavel.packed:GavelPacked",
            "As Gandiva: equal time on all GPUs for jobs, in random pairs that gain where jobs ask for too many GPUs",
            {"rule": "gandiva", "name": "gandiva"},
            source="Gandiva in Gavel",
            faithful="modelled",
            simulated_only=True,
        ),
        "allox": _solved(
            "gavel.policy:Gavel",
            "As AlloX: least sum of completion times by matching jobs to places in queues of GPUs",
            {"objective": "allox", "name": "allox"},
            source="AlloX in Gavel",
            faithful="modelled",
        ),
        "gavel:cost": _solved(
            "gavel.cost:GavelCost",
            "Gavel with least cost over all configurations; tardiness has a price",
            source=_GAVEL,
            faithful="named after",
        ),
        "antman": _variant(
            "shared_gpus.antman:AntMan",
            "AntMan: guaranteed jobs by submission; opportunistic ones on the least busy GPU",
            source="AntMan 2020",
            faithful="modelled",
        ),
        "fill": _variant(
            "shared_gpus.fill:Fill",
            "As FIKIT: jobs of the highest class own GPUs; others use what these leave idle, where they are fastest",
            source="FIKIT 2023",
            faithful="named after",
        ),
        "pack": _variant(
            "shared_gpus.pack:Pack",
            "As Lucid: shortest first; two jobs on a GPU if their applications slow each other down little",
            source="Lucid 2023",
            faithful="named after",
        ),
        **_gavels("-agnostic", aware=False),
        "cap:uniform": _variant(
            "power_cap.policy:CappedStsX",
            "STS-X under a power cap: one power limit for all jobs, the highest that fits",
            {"rule": "uniform", "name": "cap:uniform"},
        ),
        "cap:tiers": _variant(
            "power_cap.policy:CappedStsX",
            "STS-X under a power cap: tiers, by slack, may lose 0, 10, 25 or 50 % of their speed",
            {"rule": "tiers", "name": "cap:tiers"},
            source="Emerald Conductor",
            faithful="named after",
        ),
        "cap:thresholds": _variant(
            "power_cap.policy:CappedStsX",
            "STS-X under a power cap: two thresholds, as POLCA; jobs with slack are limited first",
            {"rule": "thresholds", "name": "cap:thresholds"},
            source="POLCA 2023",
            faithful="named after",
        ),
        **{
            name: _solved("price_rules.start:StartByPrice", line, {"rule": name, "name": name}, _GAIA, "conformed")
            for name, line in _START_RULES.items()
        },
        "ecovisor": _solved(
            "price_rules.pause:PauseByPrice",
            "Ecovisor, as in GAIA: runs while energy is cheaper than 30 % of the next day, until the limit is used up",
            {"rule": "threshold", "name": "ecovisor"},
            source="Ecovisor in GAIA",
            faithful="conformed",
        ),
        "wait-awhile": _solved(
            "price_rules.pause:PauseByPrice",
            "Wait AWhile: runs in the cheapest hours of its length and the waiting limit; worst-case length",
            {"rule": "cheapest", "name": "wait-awhile"},
            source="Wait AWhile, GAIA",
            faithful="conformed",
        ),
        "all-wait": _solved(
            "price_rules.start:StartByPrice",
            "GAIA: waits for reserved GPUs, half of all, up to the limit; any price",
            {"rule": "limit", "reserved": 0.5, "job_order": "submission", "name": "all-wait"},
            source=_GAIA,
            faithful="modelled",
        ),
        "res-first": _solved(
            "price_rules.start:StartByPrice",
            "GAIA: on free reserved GPUs, half of all, at once; else as carbon-time",
            {"rule": "carbon-time", "reserved": 0.5, "job_order": "submission", "name": "res-first"},
            source=_GAIA,
            faithful="modelled",
        ),
        "carbonscaler": _solved(
            "price_rules.scaling:CarbonScaler",
            "CarbonScaler: GPUs by the hour, by marginal speed per cost in the worst case; reserved by due date",
            source="CarbonScaler 2023",
            faithful="modelled",
        ),
        "capacity-curve": _solved(
            "price_rules.capacity_curve:CapacityCurve",
            "As Google's capacity curve: EDF under a limit on GPUs that follows the price, made from the active jobs",
            source="Google 2023",
            faithful="named after",
        ),
        "easy": _variant(
            "backfill.easy:Easy",
            "By submission, with EASY backfilling by time limits: no later job delays the first one that waits",
            source="Lifka 1995",
            faithful="modelled",
            on_clusters=True,
        ),
        "conservative": _variant(
            "backfill.conservative:Conservative",
            "Conservative backfilling by time limits: every waiting job has a reservation, and none is delayed",
            source="Mu'alem 2001",
            faithful="modelled",
            on_clusters=True,
        ),
        "slurm-backfill": _variant(
            "backfill.slurm:SlurmBackfill",
            "Slurm's main scheduler and backfill plugin: reservations of whole nodes, made again in every round",
            source="Slurm 22.05",
            faithful="conformed",
        ),
        "multifactor": _variant(
            "backfill.multifactor:Multifactor",
            "Slurm's multifactor priority, of age, size and fair share with half-life, with its backfilling",
            source="Slurm 22.05",
            faithful="modelled",
            on_clusters=True,
        ),
        "cells-fifo": ShippedPolicy(
            "dispatching.time_slice:HiveD",
            "FIFO in every tenant's virtual cluster of cells; opportunistic jobs on GPUs that no tenant uses",
            source="HiveD 2020",
            faithful="named after",
            usual=False,
        ),
        "as-traced": _variant(
            "dispatching.dispatch:AsTraced",
            "Replays the schedule of a trace with start times and numbers of GPUs",
            replays=True,
        ),
        **{f"sts-x:{part}": _without(part, line, setting) for part, (line, setting) in _WITHOUT.items()},
    }
)
"""Every name that `make_policy` knows, in the order of tables."""

FORMER: Mapping[str, str] = MappingProxyType(
    {"cap-priority": "cap:tiers", "polca": "cap:thresholds", "vcc": "capacity-curve", "hived": "cells-fifo"}
)
"""The present names of policies that had others which are not like them: an error names them."""

KEEP_DUE_DATES = frozenset({
    "fifo", "edf", "edf:preemptive", "priority", "greedy", "greedy:fill", "random-greedy", "random-greedy:fill", "sts",
    "sts:published", "sts:ipopt", "sts:highs", "local-search", "path-relinking",
})  # fmt: skip
"""Those that take configurations that meet the due date if all epochs are needed: the non-clairvoyant bound holds."""


def policy_names() -> tuple[str, ...]:
    """List the names of the shipped policies that decide on any workload: all but replays and ablations."""
    return tuple(name for name, shipped in POLICIES.items() if shipped.ablation_of is None and not shipped.replays)


def usual_policy_names(*, of_cluster: bool = False) -> tuple[str, ...]:
    """List the names of the policies that are compared if none are named: all but slow ones and variants.

    With `of_cluster`, for a trace of a cluster, they include those of operators.
    """
    return tuple(name for name, shipped in POLICIES.items() if shipped.usual or (of_cluster and shipped.on_clusters))


def operators_policy_names() -> tuple[str, ...]:
    """List the names of the policies that operators use on clusters."""
    return tuple(name for name, shipped in POLICIES.items() if shipped.on_clusters)


def ablation_names(of: str) -> tuple[str, ...]:
    return tuple(name for name, shipped in POLICIES.items() if shipped.ablation_of == of)


def policy_descriptions() -> dict[str, str]:
    """Return a line on every shipped policy, by name; those that replay a trace come last."""
    replays = [name for name, shipped in POLICIES.items() if shipped.replays]
    return {name: POLICIES[name].line for name in (*policy_names(), *replays)}


def make_policy(name: str) -> Policy:
    """Make the policy `name` with its defaults.

    Raises:
        InputError: There is no such policy.
    """
    if name not in POLICIES:
        now = FORMER.get(name)
        allowed = f"{now}, its name now" if now else f"one of {nearest_first(str(name), POLICIES)}"
        raise InputError("policy", name, allowed)
    return POLICIES[name].make()
