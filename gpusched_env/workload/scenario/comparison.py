"""What `gpusched compare` runs on a scenario, as a scenario file says it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.seeds import parse_seeds
from gpusched_env.workload.scenario.settings import Count, Settings, as_tuple

GpuDemand = Literal["elastic", "at-most", "exact"]
"""Which numbers of GPUs a job of a trace is offered, by that which it asked for."""


def seeds_text(value: object) -> str:
    """Give seeds as the text `0-19` or `0,3,5`; a list of numbers, or a number, is one too."""
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    try:
        parse_seeds(text)
    except InputError as error:
        raise InputError("", value, error.allowed) from None
    return text.strip()


class Comparison(Settings):
    """What `gpusched compare` runs; its options win, and nothing else reads this.

    The names of policies are checked where they are used, since policies are not part of a workload.
    """

    policies: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] | None = Field(
        default=None, description="Names of the policies, a list. By default those that `gpusched policies` marks."
    )
    seeds: Annotated[str, BeforeValidator(seeds_text)] | None = Field(
        default=None, description='Seeds of the workloads. By default "0-39", with a trace "0-4".'
    )
    reference: str | None = Field(
        default=None, description='Policy that savings are measured against. By default "edf", else the first.'
    )
    gpu_demands: Annotated[tuple[GpuDemand, ...], BeforeValidator(as_tuple)] | None = Field(
        default=None,
        description="Rules for the GPU demand of a trace, a list, each a comparison. By default trace.gpu_demand and "
        '"exact".',
    )
    workers: Count | None = Field(default=None, description="Processes. By default one for each core, at most 4.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.gpu_demands is not None and (
            not self.gpu_demands or len(set(self.gpu_demands)) != len(self.gpu_demands)
        ):
            raise InputError("gpu_demands", list(self.gpu_demands), "one or more, each once")
        if self.policies is None:
            return self
        if not self.policies or len(set(self.policies)) != len(self.policies):
            raise InputError("policies", list(self.policies), "one or more, each once")
        if self.reference is not None and self.reference not in self.policies:
            raise InputError("reference", self.reference, f"one of the policies compared: {', '.join(self.policies)}")
        return self
