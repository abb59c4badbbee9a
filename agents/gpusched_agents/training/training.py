"""A training run: warm start, reinforcement learning, evaluation, and checkpoints for exact resumption."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpusched_agents.network.inference import flat_weights
from gpusched_agents.network.policies import actor_of, export_network
from gpusched_agents.policy import AgentPolicy
from gpusched_agents.spec import AgentSpec
from gpusched_agents.training.algorithm_config import A2cConfig, DqnConfig, PpoConfig
from gpusched_agents.training.algorithms import TRAINED_UNDER, discounting_of, make_env, make_model
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.imitation import Expert, Imitation
from gpusched_agents.training.references import reference_costs, reference_names
from gpusched_agents.training.sb3_training import Logs, Sb3Training
from gpusched_env.errors import InputError

MOST_CONFIGURATIONS, MOST_GPU_TYPES = 256, 32  # that a set network may be used with


class Training(Sb3Training):
    """A training run of an agent that decides job by job: see `Sb3Training`. Its warm start imitates an expert."""

    def _prepare(self) -> None:
        config, agent = self.config, self.config.agent
        if not isinstance(agent, PpoConfig | A2cConfig | DqnConfig):
            raise InputError("agent", agent.algorithm, "an algorithm that decides job by job; make_training takes all")
        torch.set_num_threads(config.threads)
        model: Any = make_model(config, make_env(config))
        self._generator = np.random.default_rng([config.seed, 2])
        self._imitation: Imitation | None = None
        if not isinstance(agent, DqnConfig):
            self._imitation = Imitation(model, config.imitation, self._generator, discounting_of(agent))
        self._take(model)

    def _measure_references(self) -> dict[str, Any]:
        return {"references": reference_costs(reference_names(self.config), self._instances)}

    def _imitate(self, logs: Logs) -> None:
        if self.model._last_obs is None:  # noqa: SLF001 - resumed runs have one
            self._begin_episodes()
            self._evaluate(logs, {})
        if self._imitation is None:
            self._demonstrate()
        elif self.config.imitation.steps > 0:
            self._clone(self._imitation, logs)
            self._begin_learning()
        self.progress.phase, self.progress.worse = "learning", 0
        self._write_checkpoint()

    def _clone(self, imitation: Imitation, logs: Logs) -> None:
        next_evaluation = _next_multiple(imitation.done, self.config.evaluate_every)
        while imitation.done < self.config.imitation.steps and self.progress.worse < self.config.patience:
            measured = imitation.iterate()
            self.progress.imitated = imitation.done
            self._report(f"imitating {self.config.imitation.expert}, agreement {measured['agreement']:.3f}")
            if imitation.done >= next_evaluation or imitation.done >= self.config.imitation.steps:
                self._evaluate(logs, measured)
                self._write_checkpoint()
                next_evaluation = _next_multiple(imitation.done, self.config.evaluate_every)
            self._remember()

    def _begin_learning(self) -> None:
        """Continue near the best imitated agent, with its scores times the inverse temperature and a new optimiser."""
        policy: Any = self.model.policy
        network = actor_of(self.model).network
        network.load_state_dict({name: torch.from_numpy(array) for name, array in self._best.items()})
        with torch.no_grad():
            for layer in network.outputs():
                layer.weight.mul_(self.config.imitation.inverse_temperature)
                layer.bias.mul_(self.config.imitation.inverse_temperature)
        policy.imitated = (copy.deepcopy(network).requires_grad_(False),)
        if self._imitation is not None:
            self._imitation.average.load_state_dict(network.state_dict())
        policy.optimizer.state.clear()

    def _count(self, learnt: int) -> None:
        """Move the average after an update of the weights."""
        if self._imitation is not None and learnt > self.progress.learnt:
            self._imitation.move_average(self.config.agent.averaging)  # type: ignore[union-attr]
        super()._count(learnt)

    def _demonstrate(self) -> None:
        """Fill DQN's replay buffer with the expert's decisions."""
        model, env, expert = self.model, self._env, Expert(self.config.imitation.expert)
        buffer: Any = model.replay_buffer  # type: ignore[attr-defined]
        while self.progress.imitated < self.config.imitation.steps:
            actions = env.to_slots(expert.actions(env.views, env.jobs))
            before: Any = model._last_obs  # noqa: SLF001
            after: Any
            after, rewards, ended, infos = env.step(actions)
            last: Any = {name: array.copy() for name, array in after.items()}
            for i in np.flatnonzero(ended):
                for name, array in infos[i]["terminal_observation"].items():
                    last[name][i] = array
            buffer.add(before, last, actions, rewards, ended, infos)
            model._last_obs = after  # noqa: SLF001
            self.progress.imitated += self.config.envs
            self._report(f"watching {self.config.imitation.expert}")

    def _weights(self) -> dict[str, NDArray[np.float32]]:
        average = None if self._imitation is None else self._imitation.average
        return export_network(average or actor_of(self.model).network)

    def _spec(self) -> AgentSpec:
        instance, kind = self._instances[0], self.config.network.kind
        most: dict[str, Any] = (
            {} if kind == "mlp" else {"max_configurations": MOST_CONFIGURATIONS, "max_gpu_types": MOST_GPU_TYPES}
        )
        return AgentSpec.of(kind, instance.configurations, instance.gpu_types, **most, **asdict(TRAINED_UNDER))

    def _policy(self, weights: Mapping[str, NDArray[np.float32]]) -> AgentPolicy:
        network = self.config.network
        flat = flat_weights(network.kind, weights)
        return AgentPolicy(self.name, self._spec(), flat, network.hidden, network.guard)

    def _unpack(self, checkpoint: Checkpoint) -> None:
        super()._unpack(checkpoint)
        self._generator.bit_generator.state = checkpoint.facts["generator"]
        if self._imitation is not None:
            self._imitation.done = checkpoint.facts["progress"]["imitated"]
            average = {name: torch.from_numpy(array) for name, array in checkpoint.get("average").items()}
            self._imitation.average.load_state_dict(average)
            imitated = {name: torch.from_numpy(array) for name, array in checkpoint.get("imitated").items()}
            if imitated:
                network = copy.deepcopy(self._imitation.average).requires_grad_(False)
                network.load_state_dict(imitated)
                policy: Any = self.model.policy
                policy.imitated = (network,)

    def _checkpoint(self) -> Checkpoint:
        checkpoint = super()._checkpoint()
        if self._imitation is not None:
            checkpoint.put("average", self._imitation.average.state_dict())
            for network in self.model.policy.imitated:  # type: ignore[union-attr]
                checkpoint.put("imitated", network.state_dict())
        checkpoint.facts["generator"] = self._generator.bit_generator.state
        return checkpoint


def _next_multiple(done: int, interval: int) -> int:
    return (done // interval + 1) * interval
