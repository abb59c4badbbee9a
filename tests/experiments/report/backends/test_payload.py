"""Calls are sent as bytes, and what many of them hold is sent once."""

from functools import partial

from gpusched_baselines.registry import make_policy
from gpusched_env.simulator import simulate
from gpusched_experiments.report.backends.ray_worker import Serialisation, unpacked
from gpusched_experiments.report.warm_up import tiny_instance
from refusals import refused


def test_a_call_gives_the_same_on_the_other_side():
    serialisation = Serialisation((), lambda content: content)
    payload, shared = serialisation.packed(partial(divmod, 7, 2))
    assert shared == []
    assert unpacked(payload, shared)() == (3, 1)


def test_an_instance_and_a_policy_that_many_calls_hold_are_sent_once():
    put: list[bytes] = []

    def keep(content: bytes) -> int:
        put.append(content)
        return len(put) - 1

    instance, policies = tiny_instance(), (make_policy("edf"), make_policy("fifo"))
    serialisation = Serialisation(policies, keep)
    payloads = [
        serialisation.packed(partial(simulate, instance, policy, seed=seed)) for policy in policies for seed in range(5)
    ]
    assert len(put) == 3
    for payload, places in payloads:
        assert len(payload) < 500
        assert unpacked(payload, [put[place] for place in places])().total_eur > 0.0


def test_a_thing_that_stands_twice_in_a_call_is_one_thing_there():
    instance = tiny_instance()
    serialisation = Serialisation((), lambda content: content)
    payload, shared = serialisation.packed(partial(list, (instance, instance)))
    assert len(shared) == 1
    first, second = unpacked(payload, shared)()
    assert first is second


def test_a_call_that_cannot_be_sent_is_named():
    with refused("backend", "ray"):
        Serialisation((), lambda content: content).packed(lambda: 1)
