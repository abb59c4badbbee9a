"""The training run that fits its settings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gpusched_agents.steering.training import SteeringTraining
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.steering_config import SteeringConfig
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from stable_baselines3.common.callbacks import BaseCallback

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_agents.training.knob_training import KnobTraining
    from gpusched_agents.training.training import Training


def make_training(
    config: TrainingConfig,
    folder: str | Path,
    *,
    name: str = "agent",
    command: str | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
    callbacks: Sequence[BaseCallback] = (),
) -> Training | KnobTraining | SteeringTraining:
    """Make the training run of these settings.

    It is a `SteeringTraining` for `es`, a `KnobTraining` for a `SteeringConfig`, else a `Training`.

    Args:
        config: The settings.
        folder: A new folder, or that of the same run, which is then resumed.
        name: Name of the agent.
        command: The command that made it; by default the present process's.
        on_progress: Called with steps done, steps in all, and what is being done.
        callbacks: Callbacks of Stable-Baselines3, none for `es`.

    Raises:
        InputError: The folder belongs to a run with other settings, its checkpoint is not whole, or there are callbacks
            for an algorithm that is not one of Stable-Baselines3.
        MissingExtraError: torch or Stable-Baselines3 is not installed, and it is not `es`, which needs neither.
    """
    if not isinstance(config.agent, EsConfig):
        # From there: it says which extra is missing.
        kind = "KnobTraining" if isinstance(config.agent, SteeringConfig) else "Training"
        sb3: type[Training | KnobTraining] = getattr(import_module("gpusched_agents"), kind)
        return sb3(config, folder, name=name, command=command, on_progress=on_progress, callbacks=callbacks)
    if callbacks:
        raise InputError("callbacks", list(callbacks), "none, for es: it is not of Stable-Baselines3")
    return SteeringTraining(config, folder, name=name, command=command, on_progress=on_progress)
