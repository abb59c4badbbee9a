"""Calls in several processes: what they raise, and what becomes of them when nobody wants the rest."""

from gpusched_experiments.report.processes import PROCESSES, call_all


def test_in_this_process_calls_are_made_in_their_order_and_need_not_be_picklable():
    assert list(call_all([lambda: "a", lambda: "b"], (), 1)) == [(0, "a"), (1, "b")]
    assert list(call_all([], (), 2)) == []
    assert PROCESSES.cores() >= 1
