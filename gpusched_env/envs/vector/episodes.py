"""What each environment of a vector runs: its instances, made from scenarios and seeds as single environments do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.utils import seeding

from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.envs.env_input import draw_seed, shape_of
from gpusched_env.errors import InputError
from gpusched_env.simulator import State
from gpusched_env.simulator.state import Common
from gpusched_env.workload import InstanceMaker, Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.random import Generator

    from gpusched_env.model import Instance

REPLAYED = -1  # stands for the seed of an instance that was given


class Episodes:
    """The scenarios, generators and present instances of N environments.

    Args:
        size: Number of environments N.
        scenario: One scenario for all, or a sequence: environment i runs scenario i mod its length.
        settings: Keyword arguments of `GpuClusterEnv`.

    Attributes:
        singles: A single environment for each scenario: it has checked the settings, and has the spaces.
        seeds: What each environment's present instance was made from; `REPLAYED` if it was given.
        common: What runs have in common.
        fingerprint: Tells scenarios and settings from others, but not a reward of your own.

    Raises:
        InputError: A scenario or setting is not allowed, or scenarios have other GPU types or configurations.
    """

    def __init__(
        self, size: int, scenario: str | Path | Scenario | Sequence[str | Path | Scenario], settings: dict[str, Any]
    ) -> None:
        each: list[Any] = [scenario]
        if isinstance(scenario, Sequence) and not isinstance(scenario, str):
            each = list(scenario)
        if not each:
            raise InputError("scenario", scenario, "at least one scenario")
        self.singles = [GpuClusterEnv(one, **settings) for one in each[:size]]
        self.shape = shape_of(self.singles[0].instance)
        for k, single in enumerate(self.singles):
            if shape_of(single.instance) != self.shape:
                raise InputError(
                    f"scenario[{k}]", single.scenario.name, "the GPU types and configurations of scenario[0]"
                )
        self._makers = [InstanceMaker(single.scenario) for single in self.singles]
        told = {name: value for name, value in settings.items() if name != "reward"}
        scenarios = [single.scenario.model_dump_json() for single in self.singles]
        self.fingerprint = hashlib.sha256(json.dumps([size, told, scenarios], default=repr).encode()).digest()
        self.common = Common()
        self.seeds = [REPLAYED] * size
        self._generators: list[Generator | None] = [None] * size
        self._generator_seeds = [-1] * size

    def begin(self, i: int, seed: int | None = None, instance: Instance | None = None) -> State:
        """Make a new run of environment i, and seed its generator if there is a seed.

        It runs `instance`, else the scenario's instance of the seed, else that of a seed that the generator draws.
        """
        if seed is not None:
            self._generators[i], self._generator_seeds[i] = seeding.np_random(seed)
        if instance is not None:
            self.seeds[i] = REPLAYED
            return self.state(instance)
        chosen = draw_seed(self.generator(i)) if seed is None else seed
        state = self.state(self.instance(i, chosen))
        self.seeds[i] = chosen
        return state

    def instance(self, i: int, seed: int) -> Instance:
        """Make the instance of `seed` of environment i's scenario."""
        return self._makers[i % len(self._makers)].make(seed)

    def state(self, instance: Instance) -> State:
        """Make a run of an instance; its intervals are not kept."""
        return State(instance, self.singles[0].asking, record=False, common=self.common)

    def generator(self, i: int) -> Generator:
        """Give the generator of environment i; one that was never seeded begins anywhere."""
        generator = self._generators[i]
        if generator is None:
            generator, self._generator_seeds[i] = seeding.np_random()
            self._generators[i] = generator
        return generator

    def generator_seed(self, i: int) -> int:
        """Give the seed of that generator; -1 if nobody knows it."""
        self.generator(i)
        return self._generator_seeds[i]

    def resume(self, seeds: list[int], generators: list[Generator]) -> None:
        """Go on with the instances of these seeds and with these generators."""
        self.seeds = seeds
        self._generators, self._generator_seeds = list(generators), [-1] * len(generators)
