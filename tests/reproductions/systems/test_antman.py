"""AntMan's figures: measures that have to come out, on the traces where they are there."""

from __future__ import annotations

import pytest

from gpusched_reproductions.systems.antman import GPUS, MURI, PARTS, trace_instance

pytestmark = pytest.mark.skipif(not MURI.is_dir(), reason=f"needs Muri's traces in {MURI}")


def test_every_trace_has_its_single_gpu_jobs_and_both_classes():
    counts = {trace: trace_instance(trace, shared=True) for trace in GPUS}
    assert {trace: len(instance.jobs) for trace, instance in counts.items()} == {1: 536, 2: 2335, 4: 1680}
    assert all(0.4 < instance.jobs.opportunistic.mean() < 0.6 for instance in counts.values())


def test_alone_and_shared_are_the_same_jobs():
    shared, alone = (trace_instance(4, shared=each, first=50) for each in (True, False))
    assert shared.jobs.due_s.tolist() == alone.jobs.due_s.tolist()
    assert [c.name for c in alone.configurations] == ["V100x1"]
    assert [c.name for c in shared.configurations] == ["V100x0.6!", "V100x0.4"]


def test_guaranteed_jobs_keep_their_promise_on_a_part_of_a_trace_and_gpus_do_more():
    quick = next(part for part in PARTS if part.name == "sharing-1").run(True)
    figures = {check.what: check for check in quick.checks}
    assert figures["guaranteed jobs: largest time over time alone"].met
    assert figures["computing utilisation against exclusive FIFO"].ours > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_figure_lies_in_its_band(part):
    assert [check.what for check in part.run(False).checks if not check.met] == []
