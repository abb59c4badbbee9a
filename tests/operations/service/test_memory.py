"""What policies remember goes out and comes back as it was, and nobody else can write it."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpusched_env.arrays import generator_of
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.memory import SLOWDOWN, Memory
from gpusched_operations.service.openapi import EXAMPLE
from refusals import refused

KEY = b"a key"


def memory_of(rows: np.ndarray) -> Memory:
    timer_s = rows[1:, 0]
    ids = [f"job-{i}" for i in range(len(timer_s))]
    return Memory(
        "sts-x",
        "here",
        ids,
        np.column_stack([timer_s, timer_s + 1.0, timer_s + 2.0, timer_s + 3.0]),
        rows,
        3,
        7,
        np.random.default_rng(1).bit_generator.state,
    )


@given(arrays(np.float64, (3, 5), elements=st.floats(allow_nan=False) | st.just(0.0)))
def test_memory_comes_back_bit_for_bit(rows: np.ndarray):
    before = memory_of(rows)
    after = Memory.read(before.text(KEY), KEY)
    assert after.rows.tobytes() == (rows + 0.0).tobytes() or np.array_equal(after.rows, rows)
    before.jobs[:, SLOWDOWN] = np.where(before.jobs[:, SLOWDOWN] == 0.0, 1.0, before.jobs[:, SLOWDOWN])
    np.testing.assert_array_equal(after.jobs, before.jobs)
    assert after.ids == before.ids


@given(st.data())
def test_memory_that_was_changed_is_refused(data: st.DataObject):
    raw = bytearray(base64.b64decode(memory_of(np.ones((3, 2))).text(KEY)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with refused("memory"):
        Memory.read(base64.b64encode(bytes(raw)).decode(), KEY)


@pytest.mark.parametrize("text", ["", "A", "AAAA", "ä", "=" * 100])
def test_what_is_no_memory_is_refused(text: str):
    with refused("memory", text):
        Memory.read(text, KEY)


def test_a_service_with_another_key_refuses_it():
    with refused("memory", allowed="a service with the same key"):
        Memory.read(memory_of(np.ones((3, 2))).text(KEY), b"another")


def test_randomness_goes_on_where_it_was():
    rng = np.random.default_rng(5)
    rng.integers(0, 9, 3, dtype=np.int32)  # leaves half a word over
    copy = generator_of(json.loads(json.dumps(rng.bit_generator.state)))
    np.testing.assert_array_equal(copy.random(5), rng.random(5))


def test_memory_of_another_policy_is_refused_and_that_of_another_cluster_begins_anew():
    decider = Decider(PolicyCatalogue.of("edf,sts-x"), KEY)
    memory = json.loads(decider(json.dumps(EXAMPLE).encode()))["memory"]
    with refused("policy", "edf"):
        decider(json.dumps(EXAMPLE | {"policy": "edf", "memory": memory}).encode())
    fewer = {**EXAMPLE["cluster"], "nodes": EXAMPLE["cluster"]["nodes"][:1]}
    smaller = EXAMPLE | {"cluster": fewer}
    told = json.loads(decider(json.dumps(smaller | {"memory": memory}).encode()))
    anew = json.loads(decider(json.dumps(smaller).encode()))
    assert [job["configuration"] for job in told["jobs"]] == [job["configuration"] for job in anew["jobs"]]


def test_without_memory_time_slices_count_from_when_jobs_got_what_they_hold():
    """In Unix time: one GPU for an hour is more than two for 90 s, though less than two since 1970."""
    now_s = 1.7e9
    job = {"submission_s": now_s - 7200.0, "due_s": now_s + 1e6, "tardiness_weight_eur_per_s": 0.01, "max_epochs": 1e3}
    held = {"nodes": ["a"], "since_s": now_s - 3600.0}
    one, two = {"Vx1": 100.0}, {"Vx2": 100.0}
    jobs = [
        {"id": "hour", "seconds_per_epoch": one, "running": held | {"configuration": "Vx1"}},
        {"id": "new", "seconds_per_epoch": two, "running": held | {"configuration": "Vx2", "since_s": now_s - 90.0}},
        {"id": "waits", "seconds_per_epoch": one},
    ]
    gpu_type = {"name": "V", "gpu_power_w": 100.0, "memory_gib": 16.0}
    cluster = {"gpu_types": [gpu_type], "nodes": [{"name": "a", "gpu_type": "V", "gpus": 3}]}
    request = {"policy": "time-slice", "now_s": now_s, "cluster": cluster, "jobs": [job | own for own in jobs]}
    decider = Decider(PolicyCatalogue.of("time-slice"), KEY)
    answer = json.loads(decider(json.dumps(request).encode()))
    assert [told["action"] for told in answer["jobs"]] == ["stop", "keep", "start"]
