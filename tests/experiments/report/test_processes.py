"""Calls in several processes: what they raise, and what becomes of them when nobody wants the rest."""

from __future__ import annotations

import os
import time
from functools import partial
from multiprocessing import active_children

import pytest

from gpusched_env.workload import load_scenario
from gpusched_experiments.report.processes import PROCESSES, WorkerError, call_all
from refusals import refused


def test_in_this_process_calls_are_made_in_their_order_and_need_not_be_picklable():
    assert list(call_all([lambda: "a", lambda: "b"], (), 1)) == [(0, "a"), (1, "b")]
    assert list(call_all([], (), 2)) == []
    assert PROCESSES.cores() >= 1


@pytest.mark.slow
def test_calls_in_several_processes_that_nobody_waits_for_are_stopped_at_once():
    results = call_all([partial(os.getpid), *[partial(time.sleep, 60.0)] * 3], (), 2)
    assert next(results)[0] == 0
    begin = time.monotonic()
    results.close()
    assert time.monotonic() - begin < 20.0
    assert not active_children()


@pytest.mark.slow
def test_what_a_call_raises_in_another_process_is_raised_here():
    with refused("scenario", "nowhere"):
        list(call_all([partial(load_scenario, "nowhere")] * 2, (), 2))
    with pytest.raises(WorkerError, match="ended early"):
        list(call_all([partial(os._exit, 1)] * 2, (), 2))
