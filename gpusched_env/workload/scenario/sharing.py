"""The `sharing` section of a scenario: fractions of a GPU, and what sharing one costs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import Settings, as_tuple, number
from gpusched_env.workload.tables.colocation import builtin_max_inflation

LEAST_INFLATION = 1.01
"""Least inflation that the published model draws."""

Fraction = Annotated[float, number("a number >= 0.001 and < 1", lambda x: 0.001 <= x < 1.0)]
Inflation = Annotated[float, number(f"a finite number >= {LEAST_INFLATION}", lambda x: x >= LEAST_INFLATION)]


def _one_or_more(value: object) -> object:
    return as_tuple(value) if isinstance(value, list | tuple) else (value,)


class Sharing(Settings):
    """GPU sharing: fractions of one GPU, where a job runs beside other small jobs."""

    fractions: Annotated[tuple[Fraction, ...], BeforeValidator(as_tuple)] = Field(
        default=(), description="Fractions of a GPU that a job is offered, such as [0.5, 0.25]. By default none."
    )
    interference: Literal["random", "measured"] = Field(
        default="random",
        description="Inflation of a job's time: random (its own, from a range) or measured (by the jobs beside it).",
    )
    max_inflation: Annotated[tuple[Inflation, ...], BeforeValidator(_one_or_more)] | None = Field(
        default=None,
        description="Greatest random inflation: one for all fractions, or one for each. By default the package's.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.fractions)) != len(self.fractions):
            raise InputError("fractions", list(self.fractions), "each once")
        if self.max_inflation is None:
            self._check_table()
            return self
        if self.interference != "random":
            allowed = f"nothing with interference = {self.interference!r}: the pairs set the inflation"
            raise InputError("max_inflation", list(self.max_inflation), allowed)
        if len(self.max_inflation) not in {1, len(self.fractions)}:
            allowed = f"one number, or one for each of fractions ({len(self.fractions)})"
            raise InputError("max_inflation", list(self.max_inflation), allowed)
        return self

    def _check_table(self) -> None:
        least = min(fraction for _, fraction in builtin_max_inflation())
        for index, fraction in enumerate(self.fractions):
            if self.interference == "random" and fraction < least:
                allowed = f"at least {least}, the least of the built-in table, unless max_inflation is set"
                raise InputError(f"fractions[{index}]", fraction, allowed)

    def own_max_inflation(self) -> dict[float, float]:
        """Give the greatest inflation of every fraction that the section sets itself."""
        greatest = self.max_inflation or ()
        if len(greatest) == 1:
            greatest *= len(self.fractions)
        return dict(zip(self.fractions, greatest, strict=True)) if greatest else {}
