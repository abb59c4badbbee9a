"""The seeds that the episodes of an environment go round, in place of drawn ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gpusched_env.envs.source import AnyScenario, Source
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload import Scenario, list_tracks, parse_seeds
from gpusched_env.workload.scenario.comparison import TrackHeader
from gpusched_env.workload.scenario.places import TRACK, track_header

Seeds: TypeAlias = "str | Sequence[int] | None"
TRAINING, VALIDATION, TEST, TEST_OF_A_TRACE = "100000-109999", "500-504", "0-39", "0-4"
VALIDATED = 5
"""The validation seeds of a track that are used: the first ones, as by `gpusched train`."""
_ALLOWED = "training, validation, test, or whole numbers >= 0, at least one, each once"


@dataclass(slots=True)
class SeedRound:
    """Goes round a list of seeds.

    Args:
        seeds: The seeds, at least one, each once.
        place: The place of the next one in `seeds`.
        step: By how many places it moves for each episode.
    """

    seeds: tuple[int, ...]
    place: int = 0
    step: int = 1

    @property
    def next(self) -> int:
        return self.seeds[self.place]

    def go_to(self, seed: int) -> None:
        """Go to `seed` if it is in the list, else to place `seed` modulo the length."""
        self.place = self.seeds.index(seed) if seed in self.seeds else seed % len(self.seeds)

    def take(self) -> int:
        """Return the next seed, and move on."""
        chosen = self.next
        self.place = (self.place + self.step) % len(self.seeds)
        return chosen


def part_rounds(wholes: Sequence[SeedRound | None], environments: int) -> list[SeedRound | None]:
    """Return the rounds of several environments, of which environment i has the seeds of `wholes[i % len(wholes)]`.

    The k-th of the n environments with the same seeds begins at place k, and moves by n.
    """
    rounds: list[SeedRound | None] = []
    for i in range(environments):
        whole, k = wholes[i % len(wholes)], i // len(wholes)
        alike = len(range(i % len(wholes), environments, len(wholes)))
        rounds.append(None if whole is None else SeedRound(whole.seeds, k % len(whole.seeds), alike))
    return rounds


def seed_round(seeds: Any, scenario: AnyScenario, source: Source) -> SeedRound | None:
    """Return what goes round `seeds`; None for None.

    Args:
        seeds: `training`, `validation`, `test`, or the seeds themselves.
        scenario: Where the scenario is from: its track has seeds of its own.
        source: Makes the instances.

    Raises:
        InputError: `seeds` is neither, or the environment replays an instance.
    """
    if seeds is None:
        return None
    if source.scenario is None:
        raise InputError("seeds", seeds, "none together with an instance: every episode replays it")
    if isinstance(seeds, str):
        return SeedRound(_named(seeds, scenario, source.scenario))
    if not isinstance(seeds, Sequence | np.ndarray) or len(seeds) == 0:
        raise InputError("seeds", seeds, _ALLOWED)
    chosen = tuple(checks.seed(seed, f"seeds[{k}]") for k, seed in enumerate(seeds))
    if len(set(chosen)) < len(chosen):
        raise InputError("seeds", seeds, _ALLOWED)
    return SeedRound(chosen)


def _named(name: str, place: AnyScenario, scenario: Scenario) -> tuple[int, ...]:
    if isinstance(place, Scenario):
        place = f"{TRACK}{place.name}" if place.name in list_tracks() else "default"
    header = track_header(place)
    if header is not None:
        track = TrackHeader(**header)
        texts = {"training": track.training, "validation": track.validation, "test": track.test}
    else:
        test = scenario.compare.seeds or (TEST if scenario.trace is None else TEST_OF_A_TRACE)
        texts = {"training": TRAINING, "validation": VALIDATION, "test": test}
    if name not in texts:
        raise InputError("seeds", name, _ALLOWED)
    return parse_seeds(texts[name])[: VALIDATED if name == "validation" else None]
