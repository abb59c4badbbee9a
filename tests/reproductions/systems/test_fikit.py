"""FIKIT's figures: the GPU kernel by kernel by hand, the rule for gaps, and the table of what is filled."""

import csv
import io

import numpy as np
import pytest

from gpusched_env.workload.tables.applications import builtin_filled
from gpusched_reproductions.systems.fikit import PARTS, table
from gpusched_reproductions.systems.fikit.cases import GAVEL, KERNELS, cases, gaps_of, kernel_times, slowdowns_of_pairs
from gpusched_reproductions.systems.fikit.device import fill_gaps, in_order, longest_that_fits
from gpusched_reproductions.systems.fikit.parts import UTILISATIONS_OF_OTHER, shares_filled, speed_ups

ONES = np.ones(2)
NEEDS_KERNELS = pytest.mark.skipif(not KERNELS.is_dir(), reason=f"needs kernel times in {KERNELS}")


def filling(kernels, predicted, gaps, *others, priority=None, utilisation=0.9):
    starts = np.cumsum([0, *(len(each) for each in others)])
    priority = np.zeros(len(others), dtype=np.int64) if priority is None else np.array(priority)
    waiting = np.concatenate([np.array(each, dtype=float) for each in others])
    return fill_gaps(kernels, predicted, gaps, waiting, starts, priority, utilisation)


def plain_filling(kernels, predicted, gaps, *others, priority, utilisation):
    """Fill gaps in plain Python: time of the first job, kernels of the others, and idle time that they used [s]."""
    now, used, inside = 0.0, 0.0, 0.0
    done, ready = [0] * len(others), [0.0] * len(others)
    for kernel, guess, gap in zip(kernels, predicted, gaps, strict=True):
        free, end, arrival = now + kernel, now + kernel + guess, now + kernel + gap
        now = free
        while now < arrival:
            heads = [own[done[job] % len(own)] for job, own in enumerate(others)]
            fits = [job for job, head in enumerate(heads) if ready[job] <= now and head <= end - now]
            if not fits:
                now = min((at for at in ready if at > now), default=arrival)
                continue
            job = max(fits, key=lambda job: (priority[job], heads[job]))
            free = now + heads[job]
            used, inside = used + heads[job], inside + min(free, arrival) - now
            ready[job], done[job] = free + heads[job] * (1.0 / utilisation - 1.0), done[job] + 1
            now = free
        now = max(free, arrival)
    return now, used, inside


def plain_queue(kernels, gaps, request, launch_s, most, pause_s):
    """Run a FIFO queue in plain Python: time of the first job, and of the kernels of the other one [s]."""
    free = arrival = launch = 0.0
    ends, used = [], 0.0
    for kernel, gap in zip(kernels, gaps, strict=True):
        while launch <= arrival:
            used += request[len(ends) % len(request)]
            free = max(free, launch) + request[len(ends) % len(request)]
            ends.append(free)
            launch = max(launch + launch_s, ends[-most] if len(ends) >= most else 0.0)
            launch = free + pause_s if len(ends) % len(request) == 0 else launch
        free = max(free, arrival) + kernel
        arrival = free + gap if gap > 0.0 else arrival + launch_s
    return free + gaps[-1], used


@pytest.mark.parametrize("seed", range(20))
def test_kernel_by_kernel_it_is_what_plain_python_gives(seed):
    rng = np.random.default_rng(seed)
    kernels, predicted = rng.exponential(1.0, 30), rng.exponential(2.0, 30) * (rng.random(30) < 0.5)
    gaps, others = predicted * rng.uniform(0.8, 1.2, 30), [rng.exponential(0.7, size).tolist() for size in (3, 1, 5)]
    asked = {"priority": rng.integers(0, 3, 3).tolist(), "utilisation": float(rng.uniform(0.2, 1.0))}
    shared, plain = (each(kernels, predicted, gaps, *others, **asked) for each in (filling, plain_filling))
    assert shared == pytest.approx((plain[0], plain[1], plain[2] / gaps.sum()))
    queue = kernels, gaps, np.array(others[2]), 0.1, int(rng.integers(1, 5)), float(rng.uniform(0.0, 3.0))
    assert in_order(*queue)[:2] == pytest.approx(plain_queue(*queue))


def test_a_kernel_waits_for_all_that_was_launched_before_it():
    """Kernels and gaps of 1 s, the other job's of 3 s: it waits 3, then 3 - 1 = 2 s; with requests of two 6, then 5."""
    assert in_order(ONES, ONES, np.full(1, 3.0), 0.0, 9, 0.0).first_s == pytest.approx(3 + 1 + 3 + 1 + 1)
    assert in_order(ONES, ONES, np.full(2, 3.0), 0.0, 9, 0.0).first_s == pytest.approx(6 + 1 + 6 + 1 + 1)
    assert in_order(ONES, ONES, np.zeros(0), 0.0, 2, 0.0).first_s == pytest.approx(4.0)


def test_a_process_launches_ahead_until_its_request_ends():
    """One launch a second, requests of two kernels of 3 s: launched at 0, 1, 6 + 2 (pause), 9; ours at 0 and 5 s."""
    shared = in_order(ONES, ONES, np.full(2, 3.0), 1.0, 9, 2.0)
    assert shared.first_s == pytest.approx((3 + 1) + 1 + max(7 - 5, 0) + 1 + 1)
    assert shared.others_s == pytest.approx(6.0)


def test_a_job_that_waits_for_no_gap_launches_ahead_too():
    """Both of its kernels are in the queue at once, behind one of the other job."""
    assert in_order(ONES, np.array([0.0, 1.0]), np.full(1, 3.0), 0.0, 9, 0.0).first_s == pytest.approx(3 + 1 + 1 + 1)


def test_a_gap_takes_the_longest_kernel_that_fits_of_the_highest_priority():
    heads, ready = np.array([0.5, 0.9, 2.0, 0.2]), np.zeros(4)
    same = np.zeros(4, dtype=np.int64)
    assert longest_that_fits(heads, ready, same, 0.0, 1.0) == 1
    assert longest_that_fits(heads, ready, np.array([0, 0, 9, 1]), 0.0, 1.0) == 3
    assert longest_that_fits(heads, np.array([0.0, 5.0, 0.0, 0.0]), same, 0.0, 1.0) == 0
    assert longest_that_fits(heads, ready, same, 0.0, 0.1) == -1


def test_a_gap_is_filled_until_nothing_fits():
    """In a gap of 1 s fit kernels of 0.4 s, one after a pause: 0.4 + 0.044 + 0.4 s."""
    ones = np.ones(3)
    shared = filling(ones, ones, ones, [0.4])
    assert (shared.first_s, shared.filled) == pytest.approx((6.0, 0.8))
    assert filling(ones, ones, ones, [1.1]).filled == 0.0


def test_a_second_job_fills_what_the_first_one_leaves():
    """0.6 s of the one, then 0.3 s of the other: each alone fills less, for the long one does not fit twice."""
    one, gap = np.ones(1), np.ones(1)
    assert filling(one, gap, gap, [0.6]).filled == pytest.approx(0.6)
    assert filling(one, gap, gap, [0.6], [0.3, 5.0]).filled == pytest.approx(0.9)
    blocked = filling(one, gap, gap, [0.6], [0.5, 5.0], priority=[0, 1])
    assert blocked.filled == pytest.approx(0.5), "the higher priority comes first, and 0.6 s does not fit behind it"


def test_a_gap_that_ends_early_makes_the_first_job_wait():
    """Predicted 1 s, in truth 0.5 s: a kernel of 0.9 s holds it up by 0.4 s; only 0.5 s of it were idle time."""
    shared = filling(np.ones(1), np.ones(1), np.full(1, 0.5), [0.9])
    assert (shared.first_s, shared.others_s, shared.filled) == pytest.approx((1.9, 0.9, 1.0))


def test_the_idle_time_makes_the_utilisation_however_it_is_cut():
    kernels = np.random.default_rng(0).uniform(0.1, 1.0, 400)
    for every in (1, 20, 200):
        predicted, actual = gaps_of(kernels, 0.3, every, 0.2, 0)
        assert np.count_nonzero(predicted) == 400 // every
        assert kernels.sum() / (kernels.sum() + predicted.sum()) == pytest.approx(0.3)
        assert np.all(np.abs(actual - predicted) <= 0.2 * predicted + 1e-12)


@pytest.mark.skipif(not GAVEL.is_dir(), reason=f"needs Gavel's throughputs in {GAVEL}")
def test_the_measured_pairs_are_all_there():
    assert [len(slowdowns_of_pairs(gpu)) for gpu in ("K80", "P100", "V100")] == [589, 656, 636]


@NEEDS_KERNELS
def test_every_pair_and_every_set_of_waiting_jobs_is_a_case():
    assert [sum(1 for _ in cases(1, m)) for m in (1, 2, 9)] == [5 * 3 * 9, 5 * 3 * 36, 5 * 3]


@NEEDS_KERNELS
def test_the_table_of_the_simulator_is_what_the_command_prints():
    printed = {(every, m): (median, mean) for every, m, median, mean, _ in table.rows(2)}
    assert {key: builtin_filled()[key] for key in printed} == {key: median for key, (median, _) in printed.items()}
    file = io.StringIO()
    csv.writer(file).writerow(table.COLUMNS)
    assert file.getvalue().strip() == "gap_every,waiting,filled,mean,source"


@NEEDS_KERNELS
def test_two_inference_jobs_fill_0_93_of_a_gap_after_one_kernel_in_20():
    """The figure of an independent program with two inference jobs waiting; over all pairs of jobs it is 0.83."""
    inference = [case.filling().filled for case in cases(20, 2, among=tuple(kernel_times("fwd")))]
    assert np.median(inference) == pytest.approx(0.93, abs=0.01)
    assert np.median(shares_filled(20, 2)[0]) == pytest.approx(0.83, abs=0.01)


@NEEDS_KERNELS
def test_the_busier_the_other_job_the_more_it_slows_the_first_and_filling_costs_little():
    least = [speed_ups(1, utilisation).min() for utilisation in UTILISATIONS_OF_OTHER]
    assert least == pytest.approx([1.32, 1.68, 2.33, 3.39, 4.41], abs=0.01)
    part, slowdown = shares_filled(200, 2)
    assert np.median(part) > 0.9
    assert 1.0 < np.median(slowdown) <= np.max(slowdown) < 1.05


def test_more_waiting_jobs_and_longer_gaps_fill_more_in_the_table():
    known = builtin_filled()
    assert set(known) == {(every, m) for every in (1, 5, 20, 200) for m in range(1, 10)}
    for every in (1, 5, 20, 200):
        row = [known[every, m] for m in range(1, 10)]
        assert row == sorted(row)
        assert 0.0 <= row[0] <= row[-1] <= 1.0
    for m in range(1, 10):
        column = [known[every, m] for every in (1, 5, 20, 200)]
        assert column == sorted(column)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_part_has_figures_and_a_chart(part):
    if part.needs is not None and not part.needs.is_dir():
        pytest.skip(f"needs {part.needs}")
    measured = part.run(True)
    assert measured.chart is not None
    assert all(np.isfinite(check.ours) for check in measured.checks)
