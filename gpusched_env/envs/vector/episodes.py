"""The instances that each environment of a vector runs, made as in single environments."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

from gymnasium.utils import seeding

from gpusched_env.envs.env import GpuClusterEnv
from gpusched_env.envs.seeds import part_rounds
from gpusched_env.envs.source import USUAL, AnyScenario, arguments_of, draw_seed, shape_of
from gpusched_env.errors import InputError
from gpusched_env.simulator import State
from gpusched_env.simulator.builds import common_build
from gpusched_env.simulator.policy import environment_columns
from gpusched_env.simulator.state import Common

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.random import Generator

    from gpusched_env.model import Instance

REPLAYED = -1  # stands for the seed of an instance that was given


class Episodes:
    """The sources, generators and present instances of N environments.

    Args:
        size: Number of environments N.
        keywords: Other keyword arguments of `GpuClusterEnv`.
        scenario: One scenario for all, or a sequence: environment i runs scenario i mod its length.
        settings: As for `GpuClusterEnv`, of every scenario.
        instance: In place of scenarios, one instance that is replayed, or a sequence of them.

    Attributes:
        singles: A single environment for each scenario or instance: it has checked the keywords, and has the spaces.
        seeds: What each environment's present instance was made from; `REPLAYED` if it was given.
        seed_rounds: What gives each environment its next seed; None where it is drawn.
        common: What runs have in common.

    Raises:
        InputError: An argument is not allowed, or scenarios or instances have other GPU types or configurations.
    """

    def __init__(
        self,
        size: int,
        keywords: dict[str, Any],
        scenario: AnyScenario | Sequence[AnyScenario] = USUAL,
        settings: Mapping[str, object] | None = None,
        instance: Instance | Sequence[Instance] | None = None,
    ) -> None:
        each = arguments_of(scenario, settings, instance)
        self.singles = [GpuClusterEnv(**one, **keywords) for one in each[:size]]
        self.shape = shape_of(self.singles[0].instance)
        for k, single in enumerate(self.singles):
            if shape_of(single.instance) != self.shape:
                of = "scenario" if instance is None else "instance"
                allowed = f"the GPU types and configurations of {of}[0]"
                raise InputError(f"{of}[{k}]", single.source.name, allowed)
        self._build = common_build({type(single.view.board) for single in self.singles})
        self._keywords = {name: value for name, value in keywords.items() if name != "reward"}
        self.common, self.seeds = Common(), [REPLAYED] * size
        self.seed_rounds: list[Any] = part_rounds([single.seeds for single in self.singles], size)
        self._generators: list[Generator | None] = [None] * size
        self._generator_seeds = [-1] * size

    @cached_property
    def fingerprint(self) -> bytes:
        usual = {name: parameter.default for name, parameter in signature(GpuClusterEnv).parameters.items()}
        each = [(single.source.identity(), single.reward_scale) for single in self.singles]
        facts = [len(self.seeds), usual | self._keywords, each]
        return hashlib.sha256(json.dumps(facts, default=repr).encode()).digest()

    def begin(self, i: int, seed: int | None = None, instance: Instance | None = None) -> State:
        """Make a new run of environment i, and seed its generator if there is a seed.

        It runs `instance`, else its source's instance of the seed, else that of a seed that the generator draws; with
        seeds that it goes round, the next of these.
        """
        if seed is not None:
            self._generators[i], self._generator_seeds[i] = seeding.np_random(seed)
            if self.seed_rounds[i] is not None:
                self.seed_rounds[i].go_to(seed)
        if instance is not None:
            self.seeds[i] = REPLAYED
            return self.state(instance)
        if self.seed_rounds[i] is not None:
            chosen = self.seed_rounds[i].take()
        else:
            chosen = draw_seed(self.generator(i)) if seed is None else seed
        state = self.state(self.instance(i, chosen))
        self.seeds[i] = chosen
        return state

    def instance(self, i: int, seed: int) -> Instance:
        return self.singles[i % len(self.singles)].source.make(seed)

    def state(self, instance: Instance) -> State:
        columns, asking = environment_columns(instance), self.singles[0].asking
        made = State(instance, asking, record=False, common=self.common, memory_columns=columns, build=self._build)
        self._build = type(made.board)
        return made

    def generator(self, i: int) -> Generator:
        generator = self._generators[i]
        if generator is None:
            generator, self._generator_seeds[i] = seeding.np_random()
            self._generators[i] = generator
        return generator

    def generator_seed(self, i: int) -> int:
        self.generator(i)
        return self._generator_seeds[i]

    def resume(self, seeds: list[int], generators: list[Generator]) -> None:
        self.seeds = seeds
        self._generators, self._generator_seeds = list(generators), [-1] * len(generators)
        for round_, seed in zip(self.seed_rounds, seeds, strict=True):
            if round_ is not None:
                round_.go_to(seed)
                round_.take()
