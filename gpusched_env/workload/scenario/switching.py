"""The `switching` section of a scenario: what it costs to change from one job to another."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import Positive, Seconds, Settings


class Switching(Settings):
    """Switching of jobs: what a start, going on in the same place and a restart elsewhere cost."""

    model: Literal["free", "stop-start", "one-process", "pipelined"] | None = Field(
        default=None,
        description="How jobs are switched: free, stop-start, one-process or pipelined. By default every change after "
        "the first start costs restart_s.",
    )
    start_s: Seconds | None = Field(
        default=None, description="Seconds without progress at a first start. By default what the model says, else 0."
    )
    resume_s: Seconds | None = Field(
        default=None,
        description="The same where a job goes on on the nodes where it ran last. By default what the model says.",
    )
    bandwidth_gb_per_s: Positive = Field(
        default=12.0, description="Bandwidth at which states of jobs leave and reach a GPU [GB/s]."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that nothing says what a switch costs where all are free."""
        for name in ("start_s", "resume_s"):
            if self.model == "free" and getattr(self, name):
                raise InputError(name, getattr(self, name), "nothing with model = 'free'")
        return self
