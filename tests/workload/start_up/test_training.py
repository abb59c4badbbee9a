"""What a pipelined start adds to a first pass and to an iteration of a built-in application."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpusched_env.workload import builtin_applications
from gpusched_env.workload.switching import added_s

BERT = builtin_applications()["bert-squad-global384"]
STATE, WEIGHTS = BERT.state_gib * 2**30, 108_310_272 * 4


def test_without_computing_everything_that_is_sent_is_waited_for():
    """A start sends the weights, a resumption the whole state, in a group with two messages of 94 µs."""
    added = added_s(replace(BERT, seconds_per_epoch={("V100", 1): 1e-9}), 12.0)
    assert added == pytest.approx((WEIGHTS / 12e9 + 188e-6, STATE / 12e9 + 188e-6), abs=1e-6)


def test_long_computing_hides_all_but_the_first_group():
    start, resume = added_s(replace(BERT, seconds_per_epoch={("V100", 1): 1e7}), 12.0) or (0.0, 0.0)
    assert start > 0.0
    assert resume == pytest.approx(start, abs=2e-4)  # one message more
    assert start < 0.02


def test_nothing_is_known_of_other_models_other_gpus_and_unknown_batches():
    applications = builtin_applications()
    assert added_s(applications["deepspeech2-librispeech-global64"], 12.0) is None
    assert added_s(replace(BERT, seconds_per_epoch={("T4", 1): 1.0}), 12.0) is None
    assert added_s(replace(BERT, batches_per_epoch=0.0), 12.0) is None
