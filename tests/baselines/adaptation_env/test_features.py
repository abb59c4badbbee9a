"""The features of adaptation agents: always in [-1, 1], and by hand on a round of two jobs."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from crowded import crowded
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env import features as of
from gpusched_baselines.adaptation_env.features import GPU_TYPES, JOBS, ROUND, observe_round
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_baselines.sts_x.plan import Adaptation
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Interference,
    Job,
    Node,
    Tenant,
    Tenants,
    simulate,
)
from gpusched_env.arrays import Floats
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board
from instances import HOUR, random_instance, three_jobs
from mixed import mixed_instance
from small_instances import CERTAIN


@dataclass(frozen=True)
class Seen:
    """The features of a round: of every active job by its index, of the round, and of every GPU type."""

    time_s: float
    jobs: dict[int, Floats]
    whole: Floats
    types: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking(StsX):
    """STS-X that keeps the features for an agent."""

    seen: list[Seen] = field(default_factory=list)

    def _adaptation(self, view: View, board: Board, rate: Floats) -> Adaptation:
        active = board.active[: board.count[at.ACTIVE]]
        shapes = (len(active), len(JOBS)), (len(ROUND),), (board.capacity.shape[0], len(GPU_TYPES))
        jobs, whole, types = (np.full(shape, np.nan) for shape in shapes)
        observe_round(board, rate, FREE_RATE, jobs, whole, types)
        rows = dict(zip(active.tolist(), jobs, strict=True))
        self.seen.append(Seen(float(board.clock[at.NOW]), rows, whole, types))
        return StsX._adaptation(self, view, board, rate)


def rounds_of(instance: Instance) -> list[Seen]:
    policy = Looking()
    simulate(instance, policy, record=False)
    return policy.seen


def without_weights(instance: Instance) -> Instance:
    jobs = replace(instance.jobs, tardiness_weight_eur_per_s=np.zeros(len(instance.jobs)))
    return replace(instance, jobs=jobs)


def large() -> Instance:
    """Make an instance with a configuration of 64 GPUs."""
    gpu = GpuType("V", 300.0, 100.0, 16.0, 16)
    configurations = [Configuration("V", 1), Configuration("V", 16, nodes=4)]
    seconds = dict(zip(configurations, (60.0, 2.0), strict=True))
    jobs = [Job(0.0, 100.0, 0.01, 3.0, CERTAIN, 3.0, seconds)]
    return Instance.from_jobs([gpu], [Node("V", 16)] * 4, jobs, configurations)


INSTANCES = {
    "plain": lambda: random_instance(1, jobs=15),
    "all kinds": lambda: random_instance(2, jobs=15, nodes=5, kinds=True, interference=True, restart_s=50.0),
    "crowded": lambda: crowded(3),
    "one job": lambda: random_instance(4, jobs=1),
    "free energy": lambda: replace(crowded(5), energy_price_eur_per_kwh=0.0),
    "no weights": lambda: without_weights(random_instance(6)),
    "large": large,
    **{f"mixed {seed}": lambda seed=seed: mixed_instance(seed) for seed in range(8)},
}


@pytest.mark.parametrize("name", INSTANCES)
def test_every_feature_is_a_number_from_minus_1_to_1(name):
    seen = rounds_of(INSTANCES[name]())
    assert seen
    for one in seen:
        for group, names in ((np.stack([*one.jobs.values()]), JOBS), (one.whole[None], ROUND), (one.types, GPU_TYPES)):
            wrong = ~(np.abs(group) <= 1.0 + 1e-12).all(axis=0)
            assert not wrong.any(), [names[k] for k in np.flatnonzero(wrong)]


def test_every_feature_has_a_name_of_its_own():
    for names in (JOBS, GPU_TYPES, ROUND):
        assert len(set(names)) == len(names)


def squash(x: float) -> float:
    return x / (1.0 + abs(x))


# Busy GPUs of V cost 1 €/h, those of W 2; a node of V that is on 2 €/h more. So full nodes cost 2 €/h a GPU, both.
V, W = GpuType("V", 1000.0, 2000.0, 16.0, 2), GpuType("W", 2000.0, 0.0, 16.0, 2)
ONE, TWO, OTHER = Configuration("V", 1), Configuration("V", 2), Configuration("W", 1)
HALVES = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))


def two_rounds() -> list[Seen]:
    """Make two jobs on a V and a W node; return the rounds at 0 h, with the first, and at 1 h, with both.

    The first one takes 2 h an epoch on a V, 1.5 on two, 3 on a W: 4, 6 and 6 €. The second one takes 1 h on a V and 0.5
    on a W: 2 € and 1 €.
    """
    first = Job(0.0, 1.0 * HOUR, 0.001, 4.0, HALVES, 4.0, {ONE: 2 * HOUR, TWO: 1.5 * HOUR, OTHER: 3 * HOUR})
    second = Job(1.0 * HOUR, 9.0 * HOUR, 0.0, 2.0, HALVES, 2.0, {ONE: HOUR, OTHER: 0.5 * HOUR})
    instance = Instance.from_jobs(
        [V, W], [Node("V", 2), Node("W", 2)], [first, second], [ONE, TWO, OTHER], energy_price_eur_per_kwh=1.0, pue=1.0
    )
    jobs = replace(instance.jobs, restart_s=np.array([0.0, 36.0]))
    seen = rounds_of(replace(instance, jobs=jobs))
    return [seen[0], next(one for one in seen if one.time_s == HOUR)]


@pytest.fixture(scope="module")
def by_hand() -> list[Seen]:
    return two_rounds()


def test_a_job_alone_by_hand(by_hand):
    """Four epochs, three expected: on a V 8 h in the worst case and 16 €, on two 6 h and 24 €."""
    job = by_hand[0].jobs[0]
    expected = {
        of.DONE: 0.0,
        of.TIME_LEFT: squash(1 / 6),
        of.CHEAPEST_SLACK: squash((1 - 8) / 8),
        of.LATE: 0.0,
        of.HELD: 0.0,
        of.TARDINESS_COST: 3.6 * 6 / (3.6 * 6 + 16),
        of.EXPECTED: 3 / 4,
        of.SURVIVAL: 0.5,
        of.LENGTH: 0.0,
        of.AGE: 0.0,
        of.CHANGE: 0.0,
        of.DENSITY: 0.0,
        of.OPPORTUNISTIC: 0.0,
        of.OWN_QUOTA: 0.0,
        of.HASTE: squash(6 / 4 - 1),
        of.SPEED: 1.5 / 2,
    }
    assert sorted(expected) == list(range(len(JOBS)))
    for column, value in expected.items():
        assert job[column] == pytest.approx(value, abs=1e-9), JOBS[column]


def test_survival_is_that_of_half_of_the_epochs_left_given_those_done():
    """Each fifth ends a fifth of the jobs: half of ten epochs is in the third one."""
    fifths = EpochDistribution(np.linspace(0.0, 1.0, 6), np.array([1.0, 0.8, 0.6, 0.4, 0.2]))
    jobs = [
        Job(0.0, HOUR, 0.01, 10.0, fifths, 10.0, {ONE: HOUR}),
        Job(3 * HOUR, 9 * HOUR, 0.01, 1.0, CERTAIN, 1.0, {ONE: HOUR}),
    ]
    seen = rounds_of(Instance.from_jobs([V], [Node("V", 2)], jobs, [ONE]))
    assert seen[0].jobs[0][of.SURVIVAL] == pytest.approx(0.6)
    later = next(one for one in seen if one.time_s == 3 * HOUR)
    assert later.jobs[0][of.DONE] == pytest.approx(0.3)
    assert later.jobs[0][of.SURVIVAL] == pytest.approx(0.4 / 0.8), "of the fourth fifth, 0.65, given the second"


def test_jobs_beside_each_other_by_hand(by_hand):
    """The first one has done half an epoch on one GPU; 3.5 are left, 2.5 expected. The second one is cheapest on W."""
    first, second = by_hand[1].jobs[0], by_hand[1].jobs[1]
    needs = np.array([2.5 * 2, 1.5 * 0.5])  # GPU-hours, each where it is cheapest
    expected = {
        of.DONE: 1 / 8, of.TIME_LEFT: 0.0, of.LATE: 0.0, of.HELD: 1.0, of.EXPECTED: 2.5 / 3.5, of.SURVIVAL: 0.5,
        of.AGE: squash(1 / (1.5 * 3.5)), of.LENGTH: np.tanh(0.5 * np.log(needs[0] / needs.mean())),
    }  # fmt: skip
    for column, value in expected.items():
        assert first[column] == pytest.approx(value, abs=1e-9), JOBS[column]
    expected = {
        of.TIME_LEFT: squash(8 / 1), of.CHEAPEST_SLACK: squash((8 - 1) / 1), of.TARDINESS_COST: 0.0, of.HELD: 0.0,
        of.CHANGE: squash(10 * 36 / (0.75 * HOUR)), of.HASTE: 0.0, of.SPEED: 1.0,
        of.LENGTH: np.tanh(0.5 * np.log(needs[1] / needs.mean())),
    }  # fmt: skip
    for column, value in expected.items():
        assert second[column] == pytest.approx(value, abs=1e-9), JOBS[column]
    assert first[of.DENSITY] == 0.0, "the only one that has been planned is worth as much as the mean of those"


def test_the_round_by_hand(by_hand):
    one, both = by_hand
    expected = {of.QUEUE: 1 / 5, of.WAITING: 1.0, of.LATE_SHARE: 0.0, of.BUSY: 0.0, of.LAST_PRICE: 0.0, of.OFFERED: 0.0,
                of.BURST: 0.0, of.NODES: np.log10(3) / 4}  # fmt: skip
    for column, value in expected.items():
        assert one.whole[column] == pytest.approx(value), ROUND[column]
    # Two submissions within an hour, of 3 epochs of 2 GPU-hours and 1.5 of half a one, on four GPUs; no burst.
    expected = {of.QUEUE: 2 / 6, of.WAITING: 0.5, of.LATE_SHARE: 0.0, of.BUSY: 1 / 4,
                of.OFFERED: squash((6 + 0.75) / 1 / 4), of.BURST: 0.0}  # fmt: skip
    for column, value in expected.items():
        assert both.whole[column] == pytest.approx(value), ROUND[column]


def test_gpu_types_by_hand(by_hand):
    """The first job is as fast as it can be on V, half as fast on W; the second one the other way round."""
    one, both = (seen.types for seen in by_hand)
    assert one[:, of.GPU_SHARE].tolist() == [0.5, 0.5]
    assert one[:, of.WANTED].tolist() == [1.0, 0.0]
    assert one[:, of.FREE].tolist() == [1.0, 1.0]
    assert one[:, of.ONE_BUSY].tolist() == pytest.approx([3 / 4, 1 / 2])
    assert one[:, of.SECONDS_PER_EPOCH].tolist() == pytest.approx([1.0, 0.5])
    assert one[:, of.COST].tolist() == pytest.approx([1.0, 4 / 6])
    assert both[:, of.SECONDS_PER_EPOCH].tolist() == pytest.approx([0.75, 0.75])
    assert both[:, of.COST].tolist() == pytest.approx([(1 + 1 / 2) / 2, (4 / 6 + 1) / 2])
    assert both[:, of.FREE].tolist() == [0.5, 1.0]


def test_a_quota_is_held_as_far_as_it_was_before_the_round():
    """Of four GPUs tenant a may have three, tenant b one. Those of a hold two when b's job comes, and when one ends."""
    jobs = [Job(0.0, HOUR, 1.0, 1.0, CERTAIN, 1.0, {ONE: h * HOUR}) for h in (2.0, 3.0)]
    jobs.append(Job(1.0, HOUR, 1.0, 1.0, CERTAIN, 1.0, {ONE: 5 * HOUR}))
    instance = Instance.from_jobs([V], [Node("V", 2)] * 2, jobs, [ONE])
    tenants = Tenant("a", (Cells("V", 1, 3),)), Tenant("b", (Cells("V", 1, 1),))
    owned = replace(instance.jobs, tenant=np.array([0, 0, 1]))
    seen = rounds_of(replace(instance.with_mechanisms(Tenants(tenants, "quota")), jobs=owned))
    quotas = [[round(float(row[of.OWN_QUOTA]), 6) for row in one.jobs.values()] for one in seen]
    assert quotas[:2] == [[0.0, 0.0], [0.666667, 0.666667, 0.0]]
    assert [0.333333, 1.0] in quotas


def test_a_share_that_is_faster_beside_others_than_was_planned_is_no_more_than_fastest():
    """Only halves: planned with b as a co-runner at twice the time; before b is submitted, no job slows others down."""
    half = Configuration("V", 1, share=0.5)
    slowdown = Interference(np.array([[[1.0, 2.0], [2.0, 1.0]]]))
    jobs = [
        Job(submission_s, 10 * HOUR, 0.01, 1.0, CERTAIN, 1.0, {half: HOUR}, application=name)
        for submission_s, name in ((0.0, "a"), (0.0, "a"), (HOUR, "b"))
    ]
    instance = Instance.from_jobs([V], [Node("V", 2)], jobs, [half], mechanisms=[slowdown])
    assert rounds_of(instance)[0].types[:, of.SECONDS_PER_EPOCH].tolist() == [1.0]


def test_looking_changes_nothing():
    assert simulate(three_jobs(), Looking()).log.tobytes() == simulate(three_jobs(), StsX()).log.tobytes()
