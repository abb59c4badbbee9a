"""Returns that are discounted by simulated time, and the rollout buffers of Stable-Baselines3 that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer
from stable_baselines3.common.buffers import DictRolloutBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Discounting:
    """Discounts by simulated time: decisions of the same round have 1 between them, however many they are.

    Args:
        horizon_s: A step of Δt seconds has the discount γ = exp(-Δt / `horizon_s`), > 0.
        gae_horizon_s: It has λ = exp(-Δt / `gae_horizon_s`), > 0.
    """

    horizon_s: float
    gae_horizon_s: float

    def gamma(self, passed_s: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the discounts of steps that took `passed_s` seconds."""
        return np.exp(-passed_s / self.horizon_s).astype(np.float32)

    def returns(
        self,
        rewards: NDArray[np.float32],
        values: NDArray[np.float32],
        ended: NDArray[np.bool_],
        passed_s: NDArray[np.float64],
    ) -> NDArray[np.float32]:
        """Return the λ-returns (Schulman et al., 2016) of T steps of N environments, (T, N).

        Args:
            rewards: Rewards of the steps, (T, N).
            values: Values of the states before each step and after the last one, (T + 1, N).
            ended: Where an episode ended with the step, (T, N).
            passed_s: Simulated time of the steps [s], (T, N).
        """
        goes_on = 1.0 - ended.astype(np.float32)
        gammas = self.gamma(passed_s) * goes_on
        lambdas = np.exp(-passed_s / self.gae_horizon_s).astype(np.float32)
        returns = np.empty_like(values[:-1])
        advantage = np.zeros_like(values[0])
        for step in reversed(range(len(returns))):
            error = rewards[step] + gammas[step] * values[step + 1] - values[step]
            advantage = error + gammas[step] * lambdas[step] * advantage
            returns[step] = advantage + values[step]
        return returns


class _Timed:
    """A mixin for rollout buffers: advantages by `Discounting`, not by a constant γ and λ.

    Args:
        discounting: The discounts.

    Attributes:
        last_passed_s: Returns how far the last step moved the time of every environment [s], (N,); to be set.
    """

    last_passed_s: Callable[[], NDArray[np.float64]]

    def __init__(self, *given: Any, discounting: Discounting, **named: Any) -> None:
        self._discounting = discounting
        super().__init__(*given, **named)

    def reset(self: Any) -> None:
        """Empty the buffer."""
        self._passed_s = np.zeros((self.buffer_size, self.n_envs))
        super().reset()  # type: ignore[misc]

    def add(self: Any, *given: Any, **named: Any) -> None:
        """Add the step that the environments have just taken; see `RolloutBuffer.add`."""
        self._passed_s[self.pos] = self.last_passed_s()
        super().add(*given, **named)  # type: ignore[misc]

    def compute_returns_and_advantage(self: Any, last_values: Tensor, dones: NDArray[np.bool_]) -> None:
        """Compute the λ-returns and the advantages; see `RolloutBuffer.compute_returns_and_advantage`."""
        values = np.concatenate([self.values, last_values.cpu().numpy().reshape(1, -1)])
        ended = np.concatenate([self.episode_starts[1:], dones[None]])
        self.returns = self._discounting.returns(self.rewards, values, ended, self._passed_s)
        self.advantages = self.returns - self.values


class TimedRolloutBuffer(_Timed, DictRolloutBuffer):
    """The rollout buffer of PPO and A2C."""


class MaskableTimedRolloutBuffer(_Timed, MaskableDictRolloutBuffer):
    """The rollout buffer of MaskablePPO."""
