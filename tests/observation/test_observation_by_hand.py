"""Every feature of every step of small episodes, computed again in plain Python from what is public.

The facts come from the instance, the state of the jobs from `env.view`; free GPUs follow from what the jobs hold.
Nothing of the simulator or of the observation is called. The features are compared by name: the functions below say
each name of `gpusched_env.observation` again, and what it means.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gpusched_env import (
    EpochDistribution,
    GpuClusterEnv,
    Instance,
    Interference,
    Node,
    Scenario,
    load_scenario,
    make_instance,
)
from gpusched_env.observation import CLUSTER_FEATURES, JOB_FEATURES, JOBS_FEATURES, OPTION_FEATURES, QUEUE_FEATURES
from gpusched_env.simulator import layout as at
from instances import without_idle_power

ROWS = 3  # of other jobs
CONSTANT = {"whole GPUs": {"share of each GPU"}, "all kinds": set()}  # 1, as long as there are no shared GPUs


def squash(x: float) -> float:
    return x / (1.0 + abs(x))


def squash_of(part: float, whole: float) -> float:
    """Return squash(part / whole), for a whole that may be 0."""
    return part / (part + whole) if part > 0.0 else 0.0


def survival(of: EpochDistribution, fraction: float) -> float:
    """Return S at a fraction of the maximum epochs; what is less than rounding below an edge is on it."""
    bins = zip(of.edges[:-1].tolist(), of.edges[1:].tolist(), of.survival.tolist(), strict=True)
    return next((s for low, high, s in bins if low <= fraction + 1e-12 < high), float(of.survival[-1]))


def area(of: EpochDistribution, fraction: float) -> float:
    """Return the integral of S from a fraction of the maximum epochs to 1."""
    bins = zip(of.edges[:-1].tolist(), of.edges[1:].tolist(), of.survival.tolist(), strict=True)
    return math.fsum(s * max(0.0, high - max(low, fraction)) for low, high, s in bins)


def planned_seconds(instance: Instance, job: int, c: int) -> float:
    """Return the seconds per epoch to plan with: of a share, with as many of the worst co-runners as fit."""
    seconds = float(instance.jobs.seconds_per_epoch[job, c])
    configuration, interference = instance.configurations[c], instance.interference
    if configuration.share == 1.0 or interference is None:
        return seconds
    jobs, v = instance.jobs, int(instance.type_of_configuration[c])
    shares = {
        o: k.share
        for o, k in enumerate(instance.configurations)
        if k.gpu_type == configuration.gpu_type and k.share < 1.0
    }
    may = [j for j in range(len(jobs)) if any(math.isfinite(jobs.seconds_per_epoch[j, o]) for o in shares)]
    worst = max(float(interference.slowdown[v, jobs.application[job], jobs.application[j]]) for j in may)
    others = (1.0 - configuration.share) // min(shares.values())
    return seconds * (1.0 + others * (worst - 1.0))


class Facts:
    """The public facts of one step."""

    def __init__(self, env: GpuClusterEnv, before: list[int], planned: list[list[float]]) -> None:
        """Take the facts.

        `before` are the jobs that this round has asked already, `planned` the seconds per epoch of every job and
        configuration to plan with.
        """
        self.instance, self.planned, self.job, self.asked = env.instance, planned, env.job, len(before)
        self.now, self.state, self.active = env.view.now_s, env.view.jobs.copy(), env.view.active.tolist()
        self.completed = int(np.sum(np.isfinite(self.state[:, at.END_S])))
        asks = [j for j in self.active if env.asking.preemption or self.held_before(j) < 0]
        self.to_ask, self.still_to_come = len(asks), set(asks) - {*before, self.job}
        self.free = [node.gpus for node in self.instance.nodes]
        self.shared: dict[tuple[int, int], float] = {}  # what is held of each shared GPU, by node and number
        following = env.view.nodes[:, at.NEXT].tolist()
        for j in self.active:
            if self.held(j) >= 0:
                self.hold(j, following)
        self.most = max(c.gpus_per_node * c.nodes for c in self.instance.configurations)

    def hold(self, job: int, following: list[int]) -> None:
        """Take what a job holds from the free GPUs; a shared GPU once."""
        configuration = self.instance.configurations[self.held(job)]
        node, gpu = int(self.state[job, at.NODE]), int(self.state[job, at.SLOT])
        if configuration.share < 1.0:
            self.free[node] -= (node, gpu) not in self.shared
            self.shared[node, gpu] = self.shared.get((node, gpu), 0.0) + configuration.share
            return
        for _ in range(configuration.nodes):
            self.free[node] -= configuration.gpus_per_node
            node = following[node]

    def held(self, job: int) -> int:
        return int(self.state[job, at.CONFIG])

    def held_before(self, job: int) -> int:
        return int(self.state[job, at.OLD_CONFIG])

    def fact(self, name: str, job: int) -> float:
        return float(getattr(self.instance.jobs, name)[job])

    def done(self, job: int) -> float:
        return float(self.state[job, at.EPOCHS])

    def left(self, job: int) -> float:
        return self.fact("max_epochs", job) - self.done(job)

    def seconds(self, job: int, c: int) -> float:
        return self.planned[job][c]

    def fastest(self, job: int) -> float:
        """Return the job's T: its least execution time left in the worst case [s]."""
        return self.left(job) * min(self.seconds(job, c) for c in range(len(self.instance.configurations)))

    def time_left(self, job: int) -> float:
        """Return the job's D: its time to the due date [s]."""
        return self.fact("due_s", job) - self.now

    def node_rate(self, gpu_type: str, gpus: int) -> float:
        """Return what a node costs while `gpus` of its GPUs are busy [€/s]."""
        v = next(v for v in self.instance.gpu_types if v.name == gpu_type)
        kilowatts = (v.node_base_power_w + gpus * v.gpu_power_w) / 1000.0
        return kilowatts * self.instance.energy_price_eur_per_kwh * self.instance.pue / 3600.0

    def least_rate(self, c: int) -> float:
        """Return the least that a configuration can cost, on a node that is as full as it can be [€/s]; inf without
        one.

        It is a share of the node's rate, by GPUs, whichever jobs hold the others.
        """
        configuration = self.instance.configurations[c]
        largest = max((all_ for all_, _ in self.nodes_of(configuration.gpu_type)), default=0)
        g = configuration.gpus_per_node
        rates = [self.node_rate(configuration.gpu_type, u) * g / u for u in range(g, largest + 1)]
        return min(rates, default=math.inf) * configuration.nodes * configuration.share

    def added_rate(self, c: int) -> float:
        """Return what a configuration adds to the cluster's cost rate [€/s]: whole GPUs go to a node in use, if one
        fits.

        Whether the job has been elsewhere before is not asked. Shares and several nodes count as alone.
        """
        configuration = self.instance.configurations[c]
        gpus, in_use = configuration.gpus_per_node, []
        if configuration.kind == "single-node":
            in_use = [(all_ - free) for all_, free in self.nodes_of(configuration.gpu_type) if gpus <= free < all_]
        if not in_use:
            return self.rate(c)
        busy = max(in_use)
        return self.node_rate(configuration.gpu_type, busy + gpus) - self.node_rate(configuration.gpu_type, busy)

    def cheapest(self, job: int) -> int:
        """Return the configuration whose epochs cost the job least in full nodes."""
        every = range(len(self.instance.configurations))
        return min(every, key=lambda c: self.seconds(job, c) * self.least_rate(c))

    def cheapest_s(self, job: int) -> float:
        """Return the job's worst-case execution time left in its cheapest configuration [s]."""
        return self.left(job) * self.seconds(job, self.cheapest(job))

    def full_energy(self, c: int) -> float:
        """Return the worst-case energy cost left of a configuration in full nodes [€]."""
        return self.left(self.job) * self.seconds(self.job, c) * self.least_rate(c)

    def pressure(self, job: int) -> float:
        """Return how late the job must be, as a cost if it must be late; if not, minus its slack."""
        over_s = self.fastest(job) - self.time_left(job)
        return over_s * self.fact("tardiness_weight_eur_per_s", job) if over_s > 0.0 else over_s

    def of(self, job: int) -> Facts:
        other = copy.copy(self)
        other.job = job
        return other

    def rate(self, c: int) -> float:
        configuration = self.instance.configurations[c]
        of_node = self.node_rate(configuration.gpu_type, configuration.gpus_per_node)
        return of_node * configuration.nodes * configuration.share

    def worst_energy(self, c: int) -> float:
        return self.left(self.job) * self.seconds(self.job, c) * self.rate(c)

    def least_energy(self) -> float:
        allowed = [c for c in range(len(self.instance.configurations)) if math.isfinite(self.seconds(self.job, c))]
        return min(self.worst_energy(c) for c in allowed)

    def distribution(self) -> EpochDistribution:
        return self.instance.jobs.distributions[int(self.instance.jobs.distribution[self.job])]

    def expected_left(self) -> float:
        """Return the epochs that the current job is expected to need still, given that it has survived so far."""
        largest = self.fact("max_epochs", self.job)
        fraction = self.done(self.job) / largest
        alive = survival(self.distribution(), fraction)
        return area(self.distribution(), fraction) / alive * largest if alive > 0.0 else self.left(self.job)

    def nodes_of(self, gpu_type: str) -> list[tuple[int, int]]:
        pairs = zip(self.instance.nodes, self.free, strict=True)
        return [(node.gpus, free) for node, free in pairs if node.gpu_type == gpu_type]

    def placing(self, c: int) -> tuple[bool, int, bool]:
        """Return whether c fits, the GPUs left on the emptiest node, whether it fits on one in use."""
        configuration = self.instance.configurations[c]
        nodes, gpus = self.nodes_of(configuration.gpu_type), configuration.gpus_per_node
        gap = max((free for _, free in nodes), default=0)
        on_used = any(free < all_ and free >= gpus for all_, free in nodes)
        if configuration.nodes > 1:
            empty = [all_ for all_, free in nodes if all_ == free == gpus]
            others = [free for all_, free in nodes if not all_ == free == gpus]
            kept = [*others, *empty[configuration.nodes :]]
            return len(empty) >= configuration.nodes, max(kept, default=0), False
        joins = configuration.share < 1.0 and any(
            used + configuration.share <= 1.0
            for (node, _), used in self.shared.items()
            if self.instance.nodes[node].gpu_type == configuration.gpu_type
        )
        return (True, gap, True) if joins else (gap >= gpus, max(0, gap - gpus), on_used)


def job_by_hand(facts: Facts) -> dict[str, float]:
    job, largest = facts.job, facts.fact("max_epochs", facts.job)
    done, left, distribution = facts.done(job), facts.left(job), facts.distribution()
    fastest, time_left = facts.fastest(job), facts.time_left(job)
    alive = survival(distribution, done / largest)
    features = {
        "epochs done / maximum epochs": done / largest,
        "squash(D / T)": squash(time_left / fastest),
        "squash((D - T) / T): slack of the fastest configuration": squash((time_left - fastest) / fastest),
        "1 if late already": float(time_left < 0.0),
        "1 if it held GPUs before this round": float(facts.held_before(job) >= 0),
        "squash(tardiness cost of T seconds / least worst-case energy cost)": squash_of(
            facts.fact("tardiness_weight_eur_per_s", job) * fastest, facts.least_energy()
        ),
        "log10(1 + T) / 8": math.log10(1.0 + fastest) / 8.0,
        "expected epochs left / epochs left in the worst case": facts.expected_left() / left,
        "squash(time since submission / T)": squash((facts.now - facts.fact("submission_s", job)) / fastest),
        "jobs of this round already asked / jobs of this round": facts.asked / facts.to_ask,
    }
    for eighth in ("0.5", "1.5", "2.5", "3.5", "4.5", "5.5", "6.5", "7.5"):
        later = survival(distribution, (done + left * float(eighth) / 8) / largest)
        name = f"probability to survive {eighth}/8 of the epochs left, given those done"
        features[name] = later / alive if alive > 0.0 else 1.0
    slack = time_left / facts.cheapest_s(job) - 1.0
    features["squash((D - W) / W), W = worst-case execution time of its cheapest configuration"] = squash(slack)
    features["the same, / 1 %"] = squash(slack / 0.01)
    return features


def option_by_hand(facts: Facts, c: int) -> dict[str, float]:
    job, seconds = facts.job, facts.seconds(facts.job, c)
    if math.isinf(seconds):
        return dict.fromkeys(OPTION_FEATURES, 0.0)
    configurations = facts.instance.configurations
    nodes, (placeable, left_over, on_used) = facts.nodes_of(configurations[c].gpu_type), facts.placing(c)
    weight, time_left, least = facts.fact("tardiness_weight_eur_per_s", job), facts.time_left(job), facts.least_energy()
    worst_s, expected_s = facts.left(job) * seconds, facts.expected_left() * seconds
    worst = worst_s * facts.rate(c) + weight * max(0.0, worst_s - time_left)
    expected = expected_s * facts.rate(c) + weight * max(0.0, expected_s - time_left)
    floor, added, full = facts.full_energy(facts.cheapest(job)), worst_s * facts.added_rate(c), facts.full_energy(c)
    return {
        "1 if it can be placed now": float(placeable),
        "1 if it meets the due date in the worst case": float(worst_s <= time_left),
        "1 if it meets the due date in expectation": float(expected_s <= time_left),
        "1 - least energy cost / its energy cost, alone on the node": 1.0 - least / facts.worst_energy(c),
        "c / (c + least worst-case energy cost), c = worst-case energy + tardiness cost": worst / (worst + least),
        "c / (c + least worst-case energy cost), c = energy + tardiness cost at the expected epochs": expected
        / (expected + least),
        "1 - least seconds per epoch / its seconds per epoch": 1.0 - facts.fastest(job) / worst_s,
        "squash((D - its worst-case execution time) / T)": squash((time_left - worst_s) / facts.fastest(job)),
        "its cost rate / the largest of any configuration": facts.rate(c)
        / max(facts.rate(other) for other in range(len(configurations))),
        "its GPUs / the most GPUs of any configuration": configurations[c].gpus / facts.most,
        "share of each GPU": configurations[c].share,
        "1 if the job held it before this round": float(facts.held_before(job) == c),
        "free GPUs of its type / GPUs of its type": sum(free for _, free in nodes) / sum(all_ for all_, _ in nodes),
        "GPUs left on the emptiest node of its type after it / the most GPUs of any configuration": left_over
        / facts.most,
        "1 if it fits on a node that is in use": float(on_used),
        "c / (c + L), c = worst-case energy cost that it adds to the bill now": squash_of(added, floor),
        "c / (c + L), c = its worst-case energy cost in full nodes": squash_of(full, floor),
        "squash((D - W) / W / 1 %), W = its worst-case execution time": squash((time_left - worst_s) / worst_s / 0.01),
    }


def cluster_by_hand(facts: Facts, gpu_type: str) -> dict[str, float]:
    nodes = facts.nodes_of(gpu_type)
    if not nodes:
        return dict.fromkeys(CLUSTER_FEATURES, 0.0)
    gpus, free = sum(all_ for all_, _ in nodes), sum(free for _, free in nodes)
    largest = max(all_ for all_, _ in nodes)
    wanted = "squash(GPUs that jobs still to be asked want, at their cheapest if in time / GPUs of its largest node)"
    one, full = facts.node_rate(gpu_type, 1), facts.node_rate(gpu_type, largest)
    return {
        "free GPUs / GPUs of the type": free / gpus,
        "nodes not in use / nodes of the type": sum(free == all_ for all_, free in nodes) / len(nodes),
        "most free GPUs on one node / the most GPUs of any configuration": max(free for _, free in nodes) / facts.most,
        "GPUs of the type / GPUs of the cluster": gpus / sum(node.gpus for node in facts.instance.nodes),
        "cost rate of a node with one busy GPU / with all busy, of the type": one / full,
        "cost rate of a node with one busy GPU / the largest such of any type": one
        / max(facts.node_rate(v.name, 1) for v in facts.instance.gpu_types),
        "log10(1 + nodes of the type) / 4": math.log10(1 + len(nodes)) / 4,
        wanted: squash(wanted_gpus(facts, gpu_type) / largest),
        "GPUs on nodes that are in use, not held / GPUs of its largest node, at most 1": min(
            1.0, sum(free for all_, free in nodes if free < all_) / largest
        ),
    }


def wanted_gpus(facts: Facts, gpu_type: str) -> float:
    """Count the GPUs of a type that jobs want which the round asks after this one: their cheapest, if it is in time."""
    in_time = [facts.cheapest(j) for j in facts.still_to_come if facts.cheapest_s(j) <= facts.time_left(j)]
    wanted = [facts.instance.configurations[c] for c in in_time]
    return math.fsum(configuration.gpus for configuration in wanted if configuration.gpu_type == gpu_type)


def queue_by_hand(facts: Facts) -> dict[str, float]:
    others = [j for j in facts.active if j != facts.job]
    waiting = [j for j in others if facts.held(j) < 0]
    late = [j for j in others if facts.now > facts.fact("due_s", j)]
    ratios = [squash(facts.time_left(j) / facts.fastest(j)) for j in others]
    weights = [facts.fact("tardiness_weight_eur_per_s", j) for j in others]
    own, number = facts.fact("tardiness_weight_eur_per_s", facts.job), max(1, len(others))
    return {
        "log10(1 + other active jobs) / 5": math.log10(1 + len(others)) / 5,
        "log10(1 + other jobs that hold nothing) / 5": math.log10(1 + len(waiting)) / 5,
        "share of the other active jobs that hold nothing": len(waiting) / number,
        "share of the other active jobs that are late": len(late) / number,
        "mean of squash(D / T) over the other active jobs": sum(ratios) / number,
        "least squash(D / T) of the other active jobs": min(ratios, default=1.0),
        "ω / (ω + mean ω of the other active jobs)": own / (own + sum(weights) / number),
        "squash(jobs still to be asked in this round / free GPUs)": squash(
            (facts.to_ask - facts.asked) / max(1, sum(facts.free))
        ),
    }


def jobs_by_hand(facts: Facts) -> list[dict[str, float]]:
    others = sorted((j for j in facts.active if j != facts.job), key=lambda j: (-facts.pressure(j), j))
    rows = []
    for j in others[:ROWS]:
        row = job_by_hand(facts.of(j))
        del row["jobs of this round already asked / jobs of this round"]
        rows.append(row | {"1 if it holds GPUs now": float(facts.held(j) >= 0), "1 if there is such a job": 1.0})
    return rows + [dict.fromkeys(JOBS_FEATURES, 0.0)] * (ROWS - len(rows))


def by_hand(facts: Facts) -> dict[str, list[dict[str, float]]]:
    """Compute the whole observation: rows of features by name."""
    return {
        "job": [job_by_hand(facts)],
        "options": [option_by_hand(facts, c) for c in range(len(facts.instance.configurations))],
        "cluster": [cluster_by_hand(facts, v.name) for v in facts.instance.gpu_types],
        "queue": [queue_by_hand(facts)],
        "jobs": jobs_by_hand(facts),
    }


NAMES = {
    "job": JOB_FEATURES,
    "options": OPTION_FEATURES,
    "cluster": CLUSTER_FEATURES,
    "queue": QUEUE_FEATURES,
    "jobs": JOBS_FEATURES,
}


@cache
def small_instance() -> Instance:
    """Make a crowded instance of the tiny scenario: due dates bite, and some configurations are closed to some jobs.

    One type has nodes of different sizes.
    """
    instance = make_instance(load_scenario("tiny"), 1)
    jobs = instance.jobs
    seconds = jobs.seconds_per_epoch.copy()
    closed = np.random.default_rng(0).random(seconds.shape) < 0.2
    closed[np.arange(len(jobs)), seconds.argmin(axis=1)] = False
    seconds[closed] = np.inf
    submission = 0.2 * jobs.submission_s
    due = submission + 0.5 * (jobs.due_s - jobs.submission_s)
    nodes = (*instance.nodes, Node(instance.nodes[0].gpu_type, 1))
    crowded = replace(jobs, submission_s=submission, due_s=due, seconds_per_epoch=seconds)
    gpu_types = without_idle_power(instance.gpu_types)
    return replace(instance, gpu_types=gpu_types, nodes=nodes, jobs=crowded)


@cache
def instance_of_all_kinds() -> tuple[Scenario, Instance]:
    """Make a crowded scenario and instance with shares and several nodes, and jobs that slow one another down."""
    settings = {"cluster.nodes": 5, "cluster.gpu_types": ("V100", "T4"), "cluster.gpus_per_node": 4, "jobs.count": 20}
    scenario = load_scenario("tiny").replace(settings | {"sharing.fractions": (0.5, 0.25), "jobs.node_counts": (1, 2)})
    instance, rng = make_instance(scenario, 1), np.random.default_rng(0)
    jobs, names = instance.jobs, [c.name for c in instance.configurations]
    seconds = jobs.seconds_per_epoch.copy()
    for c, configuration in enumerate(instance.configurations):
        if configuration.kind != "single-node":
            gpus = configuration.gpus_per_node
            one = seconds[:, names.index(f"{configuration.gpu_type}x{gpus}")]
            seconds[:, c] = one * (0.6 if configuration.nodes > 1 else 1.1)
    seconds[rng.random(seconds.shape) < 0.1] = np.inf
    submission = 0.1 * jobs.submission_s
    due = submission + 0.5 * (jobs.due_s - jobs.submission_s)
    memory = rng.uniform(1.0, 12.0, len(jobs))
    crowded = replace(jobs, submission_s=submission, due_s=due, seconds_per_epoch=seconds, memory_gib=memory)
    slowdown = 1.0 + rng.exponential(0.3, (2, len(jobs.applications), len(jobs.applications)))
    nodes = (*instance.nodes, Node("V100", 1))
    gpu_types, interference = without_idle_power(instance.gpu_types), Interference(slowdown)
    return scenario, replace(instance, gpu_types=gpu_types, nodes=nodes, jobs=crowded, interference=interference)


@cache
def instance_without_a_type() -> Instance:
    """Make the crowded instance again, with tighter due dates, on all nodes but those of the first GPU type."""
    instance = small_instance()
    gone = instance.gpu_types[0].name
    nodes = [node for node in instance.nodes if node.gpu_type != gone]
    jobs = replace(
        instance.jobs,
        due_s=instance.jobs.submission_s + 0.5 * (instance.jobs.due_s - instance.jobs.submission_s),
        seconds_per_epoch=make_instance(load_scenario("tiny"), 1).jobs.seconds_per_epoch,
    )
    return replace(instance, nodes=(*nodes, Node(nodes[0].gpu_type, 3)), jobs=jobs)


@cache
def episode(
    preemption: bool, case: str
) -> list[tuple[Facts, dict[str, np.ndarray], dict[str, list[dict[str, float]]]]]:
    """Play an episode at random, waiting one time in four; list every step's facts, observation and its computation."""
    scenario, instance = CASES[case]()
    env = GpuClusterEnv(scenario, preemption=preemption, job_features=ROWS)
    rng = np.random.default_rng(0)
    observation, info = env.reset(options={"instance": instance})
    every = range(len(instance.configurations))
    planned = [[planned_seconds(instance, job, c) for c in every] for job in range(len(instance.jobs))]
    steps, round_, before, over = [], -1, [], False
    while not over:
        before = before if int(env.view.count[at.ROUND]) == round_ else []
        round_ = int(env.view.count[at.ROUND])
        facts = Facts(env, before, planned)
        before = [*before, env.job]
        steps.append((facts, observation, by_hand(facts)))
        allowed = np.flatnonzero(info["action_mask"])
        action = 0 if rng.random() < 0.25 else int(rng.choice(allowed))
        observation, _, over, _, info = env.step(action)
    return steps


CASES = {
    "whole GPUs": lambda: (load_scenario("tiny"), small_instance()),
    "all kinds": instance_of_all_kinds,
    "a type without nodes": lambda: (load_scenario("tiny"), instance_without_a_type()),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("preemption", [True, False])
@pytest.mark.parametrize("part", NAMES)
def test_every_feature_of_every_step_is_what_its_name_says(part, preemption, case):
    names = NAMES[part]
    for facts, observation, expected in episode(preemption, case):
        rows = observation[part].reshape(-1, len(names))
        assert len(rows) == len(expected[part])
        for row, by_name in zip(rows.tolist(), expected[part], strict=True):
            assert set(by_name) == set(names)
            for name, value in zip(names, row, strict=True):
                assert value == pytest.approx(by_name[name], abs=2e-6), f"{name} of job {facts.job} at {facts.now} s"


@pytest.mark.parametrize("case", CONSTANT)
@pytest.mark.parametrize("part", NAMES)
def test_every_feature_takes_several_values_so_that_a_wrong_one_shows(part, case):
    for name in set(NAMES[part]) - CONSTANT[case]:
        values = {round(row[name], 4) for _, _, expected in episode(True, case) for row in expected[part]}
        assert len(values) > 1, name


@pytest.mark.parametrize("case", CASES)
def test_the_episode_is_not_trivial(case):
    """In a round of it some jobs are done, one is late, one held GPUs before and one has been placed already."""
    assert any(
        facts.completed > 0
        and facts.asked >= 1
        and any(facts.held_before(j) >= 0 for j in facts.active)
        and expected["queue"][0]["share of the other active jobs that are late"] > 0.0
        and expected["queue"][0]["share of the other active jobs that hold nothing"] < 1.0
        for facts, _, expected in episode(True, case)
    )


@pytest.mark.parametrize("preemption", [True, False])
def test_in_the_episode_of_all_kinds_shares_join_a_gpu_or_open_one_and_several_nodes_fit_or_not(preemption):
    seen = set()
    for facts, _, expected in episode(preemption, "all kinds"):
        for configuration, row in zip(facts.instance.configurations, expected["options"], strict=True):
            allowed = row["share of each GPU"] > 0.0
            seen.add((configuration.kind, allowed, row[OPTION_FEATURES[0]], row[OPTION_FEATURES[14]]))
    for kind in ("shared", "multi-node"):
        assert {(kind, False, 0.0, 0.0), (kind, True, 1.0, 0.0), (kind, True, 0.0, 0.0)} <= seen
    assert ("shared", True, 1.0, 1.0) in seen
    assert any(used > 0.5 for facts, _, _ in episode(preemption, "all kinds") for used in facts.shared.values())
