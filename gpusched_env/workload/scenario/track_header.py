"""The `track` section of a scenario file, which makes it a track."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.comparison import seeds_text
from gpusched_env.workload.scenario.seeds import parse_seeds
from gpusched_env.workload.scenario.settings import Count, Positive, Settings

Seeds = Annotated[str, BeforeValidator(seeds_text)]


class TrackHeader(Settings):
    """What a track says of itself beside its scenario.

    Raises:
        InputError: A value is not allowed, or a seed is among those of two purposes.
    """

    version: Count = Field(default=1, description="Rises when anything changes that its results depend on.")
    training: Seeds = Field(default="100000-109999", description="Seeds that policies and agents may learn from.")
    validation: Seeds = Field(default="20000-20019", description="Seeds to choose by: settings, checkpoints.")
    test: Seeds = Field(default="30000-30019", description="Seeds of the figures that are told to others.")
    reward_scale_eur: Positive = Field(
        default=1.0, description="Cost that counts as a reward of -1 [€]: a tenth of EDF's on the validation seeds."
    )
    max_episode_steps: Count | None = Field(
        default=None, description="Steps that end an episode: three times the most that random decisions took."
    )
    hard: str = Field(description="What is hard about it, a line.")
    weights: str = Field(description="Why its tardiness weights are what they are, a line.")

    @model_validator(mode="after")
    def _check_seeds(self) -> Self:
        seen: dict[int, str] = {}
        for name in ("training", "validation", "test"):
            text = getattr(self, name)
            for seed in parse_seeds(text, name):
                if seen.setdefault(seed, name) != name:
                    raise InputError(name, text, f"seeds that are not among those for {seen[seed]}")
        return self
