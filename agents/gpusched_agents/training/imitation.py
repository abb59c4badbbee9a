"""The warm start: an agent learns the actions of a reference policy in the states that the agent reaches."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from gpusched_agents.network.policies import actor_of, score
from gpusched_baselines import make_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator
    from numpy.typing import NDArray
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

    from gpusched_agents.training.algorithms import SlottedVecEnv
    from gpusched_agents.training.config import ImitationConfig
    from gpusched_agents.training.discounting import Discounting
    from gpusched_env import View

FINAL_LEARNING_RATE = 0.1  # of the first


@dataclass(slots=True)
class Expert:
    """A reference policy that chooses an action in every environment, without executing it.

    Args:
        name: Its name; it decides job by job.
    """

    name: str
    policy: Any = field(init=False)

    def __post_init__(self) -> None:
        self.policy = make_policy(self.name)

    def actions(self, views: tuple[View, ...], jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return its action for the current job in every environment, (N,)."""
        choose = self.policy.choose
        return np.array([choose(view, job).config + 1 for view, job in zip(views, jobs.tolist(), strict=True)])


@dataclass(slots=True)
class _Decisions:
    """The observations, actions, rewards and durations of T steps of N environments."""

    observations: list[dict[str, NDArray[np.float32]]] = field(default_factory=list)
    labels: list[NDArray[np.int64]] = field(default_factory=list)
    rewards: list[NDArray[np.float32]] = field(default_factory=list)
    ended: list[NDArray[np.bool_]] = field(default_factory=list)
    values: list[NDArray[np.float32]] = field(default_factory=list)
    passed_s: list[NDArray[np.float64]] = field(default_factory=list)


class Imitation:
    """Behaviour cloning on the agent's own states (DAgger), for algorithms with an actor and a critic.

    One `iterate` is a rollout and an update. The next one depends only on the model, its environments, `average`,
    `done` and the generator.

    Args:
        model: PPO, MaskablePPO or A2C with a policy of `gpusched_agents.network.policies`, on a `SlottedVecEnv`.
        config: The settings.
        generator: Random generator for mini-batches, and for the choice between agent and expert.
        discounting: Discounts of the returns that the critic learns.

    Attributes:
        average: The network with the moving average of its weights (Polyak and Juditsky, 1992), the result of the warm
            start: the newest weights vary with the newest decisions.
        done: Decisions so far.
    """

    def __init__(
        self, model: OnPolicyAlgorithm, config: ImitationConfig, generator: Generator, discounting: Discounting
    ) -> None:
        self._model, self._config, self.generator, self._discounting = model, config, generator, discounting
        self._expert = Expert(config.expert)
        self.average = copy.deepcopy(actor_of(model).network)
        self.done = 0

    def iterate(self) -> dict[str, float]:
        """Act, get the expert's actions, and learn.

        Returns:
            `agreement` (share of decisions in which the agent would take the expert's action), `loss` and `value_loss`.
        """
        env: Any = self._model.env
        decisions = self._roll_out(env)
        part = self.done / self._config.steps
        rate = self._config.learning_rate * (1.0 - (1.0 - FINAL_LEARNING_RATE) * part)
        for group in self._model.policy.optimizer.param_groups:
            group["lr"] = rate
        measured = self._learn(decisions)
        self.done += self._config.rollout * env.num_envs
        return measured

    def _roll_out(self, env: SlottedVecEnv) -> _Decisions:
        decisions, policy = _Decisions(), self._model.policy
        observation: Any = self._model._last_obs  # noqa: SLF001 - where the algorithm will go on
        leads = self.done < self._config.beta * self._config.steps
        for _ in range(self._config.rollout):
            scores, values = evaluate_scores(policy, tensors(observation))
            labels = env.to_slots(self._expert.actions(env.views, env.jobs))
            expert_acts = self.generator.random(len(labels)) < 0.5 if leads else np.zeros(len(labels), dtype=np.bool_)
            actions = np.where(expert_acts, labels, scores.argmax(dim=1).numpy())
            decisions.observations.append(observation)
            decisions.labels.append(labels)
            decisions.values.append(values.numpy())
            observation, rewards, ended, infos = env.step(actions)
            rest = self._left(infos, np.flatnonzero(ended))
            decisions.rewards.append(rewards + self._discounting.gamma(env.passed_s) * rest)
            decisions.ended.append(ended)
            decisions.passed_s.append(env.passed_s)
        self._model._last_obs = observation  # noqa: SLF001
        self._model._last_episode_starts = decisions.ended[-1]  # noqa: SLF001
        decisions.values.append(evaluate_scores(policy, tensors(observation))[1].numpy())
        return decisions

    def _left(self, infos: Sequence[dict[str, Any]], ended: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the critic's value of the rest of truncated episodes, 0 elsewhere, (N,)."""
        values = np.zeros(len(infos), np.float32)
        for i in ended.tolist():
            if infos[i]["TimeLimit.truncated"]:
                last = {name: array[None] for name, array in infos[i]["terminal_observation"].items()}
                values[i] = evaluate_scores(self._model.policy, tensors(last))[1].item()
        return values

    def _learn(self, decisions: _Decisions) -> dict[str, float]:
        known = {
            name: torch.from_numpy(np.concatenate([one[name] for one in decisions.observations]))
            for name in decisions.observations[0]
        }
        labels = torch.from_numpy(np.concatenate(decisions.labels))
        rewards, estimates = np.stack(decisions.rewards), np.stack(decisions.values)
        ended, passed_s = np.stack(decisions.ended), np.stack(decisions.passed_s)
        returns = torch.from_numpy(self._discounting.returns(rewards, estimates, ended, passed_s).ravel())
        policy, size = self._model.policy, self._config.batch_size
        sums, seen = np.zeros(3), 0
        for _ in range(self._config.epochs):
            for batch in np.array_split(self.generator.permutation(len(labels)), max(1, len(labels) // size)):
                scores, values = score(policy, {name: array[batch] for name, array in known.items()})
                loss = functional.cross_entropy(scores, labels[batch])
                value_loss = functional.mse_loss(values, returns[batch])
                policy.optimizer.zero_grad()
                (loss + self._config.value_weight * value_loss).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
                policy.optimizer.step()
                self.move_average(self._config.averaging)
                right = (scores.argmax(dim=1) == labels[batch]).float().mean()
                sums += np.array([right.item(), loss.item(), value_loss.item()]) * len(batch)
                seen += len(batch)
        return dict(zip(("agreement", "loss", "value_loss"), (sums / seen).tolist(), strict=True))

    def move_average(self, decay: float) -> None:
        """Move the average to the newest weights."""
        newest = actor_of(self._model).network.parameters()
        with torch.no_grad():
            for mean, new in zip(self.average.parameters(), newest, strict=True):
                mean.lerp_(new, 1.0 - decay)


def tensors(observation: dict[str, NDArray[np.float32]]) -> dict[str, torch.Tensor]:
    """Return the observations of N environments as tensors that share their memory."""
    return {name: torch.from_numpy(array) for name, array in observation.items()}


def evaluate_scores(policy: Any, observation: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores and values of `score` without gradients."""
    with torch.no_grad():
        return score(policy, observation)
