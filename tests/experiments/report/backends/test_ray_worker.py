"""A process of a cluster makes calls only if it has the code of the command; it needs no cluster to be tested."""

import os
import pickle
from dataclasses import replace
from functools import partial

import pytest

from gpusched_baselines.registry import make_policy
from gpusched_env.errors import InputError
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario
from gpusched_experiments.report.backends.ray_worker import (
    CallResult,
    Serialisation,
    Terms,
    make_call,
    unpacked,
    versions,
)
from gpusched_experiments.report.warm_up import tiny_instance
from refusals import refused


class TwoSidedError(Exception):
    """Cannot be made again from what pickle keeps."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"{left} {right}")


def fail(error: type[Exception], *arguments: object) -> None:
    raise error(*arguments)


@pytest.fixture
def terms() -> Terms:
    return Terms(versions(()), os.getcwd(), pickle.dumps(()))  # noqa: PTH109 - as a text


def answer(terms: Terms, call: partial) -> CallResult:
    return pickle.loads(make_call(terms, pickle.dumps(call)))  # noqa: S301 - our own


def test_what_a_call_gives_or_raises_comes_back_or_its_text(terms):
    assert answer(terms, partial(divmod, 7, 2)) == CallResult((3, 1))
    error = answer(terms, partial(load_scenario, "nowhere")).error
    assert isinstance(error, InputError)
    assert (error.field, error.value) == ("scenario", "nowhere")
    error = answer(terms, partial(fail, ValueError, "this")).error
    assert (type(error), error.args) == (ValueError, ("this",))
    assert "in fail" in error.__notes__[0], "where it was raised"
    error = answer(terms, partial(fail, TwoSidedError, "this", "that")).error
    assert type(error) is RuntimeError
    assert str(error) == "TwoSidedError: this that"


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ((("code", "of yesterday"),), "another version of the code or its packages"),
        ((*versions(("agent:default",))[:1], ("agent:default", "of yesterday")), "another version of agent:default"),
        ((*versions(()), ("agent:runs/gone", "any")), "runs/gone"),
    ],
)
def test_a_machine_that_would_give_something_else_makes_no_call(terms, theirs, words):
    refused = answer(replace(terms, versions=theirs), partial(os.abort))
    assert refused.value is None
    assert words in refused.refused


def test_relative_paths_start_from_the_folder_of_the_command(terms, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert answer(replace(terms, folder=str(tmp_path / "here")), partial(os.getcwd)).value == str(tmp_path / "here")


def test_a_call_gives_the_same_on_the_other_side_also_a_thing_that_stands_in_it_twice():
    serialisation = Serialisation((), lambda content: content)
    payload, shared = serialisation.packed(partial(divmod, 7, 2))
    assert shared == []
    assert unpacked(payload, shared)() == (3, 1)
    with refused("backend", "ray"):
        Serialisation((), lambda content: content).packed(lambda: 1)
    instance = tiny_instance()
    serialisation = Serialisation((), lambda content: content)
    payload, shared = serialisation.packed(partial(list, (instance, instance)))
    assert len(shared) == 1
    first, second = unpacked(payload, shared)()
    assert first is second


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
