"""An ablation study of training: the same training without one of its parts, several times each.

Only `train` needs torch (extra `agents`), except for `es`, and imports it when it is called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_agents.spec import SETS_CONTROLS, NetworkConfig
from gpusched_agents.training.adaptation_training import AdaptationTraining
from gpusched_agents.training.algorithm_config import COMMON, CONSTANTS, AdaptationConfig, EsConfig
from gpusched_agents.training.config import (
    ADAPTATION_COUNTS,
    LINEAR,
    NO_WARM_START,
    TrainingConfig,
)
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stable_baselines3.common.callbacks import BaseCallback

    from gpusched_agents.training.control_training import ControlTraining
    from gpusched_agents.training.training import Training

FINISHED = "finished.json"


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the training.

    Args:
        title: Its title in tables and figures.
        imitation: Part of its decisions that are warm start: None for that of the base settings, 0 (none) or 1 (all).
        network: Kind of its network; one that sets controls has no warm start by imitation of an expert.
        expert: The policy that it imitates; None: as in the base settings.
        guard: Whether choices that must be late are replaced.
        distribution: Whether the network sees the features of the distribution of epochs.
        agent: The algorithm of a variant that sets controls: `es`, or one of Stable-Baselines3.
        begin: How that one begins: as STS-X, or with constants (`gpusched_agents.training.constants`).
        learns: Whether that one learns after its beginning.
        settings: Settings of its algorithm that differ.
        reward: Its reward, where the algorithm is one of Stable-Baselines3.
        observes: Settings of its network that differ.
    """

    title: str
    imitation: int | None = None
    network: str = "set"
    distribution: bool = True
    expert: str | None = None
    guard: bool = False
    agent: str = "es"
    begin: str = ""
    learns: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reward: str = "saving"
    observes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def config(self, base: TrainingConfig, steps: int, seed: int) -> TrainingConfig:
        """Return the settings of one training.

        Args:
            base: The settings that all variants share. The share of imitation in its decisions is that of the variants
                that have both imitation and reinforcement learning.
            steps: Decisions in all, the same for every variant, ≥ 1: rounds of those that set controls.
            seed: Seed of the training, ≥ 0.
        """
        if self.network in SETS_CONTROLS:
            return self._controls(base, steps, seed)
        share = base.imitation.steps / (base.imitation.steps + base.steps)
        imitated = round(steps * (share if self.imitation is None else self.imitation))
        return replace(
            base,
            seed=seed,
            steps=steps - imitated,
            network=replace(base.network, kind=self.network, distribution=self.distribution, guard=self.guard),
            imitation=replace(base.imitation, steps=imitated, expert=self.expert or base.imitation.expert),
        )

    def _controls(self, base: TrainingConfig, steps: int, seed: int) -> TrainingConfig:
        """Return the settings of a training that sets controls, in as many rounds."""
        often = base.evaluate_every
        common: dict[str, Any] = {"seed": seed, "imitation": NO_WARM_START}
        if self.agent == "es":
            agent = EsConfig(begin=self.begin, **{**FINE, **self.settings})
            network = replace(LINEAR, kind=self.network, **self.observes)
            return replace(base, agent=agent, network=network, steps=steps if self.learns else 1, **common)
        config = AdaptationConfig(self.agent, self.settings, self.reward, begin=self.begin)
        network = NetworkConfig("controls", **{"hidden": 128 if self.begin else 32, **self.observes})
        common |= {"envs": ADAPTATION_COUNTS["envs"], "evaluate_every": max(1, often // network.rounds)}
        return replace(base, agent=config, network=network, steps=max(1, steps // network.rounds), **common)


FINE = {"sigma": 0.05, "learning_rate": 0.01, "clip": 0.1}
"""Settings of `es` for networks that set controls."""
WIDE, LAST = {"layers": 1, "hidden": 128}, {"sigma": 0.04, "only": "price.1,common.1"}
"""Network and settings of `es` for many clusters: a random hidden layer, and learning of the last one."""
CAREFUL = {"log_std_init": -2.0, "learning_rate": 3e-4}
"""Settings of PPO for one that begins with constants."""


def _ppo(change: str, **changed: Any) -> Variant:
    """Return the variant of PPO with one change."""
    return Variant(f"PPO, {change}", network="controls", agent="ppo", **changed)


VARIANTS = {
    "full": Variant("set + imitation"),
    "no-imitation": Variant("no imitation", imitation=0),
    "no-set-network": Variant("no set network", network="mlp"),
    "distribution-hidden": Variant("distribution hidden", distribution=False),
    "imitation-only": Variant("imitation only", imitation=1),
    "guarded": Variant("guarded", guard=True),
    "taught-by-edf": Variant("taught by EDF", expert="edf"),
    "best-constants": Variant("best constants", network="control-set", begin=COMMON, learns=False),
    "constants": Variant("constants of each scenario", network="controls", begin=CONSTANTS, learns=False),
    "constants-es": Variant("constants of each scenario, then es", network="controls", begin=CONSTANTS),
    "constants-ppo": Variant(
        "constants of each scenario, then PPO", network="controls", agent="ppo", begin=CONSTANTS, settings=CAREFUL
    ),
    "controls-es": Variant("es", network="controls"),
    "controls-ppo": Variant("PPO", network="controls", agent="ppo"),
    "controls-sac": Variant("SAC", network="controls", agent="sac"),
    "control-set": Variant(
        "constants, any cluster", network="control-set", begin=CONSTANTS, learns=False, observes=WIDE
    ),
    "control-set-es": Variant(
        "constants, then es, any cluster", network="control-set", begin=CONSTANTS, observes=WIDE, settings=LAST
    ),
    "ppo-gamma-0.5": _ppo("gamma 0.5", settings={"gamma": 0.5}),
    "ppo-gamma-0.98": _ppo("gamma 0.98", settings={"gamma": 0.98}),
    "ppo-rounds-4": _ppo("4 rounds a step", observes={"rounds": 4}),
    "ppo-rounds-64": _ppo("64 rounds a step", observes={"rounds": 64}),
    "ppo-waste": _ppo("reward waste", reward="waste"),
    "ppo-cost": _ppo("reward cost", reward="cost"),
    "ppo-less-noise": _ppo("noise e^-2", settings={"log_std_init": -2.0}),
    "ppo-more-noise": _ppo("noise 1", settings={"log_std_init": 0.0}),
    "ppo-job-rows": _ppo("8 rows of jobs", observes={"job_features": 8, "job_codes": 16}),
    "ppo-job-controls": _ppo("controls of jobs", observes={"controls": "jobs"}),
}
"""The variants by name: the whole, without one part, with a guard, with another expert; agents that set controls;
constants; and PPO with one change."""

USUAL_VARIANTS = ("full", "no-imitation", "no-set-network", "distribution-hidden", "imitation-only")
"""Those that a study has if none are named."""


def train(
    config: TrainingConfig, folder: Path, name: str, command: str, on_progress: Callable[[int, int, str], None]
) -> None:
    """Train in `folder` to the end, from its last checkpoint if there is one, and record that it is finished.

    Args:
        config: The settings.
        folder: Folder of the training run.
        name: Name of the agent.
        command: The command that made it.
        on_progress: Called with steps done, steps in all, and a description of the present work.

    Raises:
        InputError: The folder belongs to a run with other settings, or its checkpoint is not whole.
    """
    training = make_training(config, folder, name=name, command=command, on_progress=on_progress)
    training.run()
    write_finished(config, folder, training.progress.steps, training.progress.seconds)


def write_finished(config: TrainingConfig, folder: Path, steps: int, seconds: float) -> None:
    """Record that a training has finished in `folder`, with its number of decisions and its seconds."""
    facts = {"config": config.as_dict(), "steps": steps, "seconds": seconds}
    write_atomically(Path(folder) / FINISHED, json.dumps(facts, indent=1) + "\n")


def finished_training(config: TrainingConfig, folder: Path) -> dict[str, Any] | None:
    """Return the record in `folder`: `config`, `steps` and `seconds`; None if no training has finished there.

    Raises:
        InputError: The training that was finished there had other settings.
    """
    path = Path(folder) / FINISHED
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        former = _flat(facts["config"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            str(path), str(error), "what a finished training wrote; remove its folder to begin again"
        ) from error
    own = _flat(json.loads(json.dumps(config.as_dict())))
    for setting in own | former:
        if former.get(setting) != own.get(setting):
            raise InputError(setting, own.get(setting), f"{former.get(setting)}, as in {path}, or another --out")
    return facts


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def make_training(
    config: TrainingConfig,
    folder: str | Path,
    *,
    name: str = "agent",
    command: str | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
    callbacks: Sequence[BaseCallback] = (),
) -> Training | ControlTraining | AdaptationTraining:
    """Make the training run of these settings.

    It is an `AdaptationTraining` for `es`, a `ControlTraining` for an `AdaptationConfig`, else a `Training`.

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
        # Its error names the missing extra.
        kind = "ControlTraining" if isinstance(config.agent, AdaptationConfig) else "Training"
        sb3: type[Training | ControlTraining] = getattr(import_module("gpusched_agents"), kind)
        return sb3(config, folder, name=name, command=command, on_progress=on_progress, callbacks=callbacks)
    if callbacks:
        raise InputError("callbacks", list(callbacks), "none, for es: it is not of Stable-Baselines3")
    return AdaptationTraining(config, folder, name=name, command=command, on_progress=on_progress)
