"""A kernel is compiled for the flags of its arguments, and what a flag excludes is not compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numba
import numpy as np
import pytest

from gpusched_env.kernel import kernel
from gpusched_env.named_arrays import NamedArrays, element_like, new_handles

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")


class Priced(NamedArrays):
    has_prices = has_caps = True

    numbers: Annotated[np.typing.NDArray[np.float64], 1]


class Plain(Priced):
    has_prices = False


@kernel
def doubled(numbers: Floats) -> float:
    return 2.0 * numbers.sum()


@kernel
def price(values: Priced) -> float:
    total = 1.0
    if values.has_prices and values.numbers.shape[0] > 0:
        total += doubled(values.numbers)
    return total + (10.0 if values.has_caps else 0.0)


def both() -> tuple[Priced, Plain]:
    numbers = np.array([1.0, 2.0])
    return Priced(numbers=numbers), Plain(numbers=numbers)


def test_a_flag_decides_what_a_kernel_does():
    priced, plain = both()
    assert (price(priced), price(plain)) == (17.0, 11.0)


@compiled_only
def test_what_a_flag_excludes_is_removed_before_types_are_found():
    @kernel
    def first_price(values: Any) -> float:
        if not values.has_prices or values.numbers.shape[0] == 0:
            return 0.0
        return values.prices[0]

    priced, plain = both()
    assert first_price(plain) == 0.0
    with pytest.raises(numba.core.errors.TypingError, match="prices"):
        first_price(priced)


@compiled_only
def test_builds_are_types_of_their_own_with_the_same_fields():
    priced, plain = map(numba.typeof, both())
    assert priced != plain
    assert (priced.fields, priced.words) == (plain.fields, plain.words)
    assert str(plain) == "Plain(numbers: array(float64, 1d, C), has_caps)"


def test_an_element_has_the_build_of_its_example():
    @kernel
    def price_nth(handles: Ints, n: int, like: Priced) -> float:
        return price(element_like(like, handles, n))

    for values in both():
        handles = new_handles(1)
        handles[0] = values.handle
        assert price_nth(handles, 0, values) == price(values)


@compiled_only
def test_a_flag_of_what_is_no_argument_is_refused():
    @kernel
    def wrong(one: Priced, other: Priced, first: bool) -> bool:
        either = one if first else other
        return either.has_prices

    priced, _ = both()
    with pytest.raises(numba.core.errors.UnsupportedError, match="has_prices can be read of an argument of the kernel"):
        wrong(priced, priced, True)


@compiled_only
def test_a_flag_that_there_is_not_is_refused():
    @kernel
    def wrong(values: Priced) -> bool:
        return values.has_shares

    with pytest.raises(numba.core.errors.TypingError, match="has_shares"):
        wrong(both()[0])
