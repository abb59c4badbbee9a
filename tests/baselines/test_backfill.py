"""Backfilling by time limits: reservations by hand, plain references on one node, and what a reservation promises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import make_policy
from gpusched_baselines.backfill.conservative import Conservative
from gpusched_baselines.backfill.easy import Easy, first_reservation
from gpusched_baselines.backfill.free_gpus import asked_for
from gpusched_baselines.backfill.multifactor import USAGE, Multifactor
from gpusched_baselines.backfill.profile import CONFIG, START_S
from gpusched_baselines.backfill.slurm import SlurmBackfill
from gpusched_baselines.backfill.whole_nodes import best_set
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    Instance,
    Job,
    Tenant,
    Tenants,
    load_scenario,
    make_instance,
    simulate,
)
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.simulator.kernels import at
from gpusched_env.simulator.policy import environment_columns
from instances import CERTAIN, random_instance
from refusals import refused
from run_files import audited
from small_instances import kilowatt_cluster

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy, State

EVEN = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]))
Rows = list[tuple[float, int, float, float]]
"""Jobs: submission [s], GPUs, time limit [s], and part of it that the job needs."""


def queue(rows: Rows, nodes: tuple[int, ...] = (4,)) -> Instance:
    """Make jobs that may use just the GPUs that they ask for; one on more GPUs than a node has gets whole nodes."""
    most = max(nodes)
    asked = [Configuration("V", min(gpus, most), -(-gpus // most)) for _, gpus, _, _ in rows]
    jobs = [
        Job(submission, 1e6, 1e-3, 1.0, CERTAIN if part == 1.0 else EVEN, part, {config: limit})
        for (submission, _, limit, part), config in zip(rows, asked, strict=True)
    ]
    return kilowatt_cluster(jobs, nodes, list(dict.fromkeys(asked)))


def starts(instance: Instance, policy: Policy) -> list[float]:
    return [round(each, 6) for each in simulate(instance, policy).start_s.tolist()]


def test_easy_starts_a_gang_at_the_time_that_its_reservation_promised():
    """Two jobs hold half of the node each, until 100 and 200 s; a gang waits for both, and jobs of one half come."""
    rows = [(0.0, 2, 100.0, 1.0), (0.0, 2, 200.0, 1.0), (10.0, 4, 50.0, 1.0), *((20.0, 2, 100.0, 1.0),) * 3]
    assert starts(queue(rows), Easy()) == [0, 0, 200, 100, 250, 250]


def test_a_job_that_would_delay_the_reservation_waits_and_one_on_extra_gpus_starts():
    """The head needs 3 of 4 GPUs at 100 s; one is extra. Of two long jobs of one GPU the first takes it."""
    long = (10.0, 1, 500.0, 1.0)
    rows = [(0.0, 2, 100.0, 1.0), (5.0, 3, 50.0, 1.0), long, long, (10.0, 1, 90.0, 1.0)]
    assert starts(queue(rows), Easy()) == [0, 100, 10, 150, 10]
    late = [*rows[:-1], (10.0, 1, 91.0, 1.0)]  # a second longer than until the reservation
    assert starts(queue(late), Easy()) == [0, 100, 10, 150, 150]


def test_conservative_refuses_what_easy_allows():
    """The last job uses the GPU that is free beside the first reservation; it delays the second one, of all GPUs."""
    rows = [(0.0, 2, 100.0, 1.0), (1.0, 3, 50.0, 1.0), (2.0, 4, 10.0, 1.0), (3.0, 1, 300.0, 1.0)]
    assert starts(queue(rows), Easy()) == [0, 100, 303, 3]
    assert starts(queue(rows), Conservative()) == [0, 100, 150, 160]
    rows[-1] = (3.0, 1, 147.0, 1.0)  # ends when the second reservation begins
    assert starts(queue(rows), Easy()) == starts(queue(rows), Conservative()) == [0, 100, 150, 3]


def test_a_reservation_is_on_nodes_and_not_on_a_sum_of_gpus():
    """From 20 s on a GPU of each of two nodes is free; the job of two waits for the second node until 100 s."""
    rows = [(0.0, 1, 20.0, 1.0), (0.0, 1, 300.0, 1.0), (0.0, 1, 100.0, 1.0), (30.0, 2, 50.0, 1.0)]
    rows += [(31.0, 1, 200.0, 1.0), (31.0, 1, 80.0, 1.0)]  # on the first node; too long for the second one
    for policy in (Easy(), Conservative()):
        assert starts(queue(rows, (2, 2)), policy) == [0, 0, 0, 100, 31, 150]


def test_a_reservation_of_easy_moves_to_other_nodes_of_its_time():
    """At 100 s two of three nodes do for the head; the long job may use the one that is free before."""
    rows = [(0.0, 1, 10.0, 1.0), *((0.0, 1, 100.0, 1.0),) * 2, (0.0, 1, 400.0, 1.0), (20.0, 2, 50.0, 1.0)]
    assert starts(queue([*rows, (30.0, 1, 300.0, 1.0)], (1,) * 4), Easy()) == [0, 0, 0, 0, 100, 30]
    rows[2] = (0.0, 1, 400.0, 1.0)  # now it needs both
    assert starts(queue([*rows, (30.0, 1, 300.0, 1.0)], (1,) * 4), Easy()) == [0, 0, 0, 0, 100, 150]


def test_only_kept_reservations_hold_when_a_job_ends_before_its_limit():
    """At 20 s the gang could be at 40 instead of 100 s; the last job has been promised 40 s."""
    rows = [(0.0, 2, 40.0, 1.0), (0.0, 2, 100.0, 0.2), (1.0, 5, 50.0, 1.0), (2.0, 2, 60.0, 1.0)]
    assert starts(queue(rows, (5,)), Conservative()) == [0, 0, 80, 20]
    assert starts(queue(rows, (5,)), SlurmBackfill()) == [0, 0, 40, 90]


def test_easy_starts_the_gang_of_a_report_at_7200_seconds_where_fifo_lets_all_later_jobs_pass():
    """Two jobs of 4 run on 8 GPUs, at 60 s one of 8 is submitted, and then 24 of 4, one every half hour."""
    hour = 3600.0
    rows = [(0.0, 4, hour - 1.0, 1.0), (0.0, 4, 2 * hour, 1.0), (60.0, 8, hour, 1.0)]
    instance = queue([*rows, *((1800.0 * n, 4, hour, 1.0) for n in range(1, 25))], (8,))
    for policy in (Easy(), Conservative(), SlurmBackfill()):
        assert starts(instance, policy)[2] == 2 * hour
    assert starts(instance, make_policy("fifo"))[2] == 50_399.0


def test_a_gang_of_whole_nodes_has_its_nodes_at_the_reserved_time():
    """A gang of two nodes: a job that uses the node that is free now beyond the reservation does not start."""
    rows = [(0.0, 2, 100.0, 1.0), (1.0, 4, 50.0, 1.0), (2.0, 2, 98.0, 1.0), (3.0, 2, 300.0, 1.0), (4.0, 1, 96.0, 1.0)]
    for policy in (Easy(), Conservative()):
        assert starts(queue(rows, (2, 2)), policy) == [0, 100, 2, 150, 150]


def test_an_order_that_does_not_exist_is_refused():
    for policy in (Easy, Conservative, SlurmBackfill):
        with refused("job_order", "size", "submission"):
            policy(job_order="size")


def test_slurm_reserves_whole_nodes():
    """The head needs 3 GPUs of the first node at 100 s; the fourth is free before and after."""
    rows = [(0.0, 3, 100.0, 1.0), (0.0, 4, 600.0, 1.0), (1.0, 3, 50.0, 1.0), (2.0, 1, 300.0, 1.0)]
    assert starts(queue(rows, (4, 4)), Easy()) == [0, 0, 100, 2]
    assert starts(queue(rows, (4, 4)), SlurmBackfill()) == [0, 0, 100, 100]
    rows[-1] = (2.0, 1, 97.0, 1.0)  # ends before the reservation
    assert starts(queue(rows, (4, 4)), SlurmBackfill()) == [0, 0, 100, 2]


def test_ends_within_a_half_minute_count_together_for_slurm():
    """The head could start at 100 s, when 3 GPUs are free; Slurm expects it at 125, after both jobs."""
    rows = [(0.0, 2, 100.0, 1.0), (0.0, 2, 125.0, 1.0), (1.0, 3, 50.0, 1.0), (2.0, 1, 110.0, 1.0)]
    assert starts(queue(rows, (5,)), Easy()) == [0, 0, 100, 125]
    assert starts(queue(rows, (5,)), SlurmBackfill()) == [0, 0, 112, 2]
    rows[1] = (0.0, 2, 151.0, 1.0)  # more than 30 s after the half minute, 120 s, that follows the first end
    assert starts(queue(rows, (5,)), SlurmBackfill()) == [0, 0, 100, 150]


def test_the_precision_of_ends_doubles_as_slurm_looks_at_later_ones():
    """From 120 s on ends within 30, 60 and 120 s count together: those at 200 and 235 s, and that at 165 alone."""
    running = [(0.0, gpus, end, 1.0) for gpus, end in ((1, 100.0), (2, 165.0), (2, 200.0), (2, 235.0))]
    rows = [*running, (1.0, 5, 50.0, 1.0), (2.0, 1, 220.0, 1.0)]
    assert starts(queue(rows, (8,)), SlurmBackfill()) == [0, 0, 0, 0, 200, 2]  # ends before 235 s
    rows[-2:] = (1.0, 3, 50.0, 1.0), (2.0, 1, 180.0, 1.0)
    assert starts(queue(rows, (8,)), SlurmBackfill()) == [0, 0, 0, 0, 165, 165]


def test_slurm_keeps_as_many_reservations_as_it_is_set_to():
    """Four nodes; a job on three of them at 100 s, one on all at 150, and one that may use the fourth."""
    rows = [(0.0, 2, 100.0, 1.0), (1.0, 3, 50.0, 1.0), (2.0, 4, 10.0, 1.0), (3.0, 1, 300.0, 1.0)]
    cluster = (1,) * 4
    assert starts(queue(rows, cluster), SlurmBackfill()) == [0, 100, 150, 160]
    assert starts(queue(rows, cluster), SlurmBackfill(reservations=1)) == [0, 100, 303, 3]
    rows[-1] = (3.0, 1, 140.0, 1.0)
    assert starts(queue(rows, cluster), SlurmBackfill()) == [0, 100, 150, 3]
    assert starts(queue(rows, cluster), SlurmBackfill(plugin=False)) == [0, 100, 150, 160]


def test_slurm_finds_a_reservation_behind_those_of_several_other_jobs():
    """Jobs on two of three nodes follow each other until 1,200 s; one of all nodes comes then, and none delays it."""
    rows = [(0.0, 8, 100.0, 1.0), (1.0, 8, 600.0, 1.0), (2.0, 8, 300.0, 1.0), (3.0, 8, 200.0, 1.0)]
    rows += [(4.0, 12, 50.0, 1.0), (5.0, 4, 2000.0, 1.0), (6.0, 4, 1100.0, 1.0)]
    assert starts(queue(rows, (4, 4, 4)), SlurmBackfill()) == [0, 100, 700, 1000, 1200, 1250, 6]


def test_slurm_reserves_nothing_beyond_its_window():
    rows = [(0.0, 2, 200.0, 1.0), (1.0, 4, 50.0, 1.0), (2.0, 2, 300.0, 1.0)]
    assert starts(queue(rows), SlurmBackfill()) == [0, 200, 250]
    assert starts(queue(rows), SlurmBackfill(window_s=100.0)) == [0, 302, 2]


def test_slurm_tests_five_hundred_jobs_that_wait():
    for ahead, starts_now in ((499, True), (500, False)):
        rows = [(0.0, 1, 900.0, 1.0), *((1.0, 2, 900.0, 1.0),) * ahead, (1.0, 1, 10.0, 1.0)]
        found: list[bool] = []

        def look(state: State, found: list[bool] = found) -> None:
            found.append(bool(state.view.jobs[-1, at.CONFIG] >= 0))
            if state.view.now_s >= 1.0:
                raise StopIteration

        with pytest.raises(StopIteration):
            simulate(queue(rows, (1, 1)), SlurmBackfill(reservations=1), on_round=look)
        assert found[-1] == starts_now


def test_slurm_takes_the_smallest_set_of_neighbours_that_is_enough_else_the_largest():
    fits = np.array([True, False, True, True, True, False, True, True])
    assert [best_set(fits, needs) for needs in (1, 2, 3, 4)] == [(0, 1), (6, 2), (2, 3), (2, 3)]


def test_settings_of_slurm_out_of_range_are_refused():
    for policy in (SlurmBackfill, Multifactor):
        for field, value, allowed in (("reservations", -1, ">= 0"), ("window_s", 0.0, "> 0"), ("plugin", 1, "True")):
            with refused(field, value, allowed):
                policy(**{field: value})


def _easy(now: float, running: list[int], waiting: list[int], rows: Rows, ends: list[float], gpus: int) -> list[int]:
    free, chosen, shadow, extra = gpus - sum(rows[j][1] for j in running), [], np.inf, 0
    for j in waiting:
        size, limit = rows[j][1], rows[j][2]
        if shadow == np.inf and size <= free:
            chosen.append(j)
            free -= size
        elif shadow == np.inf:
            held = sorted([(ends[i], rows[i][1]) for i in running] + [(now + rows[i][2], rows[i][1]) for i in chosen])
            shadow = next(end for end, _ in held if free + sum(g for e, g in held if e <= end) >= size)
            extra = free + sum(g for e, g in held if e <= shadow) - size
        elif size <= free and (now + limit <= shadow or size <= extra):
            extra -= size if now + limit > shadow else 0
            chosen.append(j)
            free -= size
    return chosen


def _conservative():
    """Return the rule with the reservations that it keeps; they move after jobs have ended."""
    reserved: dict[int, float] = {}
    held_before: set[int] = set()

    def rule(now: float, running: list[int], waiting: list[int], rows: Rows, ends: list[float], gpus: int) -> list[int]:
        if sum(rows[j][1] for j in running) == gpus:
            return []
        moves = not held_before <= set(running)
        for j in waiting:
            if j in reserved and reserved[j] > now and not moves:
                continue
            held = [(now, ends[i], rows[i][1]) for i in running]
            held += [(reserved[i], reserved[i] + rows[i][2], rows[i][1]) for i in waiting if i != j and i in reserved]

            def fits(begin: float, j: int = j, held: list = held) -> bool:
                within = [t for t in [begin, *(s for s, _, _ in held)] if begin <= t < begin + rows[j][2]]
                return all(sum(g for s, e, g in held if s <= t < e) + rows[j][1] <= gpus for t in within)

            reserved[j] = next(t for t in sorted({now, *(e for _, e, _ in held)}) if fits(t))
        chosen = [j for j in waiting if reserved[j] == now]
        held_before.clear()
        held_before.update(running, chosen)
        return chosen

    return rule


def reference(rows: Rows, gpus: int, rule) -> list[float]:
    """Return the start times on one node by a plain simulation from event to event [s]."""
    count, now = len(rows), -1.0
    start, limit, over = [np.inf] * count, [np.inf] * count, [np.inf] * count
    while any(each == np.inf for each in start):
        now = min(t for t in [*(row[0] for row in rows), *over] if now < t)
        running = [j for j in range(count) if start[j] <= now < over[j]]
        waiting = [j for j in range(count) if rows[j][0] <= now and start[j] == np.inf]
        for j in rule(now, running, waiting, rows, limit, gpus):
            start[j], limit[j], over[j] = now, now + rows[j][2], now + rows[j][2] * rows[j][3]
    return start


rows_of_jobs = st.lists(
    st.tuples(
        st.integers(0, 4).map(lambda n: 25.0 * n),
        st.integers(1, 4),
        st.integers(1, 8).map(lambda n: 50.0 * n),
        st.sampled_from([1.0, 0.5]),
    ),
    min_size=1,
    max_size=9,
).map(lambda rows: [(sum(r[0] for r in rows[: i + 1]), *row[1:]) for i, row in enumerate(rows)])


@settings(max_examples=60, deadline=None)
@given(rows_of_jobs)
def test_on_one_node_the_starts_are_those_of_a_plain_reference(rows):
    assert starts(queue(rows), Easy()) == reference(rows, 4, _easy)
    assert starts(queue(rows), Conservative()) == reference(rows, 4, _conservative())


class Watched:
    """A policy whose reservations are kept: of every job the first time at which it had one, and what it promised."""

    def __init__(self, policy: Policy) -> None:
        self.name, self.preemption, self.policy = policy.name, policy.preemption, policy
        self.promised: dict[int, float] = {}

    def memory_columns(self, instance: Instance) -> int:
        return 60

    def decide(self, view, rng) -> None:
        self.policy.decide(view, rng)
        waiting = view.waiting
        if isinstance(self.policy, Conservative):
            rows = view.memory[waiting]
            found = {j: row[START_S] for j, row in zip(waiting.tolist(), rows, strict=True) if row[CONFIG]}
        else:
            head = waiting[:1]
            found = {j: first_reservation(view.board, j, asked_for(view.board, head)[0])[0] for j in head.tolist()}
        self.promised = found | self.promised


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_no_job_starts_after_its_first_reservation(seed, kinds):
    """Limits are never exceeded here: the first job of the queue under EASY, and every job under conservative."""
    instance = random_instance(seed, jobs=14, nodes=3, restart_s=60.0, span_s=2000.0, kinds=kinds)
    for policy in (Easy(), Conservative()):
        watched = Watched(policy)
        start = simulate(instance, watched).start_s
        assert all(start[job] <= promised + 1e-3 for job, promised in watched.promised.items()), policy.name


def usage_and_priorities(instance: Instance, policy: Multifactor, at_s: float) -> tuple[list[float], list[float]]:
    """Return the usage of tenants and the priorities of the jobs that wait at a round at a time [s]."""
    found: list[tuple[list[float], list[float]]] = []

    def look(state: State) -> None:
        if state.view.now_s == at_s:
            view = state.view
            found.append((view.memory[0, USAGE:].tolist(), policy.priorities(view, view.waiting).tolist()))

    simulate(instance, policy, on_round=look)
    return found[0]


def of_tenants(rows: Rows, tenants: list[int]) -> Instance:
    """Make the same queue of jobs of two tenants."""
    made = queue(rows)
    jobs = replace(made.jobs, tenant=np.array(tenants))
    return replace(made, jobs=jobs).with_mechanisms(Tenants((Tenant("a"), Tenant("b"))))


def test_age_overtakes_size_after_the_time_that_their_weights_give():
    """A job of 1 GPU that waits 40 s more than one of 4 has 0.4 of the age; the sizes differ by 3/8 (half of 3/4)."""
    rows = [(0.0, 4, 100.0, 1.0), (10.0, 1, 10.0, 1.0), (50.0, 4, 10.0, 1.0)]
    for weight, first in ((1000.0, [0, 100, 110]), (900.0, [0, 110, 100])):
        assert starts(queue(rows), Multifactor(age=weight, size=1000.0, max_age_s=100.0)) == first
    assert starts(queue(rows), Multifactor(age=900.0, max_age_s=100.0, favor_small=True)) == [0, 100, 110]


def test_priorities_are_whole_numbers_and_equal_ones_are_in_the_order_of_submission():
    """Of sizes 0.75 and 0.875 nothing is left with weight 1; with weight 1000 the larger job goes first."""
    rows = [(0.0, 4, 100.0, 1.0), (1.0, 2, 100.0, 1.0), (1.0, 3, 100.0, 1.0)]
    for weight, expected in ((1.0, [0, 100, 200]), (1000.0, [0, 200, 100])):
        assert starts(queue(rows), Multifactor(age=0.0, size=weight, fair_share=0.0)) == expected


def test_usage_is_half_after_a_half_life_and_the_fair_share_follows_it():
    """Tenant a holds 4 GPUs for 100 s: ∫ 4 · 2^(-s/50) = 4 · 50 / ln 2 · (1 - 1/4); 50 s later it is half of that."""
    rows = [(0.0, 4, 100.0, 1.0), (100.0, 2, 100.0, 1.0), (100.0, 4, 30.0, 1.0), (150.0, 1, 10.0, 1.0)]
    policy = Multifactor(age=0.0, size=0.0, fair_share=1000.0, half_life_s=50.0)
    used, (priority, *_) = usage_and_priorities(of_tenants(rows, [0, 1, 1, 1]), policy, 150.0)
    both = [2.0 * 50.0 / np.log(2.0) * 0.75, 2.0 * 50.0 / np.log(2.0) * 0.5]
    assert used == pytest.approx(both)
    assert priority == np.floor(1000.0 * 2.0 ** (-2.0 * both[1] / sum(both)))


def test_the_tenant_that_has_used_less_goes_first_until_usage_has_decayed():
    """Job 0 of tenant a ends at 50 s, so the second one of a waits for that of b, submitted later."""
    rows = [(0.0, 4, 50.0, 1.0), (10.0, 4, 10.0, 1.0), (20.0, 4, 10.0, 1.0)]
    assert starts(of_tenants(rows, [0, 0, 1]), Multifactor()) == [0, 60, 50]
    assert starts(of_tenants(rows, [0, 0, 0]), Multifactor()) == [0, 50, 60]
    assert starts(of_tenants(rows, [0, 0, 1]), Multifactor(fair_share=0.0)) == [0, 50, 60]


def test_the_usage_of_jobs_that_end_between_rounds_is_counted_once():
    """Both complete at 10 s, when nothing waits; the next round is at 100 s."""
    rows = [(0.0, 1, 10.0, 1.0), (0.0, 2, 10.0, 1.0), (100.0, 1, 10.0, 1.0)]
    assert usage_and_priorities(of_tenants(rows, [0, 1, 0]), Multifactor(half_life_s=np.inf), 100.0)[0] == [10, 20]


class Wide(Multifactor):
    """With as many columns of memory as decisions from outside have."""

    def memory_columns(self, instance: Instance) -> int:
        return environment_columns(instance)


def test_priorities_do_not_depend_on_how_many_columns_the_memory_has():
    rows = [(0.0, 4, 100.0, 1.0), (0.0, 4, 100.0, 1.0), (20.0, 4, 100.0, 1.0)]
    for kind in (Multifactor, Wide):
        policy = kind(age=0.0, size=0.0, fair_share=1000.0, half_life_s=np.inf)
        _, found = usage_and_priorities(of_tenants(rows, [0, 0, 1]), policy, 20.0)
        assert found == [250.0, 1000.0]  # all usage is of tenant a: 2^(-1 · 2), and 2^0


def test_numbers_of_tenants_need_no_tenants():
    made = queue([(0.0, 4, 100.0, 1.0), (0.0, 4, 50.0, 1.0)])
    assert starts(replace(made, jobs=replace(made.jobs, tenant=np.array([3, 0]))), Multifactor()) == [0, 100]


@pytest.mark.parametrize("policy", [Easy(), Conservative(), SlurmBackfill()])
def test_quotas_are_not_reserved(policy):
    """A later job of one GPU takes what is left of the quota of 4, and the job of 4 waits for its end, at 102 s."""
    rows = [(0.0, 4, 20.0, 1.0), (1.0, 4, 50.0, 1.0), (2.0, 1, 100.0, 1.0)]
    made = queue(rows, nodes=(4, 4))
    own = replace(made, jobs=replace(made.jobs, tenant=np.array([1, 0, 0])))
    tenants = Tenants((Tenant("a", (Cells("V", 4, 1),)), Tenant("b", (Cells("V", 4, 1),))), "quota")
    assert starts(own, policy)[1] == 1.0
    assert starts(own.with_mechanisms(tenants), policy) == [0.0, 1.0, 51.0]


def test_a_weight_below_zero_and_a_half_life_of_zero_are_refused():
    with refused("age", -1.0, ">= 0"):
        Multifactor(age=-1.0)
    for value in (0.0, None, "x"):
        with refused("half_life_s", value, "> 0"):
            Multifactor(half_life_s=value)


@pytest.mark.parametrize("cap_kw", [4.5, 5.0])
@pytest.mark.parametrize("policy", [Easy(), Conservative()])
def test_reservations_are_kept_under_a_cap(policy, cap_kw):
    """3 of 8 GPUs are held until 100 s, and 4 are reserved from then on. A stream of jobs on one GPU delays neither.

    Each GPU draws 1 kW: the cap leaves room for the reservation alone, or for it and one more job.
    """
    rows = [(0.0, 3, 100.0, 1.0), (1.0, 4, 50.0, 1.0), *((2.0 + 20.0 * i, 1, 60.0, 1.0) for i in range(20))]
    instance = queue(rows, (4, 4)).with_mechanisms(PowerCap((0.0,), (cap_kw,)))
    assert simulate(instance, policy).start_s[1] == 100.0


@pytest.mark.parametrize("policy", ["slurm-backfill", "multifactor", "easy", "conservative"])
def test_under_a_cap_that_binds_jobs_start_and_stay_under_it(policy, tmp_path):
    """GPUs of other nodes, which a start may not use, draw no power then: else no start would be under the cap."""
    instance = make_instance(load_scenario("cap").replace({"jobs.count": 12}), 0)
    result = simulate(instance, make_policy(policy))
    assert np.isfinite(result.completion_s).all()
    assert audited(result, tmp_path / "run") == []
