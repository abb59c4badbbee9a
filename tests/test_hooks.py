"""Mechanisms: their arrays, functions at hooks, and flags are part of the type for which a kernel is compiled."""

from copy import deepcopy
from typing import Annotated, Any

import numba
import numpy as np
import pytest

from gpusched_env import hooks as registry
from gpusched_env.arrays import Ints
from gpusched_env.hooks import functions, hook, register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.named_arrays import NamedArrays, added_fields, build, element_like, new_handles

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")


class Core(NamedArrays):
    numbers: Annotated[np.typing.NDArray[np.float64], 1]


class WithPrices(Core):
    prices: Annotated[np.typing.NDArray[np.float64], 1]


@hook
def cost(board: Core, hours: float, total: float) -> float:
    """Change the cost of some hours."""


@hook
def end(board: Core) -> None:
    """End it."""


@lean_kernel
def priced(board: Core, hours: float, total: float) -> float:
    return total + hours * board.prices[0]


@lean_kernel
def doubled(board: Core, hours: float, total: float) -> float:  # noqa: ARG001 - of the hook
    return 2.0 * total


@kernel
def emptied(board: Core) -> None:
    board.numbers[:] = 0.0


@kernel
def cost_of(board: Core, hours: float) -> float:
    total = 1.0
    if board.has_tests_prices and board.prices.shape[0] > 0:
        total += board.prices[0]
    total = cost(board, hours, total)
    end(board)
    return total + board.numbers.sum()


@pytest.fixture(autouse=True)
def mechanisms():
    register("tests_prices", {cost: priced}, (WithPrices,))
    register("tests_double", {cost: doubled, end: emptied})
    yield
    for name in ("tests_prices", "tests_double"):
        for known in (registry._FUNCTIONS, registry._FIELDS, registry._PYTHON):
            del known[name]
    functions.cache_clear()


def value(*names: str) -> Core:
    more = {"prices": np.array([10.0])} if "tests_prices" in names else {}
    return build(Core, names)(numbers=np.array([0.25, 0.25]), **more)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), 1.0 + 0.5),
        (("tests_double",), 2.0),
        (("tests_prices",), 1.0 + 10.0 + 30.0 + 0.5),
        (("tests_prices", "tests_double"), 2.0 * (1.0 + 10.0 + 30.0)),
        (("tests_double", "tests_prices"), 2.0 * (1.0 + 10.0) + 30.0),
    ],
)
def test_functions_of_the_mechanisms_are_called_in_their_order_and_nothing_is_left_of_others(names, expected):
    assert cost_of(value(*names), 3.0) == expected


def test_a_hook_may_be_called_from_python():
    assert cost(value("tests_prices", "tests_double"), 3.0, 1.0) == 62.0
    assert cost(value(), 3.0, 1.0) == 1.0


@compiled_only
def test_what_a_flag_excludes_is_removed_before_types_are_found():
    @kernel
    def first_price(board: Any) -> float:
        return board.prices[0] if board.has_tests_prices else 0.0

    @kernel
    def wrong(board: Any) -> float:
        return board.prices[0] if board.has_tests_double else 0.0

    assert (first_price(value()), first_price(value("tests_prices"))) == (0.0, 10.0)
    with pytest.raises(numba.core.errors.TypingError, match="prices"):
        wrong(value("tests_double"))


@compiled_only
def test_builds_are_types_of_their_own_and_change_with_the_functions_of_their_mechanisms():
    plain, both = numba.typeof(value()), numba.typeof(value("tests_prices", "tests_double"))
    assert plain.name == "Core(numbers: array(float64, 1d, C))"
    assert set(both.fields) - set(plain.fields) == {"prices"}
    before = numba.typeof(value("tests_prices")).name
    register("tests_prices", {cost: doubled}, (WithPrices,))
    build.cache_clear()
    assert numba.typeof(value("tests_prices")).name != before


def test_an_element_has_the_build_of_its_example():
    @kernel
    def cost_of_nth(handles: Ints, n: int, like: Core) -> float:
        return cost_of(element_like(like, handles, n), 3.0)

    for names in ((), ("tests_prices",)):
        handles = new_handles(1)
        board = value(*names)
        handles[0] = board.handle
        assert cost_of_nth(handles, 0, value(*names)) == cost_of(value(*names), 3.0)


def test_copies_have_the_build_and_the_fields():
    board = value("tests_prices")
    for copy in (deepcopy(board), board.replaced(numbers=np.zeros(2))):
        assert type(copy) is type(board)
        assert added_fields(copy) == ("prices",)
        assert copy.has_tests_prices
        assert not copy.has_tests_double


@compiled_only
def test_what_is_no_argument_of_the_kernel_is_refused():
    @kernel
    def flag(one: Core, other: Core, first: bool) -> bool:
        either = one if first else other
        return either.has_tests_prices

    @kernel
    def called(one: Core, other: Core, first: bool) -> float:
        either = one if first else other
        return cost(either, 1.0, 1.0)

    for wrong, message in ((flag, "has_tests_prices can be read of an argument"), (called, "cost takes an argument")):
        with pytest.raises(numba.core.errors.UnsupportedError, match=message):
            wrong(value(), value(), True)


def test_a_mechanism_with_a_function_at_no_hook_is_refused():
    with pytest.raises(TypeError, match="mechanism tests_wrong"):
        register("tests_wrong", {priced: doubled})


class Outer(NamedArrays):
    core: Core


def test_a_value_in_a_value_is_of_the_same_build():
    kind = build(Outer, ("tests_prices",))
    made = kind(core=value("tests_prices"))
    assert made.core.prices[0] == 10.0
    assert deepcopy(made).core.has_tests_prices
    assert cost_of(made.core, 0.5) == cost_of(value("tests_prices"), 0.5)
    with pytest.raises(TypeError, match=r"Outer\.core must be of the kind Core"):
        kind(core=value())
