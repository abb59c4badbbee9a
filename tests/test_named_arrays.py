"""Arrays with names: kernels and Python see the same ones, and nothing else passes for them."""

import copy
import pickle
import sys
from typing import Annotated, Any, TypeVar

import numba
import numpy as np
import pytest
from typing_extensions import TypeAliasType

from boxes import Inner, Outer, by_hand, change, new_outer, weigh, weigh_nth
from gpusched_env.named_arrays import NamedArrays, new_handles

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda value: pickle.loads(pickle.dumps(value))}  # noqa: S301


def test_kernels_read_and_write_every_array_and_find_values_by_their_handles():
    outer = new_outer()
    assert weigh(outer) == by_hand(outer)
    outer.table[1, 0] = 77.0
    outer.inner.numbers[2] = 5
    assert weigh(outer) == by_hand(outer)
    outer, before = new_outer(), new_outer()
    change(outer, 7)
    differences = [np.argwhere(getattr(outer, name) != getattr(before, name)).tolist() for name in ("table", "cube")]
    assert differences == [[[1, 2]], [[1, 2, 3]]]
    assert outer.inner.numbers.tolist() == [7, 1, 2]
    assert (outer.table[1, 2], outer.cube[1, 2, 3]) == (12.0, 30.0)
    values, handles = [new_outer(float(n)) for n in range(3)], new_handles(3)
    for n, value in enumerate(values):
        handles[n] = value.handle
    assert [weigh_nth(handles, n) for n in (2, 0, 1)] == [by_hand(values[n]) for n in (2, 0, 1)]
    change(values[1], 3)
    assert weigh_nth(handles, 1) == by_hand(values[1])


def test_arrays_without_rows_and_of_other_lengths_are_the_same_kind_of_value():
    empty = Outer(inner=Inner(numbers=np.arange(0)), table=np.zeros((0, 3)), cube=np.zeros((0, 3, 4)))
    assert weigh(empty) == 0.0
    long = Outer(inner=Inner(numbers=np.arange(9)), table=np.ones((4, 5)), cube=np.ones((4, 5, 6)))
    assert weigh(long) == by_hand(long)


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_arrays_of_its_own_and_kernels_see_them(name):
    outer = new_outer()
    other = COPIES[name](outer)
    change(other, 7)
    assert weigh(outer) == by_hand(new_outer())
    assert weigh(other) == by_hand(other) != weigh(outer)
    assert outer.inner.numbers[0] == 0
    assert not any(np.shares_memory(getattr(outer, field), getattr(other, field)) for field in ("table", "cube"))
    assert other.handle != outer.handle


def test_a_copy_outlives_the_value_that_it_was_made_from():
    other = copy.deepcopy(new_outer(2.0))
    assert weigh(other) == by_hand(new_outer(2.0))


def test_what_is_no_value_is_refused():
    outer = new_outer()
    for name, value in (("table", np.zeros((2, 3))), ("inner", outer.inner), ("other", 1)):
        with pytest.raises(AttributeError, match=rf"Outer\.{name} stays the same array"):
            setattr(outer, name, value)
    numbers = np.arange(3)
    numbers.flags.writeable = False
    with pytest.raises(TypeError, match=r"^Inner\.numbers must be .* that can be written$"):
        Inner(numbers=numbers)
    fields = new_outer().__getstate__()
    with pytest.raises(TypeError, match="has the fields inner, table, cube, not inner, table, cube, more"):
        Outer(**fields | {"more": np.zeros(1)})
    del fields["cube"]
    with pytest.raises(TypeError, match=r"has the fields inner, table, cube, not inner, table$"):
        Outer(**fields)


WRONG = {
    "another type": np.zeros((2, 3), dtype=np.float32),
    "whole numbers": np.zeros((2, 3), dtype=np.int64),
    "one axis": np.zeros(6),
    "three axes": np.zeros((2, 3, 1)),
    "columns first": np.zeros((3, 2)).T,
    "every second column": np.zeros((2, 6))[:, ::2],
    "a list": [[1.0, 2.0], [3.0, 4.0]],
    "nothing": None,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_array_of_another_kind_is_refused(wrong):
    fields = new_outer().__getstate__()
    with pytest.raises(TypeError, match=r"^Outer\.table must be a C-contiguous array of float64 with 2 axes"):
        Outer(**fields | {"table": WRONG[wrong]})


@pytest.mark.parametrize("wrong", [new_outer(), Inner, np.arange(3), None])
def test_a_value_of_another_kind_is_refused(wrong):
    with pytest.raises(TypeError, match=r"^Outer\.inner must be of the kind Inner$"):
        Outer(**new_outer().__getstate__() | {"inner": wrong})


@compiled_only
def test_a_kernel_does_not_take_a_value_of_another_kind():
    with pytest.raises(numba.core.errors.TypingError, match="table"):
        weigh(new_outer().inner)


def test_a_call_keeps_nothing_of_what_it_was_given():
    outer = new_outer()
    weigh(outer)
    before = sys.getrefcount(outer._table_), sys.getrefcount(outer.inner._table_)
    for _ in range(10):
        weigh(outer)
    assert (sys.getrefcount(outer._table_), sys.getrefcount(outer.inner._table_)) == before


def test_arrays_may_be_annotated_by_an_alias_of_their_type():
    """As NumPy 2.5 and later declare `NDArray`."""
    scalar = TypeVar("scalar", bound=np.generic)
    alias = TypeAliasType("alias", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,))
    fields = {"numbers": Annotated[alias[np.float64], 2], "counts": Annotated[alias[np.int64], 1]}
    aliased: Any = type("Aliased", (NamedArrays,), {"__annotations__": fields})
    assert aliased(numbers=np.zeros((2, 3)), counts=np.zeros(1, dtype=np.int64)).numbers.shape == (2, 3)
    with pytest.raises(TypeError):
        aliased(numbers=np.zeros((2, 3)), counts=np.zeros(1))
