"""What a trained model is: the one method of Stable-Baselines3's algorithms that evaluation needs."""

from __future__ import annotations

import inspect
from typing import Any, Protocol


class Model(Protocol):
    """Predicts actions, as every algorithm of Stable-Baselines3 and sb3-contrib does."""

    @property
    def predict(self) -> Any:
        """The method `predict(observation, state, episode_start, deterministic)`, which gives (action, state).

        If it has a parameter `action_masks` too, it is given what can be placed now, bool (1 + C,).
        """


def takes_masks(model: Model) -> bool:
    """Say whether `model` chooses among allowed actions only, as `MaskablePPO` does."""
    return "action_masks" in inspect.signature(model.predict).parameters
