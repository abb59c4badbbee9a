"""The base of all settings: frozen, checked when they are made, with one kind of error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from gpusched_env.errors import InputError
from gpusched_env.model.checks import LONGEST, LONGEST_S

if TYPE_CHECKING:
    from numpy.random import Generator
    from pydantic_core import ErrorDetails

    from gpusched_env.model import Instance, Mechanism


class Settings(BaseModel):
    """A section of a scenario; unknown keys, wrong types, NaN and values out of range are refused.

    Raises:
        InputError: A value is not allowed; the field is named with dots from the section that is being made.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _input_error(error, type(self)) from None


class MechanismTable(Settings):
    """Base of the table of a mechanism of another package; its module `scenario` has the class as `TABLE`."""

    def model(self, instance: Instance, rng: Generator) -> Mechanism | None:
        """Return the mechanism's model for an instance of the scenario, which is made but for this; None: without it.

        Args:
            instance: The instance.
            rng: Generator for what is drawn.
        """
        raise NotImplementedError


def number(allowed: str, test: Callable[[float], bool]) -> BeforeValidator:
    def check(value: object) -> float:
        if not _is_number(value) or not test(float(value)):  # type: ignore[arg-type]
            raise InputError("", value, allowed)
        return float(value)  # type: ignore[arg-type]

    return BeforeValidator(check)


def whole(lowest: int, highest: int | None = None) -> BeforeValidator:
    allowed = f"a whole number >= {lowest}" + ("" if highest is None else f" and <= {highest:,}")

    def check(value: object) -> int:
        low = isinstance(value, bool) or not isinstance(value, int) or value < lowest
        if low or (highest is not None and value > highest):  # type: ignore[operator]
            raise InputError("", value, allowed)
        return value  # type: ignore[return-value]

    return BeforeValidator(check)


def number_range(each: str, test: Callable[[float], bool]) -> BeforeValidator:
    return BeforeValidator(range_check(each, test))


def range_check(each: str, test: Callable[[float], bool]) -> Callable[[object], tuple[float, float]]:
    def check(value: object) -> tuple[float, float]:
        pair = tuple(value) if isinstance(value, list | tuple) else ()
        if len(pair) != 2 or not all(_is_number(v) and test(float(v)) for v in pair) or pair[0] > pair[1]:
            raise InputError("", value, f"two numbers [lowest, highest], each {each}")
        return float(pair[0]), float(pair[1])

    return check


def as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


T = TypeVar("T")
Many = Annotated[tuple[T, ...], BeforeValidator(as_tuple)]


def setting(default: Any, description: str) -> Any:
    return Field(default=default, description=description)


def check_each_once(settings: Settings, *names: str) -> None:
    """Check that each of these lists has one value or more and no value twice, where it is set."""
    for name in names:
        values = getattr(settings, name)
        if values is not None and (not values or len(set(values)) != len(values)):
            raise InputError(name, list(values), "one or more, each once")


def as_tables(model: type[Settings]) -> Callable[[object], object]:
    """Make the function that turns a list of tables, `[[...]]` in TOML, into a tuple of settings; others stay."""

    def convert(value: object) -> object:
        return tuple(_table_of(model, i, each) for i, each in enumerate(value)) if _is_list(value) else value

    return convert


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _table_of(model: type[Settings], index: int, values: object) -> Settings:
    if isinstance(values, model):
        return values
    if not isinstance(values, Mapping):
        raise InputError(f"[{index}]", values, f"a table with {', '.join(model.model_fields)}")
    try:
        return model(**values)
    except InputError as error:
        raise InputError(dotted((index, error.field)), error.value, error.allowed) from None


Positive = Annotated[float, number("a finite number > 0", lambda x: x > 0.0)]
NotNegative = Annotated[float, number("a finite number >= 0", lambda x: x >= 0.0)]
Duration = Annotated[float, number(f"a number > 0 and <= {LONGEST}", lambda x: 0.0 < x <= LONGEST_S)]
Seconds = Annotated[float, number(f"a number >= 0 and <= {LONGEST}", lambda x: 0.0 <= x <= LONGEST_S)]
AtLeastOne = Annotated[float, number("a finite number >= 1", lambda x: x >= 1.0)]
Count = Annotated[int, whole(1)]
CountFromZero = Annotated[int, whole(0)]
Part = Annotated[float, number("a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)]
Limit = Annotated[float, number("a number > 0 and <= 1", lambda x: 0.0 < x <= 1.0)]
PositiveRange = Annotated[tuple[float, float], number_range("a finite number > 0", lambda x: x > 0.0)]
FractionRange = Annotated[tuple[float, float], number_range("> 0 and < 1", lambda x: 0.0 < x < 1.0)]
ProbabilityRange = Annotated[tuple[float, float], number_range(">= 0 and <= 1", lambda x: 0.0 <= x <= 1.0)]


def dotted(parts: tuple[int | str, ...]) -> str:
    """Write a place in nested settings: `cluster.gpu_types[1]`; empty parts are left out."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part:
            text += f".{part}" if text and not part.startswith("[") else part
    return text


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _input_error(error: ValidationError, model: type[BaseModel]) -> InputError:
    """Translate the first thing that pydantic found into the project's own error."""
    first = error.errors(include_url=False)[0]
    place = tuple(p for p in first["loc"] if p != "[key]")
    if len(place) > 1 and place[0] == "epochs":
        # Pydantic adds the family to the place of an error within a union of sections; the user did not write it.
        place = (place[0], *place[2:])
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(dotted((*place, cause.field)), cause.value, cause.allowed)
    if first["type"] == "union_tag_invalid":
        tag = str(first["ctx"]["discriminator"]).strip("'")
        return InputError(dotted((*place, tag)), first["ctx"]["tag"], f"one of {first['ctx']['expected_tags']}")
    # What pydantic calls the input of a missing value is the section that lacks it.
    value = None if first["type"] == "missing" else first["input"]
    if first["type"] in _ONE_VALUE and isinstance(value, dict):
        value = f"a table with {', '.join(map(str, value))}"
    return InputError(dotted(place), value, _allowed(first, model))


def _allowed(details: ErrorDetails, model: type[BaseModel]) -> str:
    if details["type"] == "extra_forbidden":
        return f"no such setting; there are {', '.join(model.model_fields)}"
    if details["type"] == "literal_error":
        return f"one of {details['ctx']['expected'].replace(' or ', ', ')}"
    return _PHRASES.get(details["type"], details["msg"])


_ONE_VALUE = ("literal_error", "string_type", "float_type", "bool_type", "int_type")
_PHRASES = {
    "bool_type": "true or false",
    "dict_type": "a table of settings",
    "float_type": "a number",
    "missing": "a value; it has no default",
    "model_attributes_type": "a table of settings",
    "model_type": "a table of settings",
    "string_type": "a text",
    "tuple_type": 'a list, such as ["V100", "A100"] or [1, 2, 4]',
}
