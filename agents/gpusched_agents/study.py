"""Trainings by their settings, and variants of them, each with one part changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.adaptation_training import AdaptationTraining
from gpusched_agents.training.algorithm_config import COMMON, CONSTANTS, AdaptationConfig, EsConfig
from gpusched_agents.training.config import LINEAR, TrainingConfig
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stable_baselines3.common.callbacks import BaseCallback

    from gpusched_agents.training.control_training import ControlTraining


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the training.

    Args:
        network: Kind of its network.
        agent: Its algorithm: `es`, or one of Stable-Baselines3.
        begin: How it begins: as STS-X, or with constants (`gpusched_agents.training.constants`).
        learns: Whether it learns after its beginning.
        settings: Settings of its algorithm that differ.
        reward: Its reward, where the algorithm is one of Stable-Baselines3.
        observes: Settings of its network that differ.
    """

    network: str = "controls"
    agent: str = "es"
    begin: str = ""
    learns: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reward: str = "saving"
    observes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def config(self, base: TrainingConfig, steps: int, seed: int) -> TrainingConfig:
        """Return the settings of one training of `steps` rounds in all, the same for every variant."""
        if self.agent == "es":
            agent = EsConfig(begin=self.begin, **{**FINE, **self.settings})
            network = replace(LINEAR, kind=self.network, **self.observes)
            return replace(base, agent=agent, network=network, steps=steps if self.learns else 1, seed=seed)
        config = AdaptationConfig(self.agent, self.settings, self.reward, begin=self.begin)
        network = NetworkConfig("controls", **{"hidden": 128 if self.begin else 32, **self.observes})
        often, most = (max(1, number // network.rounds) for number in (base.evaluate_every, steps))
        return replace(base, agent=config, network=network, steps=most, evaluate_every=often, seed=seed)


FINE = {"sigma": 0.05, "learning_rate": 0.01, "clip": 0.1}
"""Settings of `es`."""
WIDE, LAST = {"layers": 1, "hidden": 128}, {"sigma": 0.04, "only": "price.1,common.1"}
"""Network and settings of `es` for many clusters: a random hidden layer, and learning of the last one."""
CAREFUL = {"log_std_init": -2.0, "learning_rate": 3e-4}
"""Settings of PPO for one that begins with constants."""


def _ppo(**changed: Any) -> Variant:
    return Variant(agent="ppo", **changed)


VARIANTS = {
    "best-constants": Variant("control-set", begin=COMMON, learns=False),
    "constants": Variant(begin=CONSTANTS, learns=False),
    "constants-es": Variant(begin=CONSTANTS),
    "constants-ppo": _ppo(begin=CONSTANTS, settings=CAREFUL),
    "controls-es": Variant(),
    "controls-ppo": _ppo(),
    "controls-sac": Variant(agent="sac"),
    "control-set": Variant("control-set", begin=CONSTANTS, learns=False, observes=WIDE),
    "control-set-es": Variant("control-set", begin=CONSTANTS, observes=WIDE, settings=LAST),
    "ppo-gamma-0.5": _ppo(settings={"gamma": 0.5}),
    "ppo-gamma-0.98": _ppo(settings={"gamma": 0.98}),
    "ppo-rounds-4": _ppo(observes={"rounds": 4}),
    "ppo-rounds-64": _ppo(observes={"rounds": 64}),
    "ppo-waste": _ppo(reward="waste"),
    "ppo-cost": _ppo(reward="cost"),
    "ppo-less-noise": _ppo(settings={"log_std_init": -2.0}),
    "ppo-more-noise": _ppo(settings={"log_std_init": 0.0}),
    "ppo-job-rows": _ppo(observes={"job_features": 8, "job_codes": 16}),
    "ppo-job-controls": _ppo(observes={"controls": "jobs"}),
}
"""The variants by name: constants, `es`, PPO, SAC, and PPO with one change."""


def make_training(
    config: TrainingConfig,
    folder: str | Path,
    *,
    name: str = "agent",
    command: str | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
    callbacks: Sequence[BaseCallback] = (),
) -> ControlTraining | AdaptationTraining:
    """Make the training run of these settings: an `AdaptationTraining` for `es`, else a `ControlTraining`.

    Args:
        config: The settings.
        folder: A new folder, or that of the same run, which is then resumed.
        name: Name of the agent.
        command: The command that made it; by default the present process's.
        on_progress: Called with steps done, steps in all, and a description of the present work.
        callbacks: Callbacks of Stable-Baselines3, none for `es`.

    Raises:
        InputError: The folder belongs to a run with other settings, its checkpoint is not whole, or there are callbacks
            for an algorithm that is not one of Stable-Baselines3.
        MissingExtraError: torch or Stable-Baselines3 is not installed, and it is not `es`, which needs neither.
    """
    if not isinstance(config.agent, EsConfig):
        sb3: type[ControlTraining] = import_module("gpusched_agents").ControlTraining  # its error names the extra
        return sb3(config, folder, name=name, command=command, on_progress=on_progress, callbacks=callbacks)
    if callbacks:
        raise InputError("callbacks", list(callbacks), "none, for es: it is not of Stable-Baselines3")
    return AdaptationTraining(config, folder, name=name, command=command, on_progress=on_progress)
