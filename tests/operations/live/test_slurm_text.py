from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_operations.live.slurm_text import GresGpus, gpus_of, hosts_of, number_of, numbers_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("(null)", ()),
        ("v1", ("v1",)),
        ("a[1-2,5],b7", ("a1", "a2", "a5", "b7")),
        ("gpu[08-11]", ("gpu08", "gpu09", "gpu10", "gpu11")),
        ("r[1-2]n[0,3]-ib", ("r1n0-ib", "r1n3-ib", "r2n0-ib", "r2n3-ib")),
        ("a1,v2", ("a1", "v2")),
    ],
)
def test_sets_of_nodes(text: str, names: tuple[str, ...]) -> None:
    assert hosts_of(text) == names


@given(st.sets(st.integers(0, 9999), min_size=1, max_size=40), st.sampled_from([0, 4]))
def test_names_that_are_folded_into_ranges_come_back(numbers: set[int], width: int) -> None:
    listed = sorted(numbers)
    parts, first = [], listed[0]
    for at, number in enumerate(listed):
        if at + 1 == len(listed) or listed[at + 1] != number + 1:
            parts.append(f"{first:0{width}d}" if first == number else f"{first:0{width}d}-{number:0{width}d}")
            first = listed[at + 1] if at + 1 < len(listed) else 0
    assert hosts_of(f"n[{','.join(parts)}]") == tuple(f"n{number:0{width}d}" for number in listed)


@pytest.mark.parametrize("text", ["a[1-", "a[2-1]", "a[x]", "a]1[", "a[1-9999999]", "a[0-9999]b[0-9999]"])
def test_what_is_no_set_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        hosts_of(text)


def test_tasks_with_steps_and_cut_sets() -> None:
    assert numbers_of("0-8:4,11") == ["0", "4", "8", "11"]
    assert numbers_of("1-3,7,...") == ["1", "2", "3", "7"]


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("", ()),
        ("(null)", ()),
        ("gpu", (GresGpus(None, 1),)),
        ("gpu:4", (GresGpus(None, 4),)),
        ("gpu:v100:4(S:0-1)", (GresGpus("v100", 4),)),
        ("gres:gpu:v100:2", (GresGpus("v100", 2),)),
        ("gres/gpu:v100=2", (GresGpus("v100", 2),)),
        ("gres/gpu:a100:2", (GresGpus("a100", 2),)),
        ("gres:gpu:v100", (GresGpus("v100", 1),)),
        ("gpu:v100:2(IDX:0-1,3)", (GresGpus("v100", 2, (0, 1, 3)),)),
        ("gpu:0(IDX:)", (GresGpus(None, 0),)),
        ("gpu:a100:2(IDX:0,2),gpu:v100:1(IDX:4),mps:10", (GresGpus("a100", 2, (0, 2)), GresGpus("v100", 1, (4,)))),
        ("gpu:1g.5gb:7,gpu:a100:1", (GresGpus("1g.5gb", 7), GresGpus("a100", 1))),
        ("cpu=4,mem=16G,node=1,billing=4,gres/gpu=2,gres/gpu:v100=2", (GresGpus("v100", 2),)),
        ("cpu=4,gres/gpu=2", (GresGpus(None, 2),)),
        ("gres:shard:3,craynetwork:1", ()),
        ("gpu:2K", (GresGpus(None, 2048),)),
        ("gpu:(null):0(IDX:N/A)", (GresGpus(None, 0),)),
        ("gpu:(null):2(IDX:0-1)", (GresGpus(None, 2, (0, 1)),)),
    ],
)
def test_gpus(text: str, gpus: tuple[GresGpus, ...]) -> None:
    assert gpus_of(text) == gpus


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (4, 4.0),
        (None, None),
        ("NOT_SET", None),
        ({"set": True, "infinite": False, "number": 4}, 4.0),
        ({"set": False, "infinite": False, "number": 0}, None),
        ({"set": False, "infinite": True, "number": 0}, None),
        ({"set": True, "infinite": True, "number": 0}, None),
    ],
)
def test_numbers_of_all_versions(value: object, number: float | None) -> None:
    assert number_of(value, "time_limit") == number


@pytest.mark.parametrize("value", ["4", True, [4], {"set": True, "number": "4"}, math.inf, math.nan, 10**400])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="time_limit"):
        number_of(value, "time_limit")
