"""The common part of trainings with Stable-Baselines3: learning, evaluation, exact checkpoints (extra `agents`)."""

from __future__ import annotations

import time
from abc import abstractmethod
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.save_util import recursive_getattr

from gpusched_agents.training.checkpoint import Checkpoint, Progress, cost_of
from gpusched_agents.training.run import CHECKPOINT, LOGS, ResumableTraining
from gpusched_env import Policy, make_instance, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_agents.files.description import AgentDescription
    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import TrainingConfig


@contextmanager
def open_log(folder: Path) -> Iterator[Logger]:
    formats: list[KVWriter] = [TensorBoardOutputFormat(str(folder))] if find_spec("tensorboard") else []
    logger = Logger(str(folder), formats)
    try:
        yield logger
    finally:
        logger.close()


class Watch(BaseCallback):
    """A callback of Stable-Baselines3 that calls a function between two updates.

    Args:
        look: The function; False ends the learning.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        super().__init__()
        self._look, self._goes_on = look, True

    def _on_rollout_start(self) -> None:
        self._goes_on = self._look()

    def _on_step(self) -> bool:
        return self._goes_on


REMEMBER_S = 5.0  # between two states that are kept in memory, for an interrupt


class Sb3Training(ResumableTraining):
    """A training run of a model of Stable-Baselines3 in a folder: see `ResumableTraining`.

    Args:
        config: The settings; the other arguments but the last are those of `ResumableTraining`.
        callbacks: Callbacks of Stable-Baselines3 for the reinforcement learning. They are not part of checkpoints; a
            callback that changes the learning makes a different run.
    """

    PACKAGES = ("stable-baselines3", "sb3-contrib", "torch")

    def __init__(
        self, config: TrainingConfig, folder: str | Path, *, callbacks: Sequence[BaseCallback] = (), **named: Any
    ) -> None:
        self._callbacks = list(callbacks)
        super().__init__(config, folder, **named)

    def _take(self, model: BaseAlgorithm) -> None:
        self.model, self._env, config = model, cast("Any", model.env), self.config
        scenarios = [config.validation_scenario(index) for index in range(len(config.scenarios))]
        self._instances = [make_instance(scenario, seed) for scenario in scenarios for seed in config.validation_seeds]
        self._best: dict[str, NDArray[np.float32]] = {}
        self._remembered: Checkpoint | None = None
        self._remembered_s = -REMEMBER_S

    def run(self) -> AgentDescription:
        """Train to the end, and return the description of the agent that is kept: the best one evaluated."""
        try:
            with open_log(self.folder / LOGS) as log:
                if self.progress.phase == "beginning":
                    self._begin(log)
                if self.progress.phase == "learning":
                    self._learn(log)
        except KeyboardInterrupt:
            self._write_remembered()
            raise
        self._env.close()
        return self._end()

    @abstractmethod
    def _begin(self, log: Logger) -> None:
        """Run the part before reinforcement learning: at least begin the episodes, and evaluate the first agent."""

    @abstractmethod
    def _weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the weights of the present agent."""

    @abstractmethod
    def _policy(self, weights: Mapping[str, NDArray[np.float32]]) -> Policy:
        """Return the agent with these weights as a policy."""

    @abstractmethod
    def _spec(self) -> AgentSpec:
        """Return the spec of the agent."""

    def _begin_episodes(self) -> None:
        self.model._last_obs = self._env.reset()  # noqa: SLF001
        self.model._last_episode_starts = np.ones(self.config.envs, dtype=np.bool_)  # noqa: SLF001

    def _learn(self, log: Logger) -> None:
        left = self.config.steps - self.progress.steps
        if left > 0 and self.progress.worse < self.config.patience:
            self.model.set_logger(Logger(str(log.dir), log.output_formats))  # it records independently
            model: Any = self.model
            watch = Watch(lambda: self._look(log))
            model.learn(left, callback=[watch, *self._callbacks], reset_num_timesteps=False)
            if self.progress.worse < self.config.patience:  # else its last step was not learnt from
                self.progress.steps = model.num_timesteps
        if self.progress.curve[-1]["steps"] < self.progress.steps:
            self._evaluate(log)
        self.progress.phase = "done"
        self._write_checkpoint()

    def _look(self, log: Logger) -> bool:
        """Evaluate and write a checkpoint if it is due, between two updates; False ends the training."""
        self.progress.steps = self.model.num_timesteps
        self._report(f"learning with {self.config.agent.algorithm}")
        if self.progress.steps - self.progress.curve[-1]["steps"] >= self.config.evaluate_every:
            self._evaluate(log)
            self._write_checkpoint()
        self._remember()
        return self.progress.worse < self.config.patience

    def _evaluate(self, log: Logger) -> None:
        """Run the agent on the held-out workloads; keep it if it is the best so far."""
        weights, progress = self._weights(), self.progress
        policy = self._policy(weights)
        results = [simulate(instance, policy, record=False) for instance in self._instances]
        totals = np.array([result.total_eur for result in results])
        tardiness = float(np.mean([result.tardiness_eur for result in results]))
        found = {"total_eur": float(np.mean(totals)), "tardiness_eur": tardiness, "relative": self._relative(totals)}
        better = all(cost_of(found) < cost_of(point) for point in progress.curve)
        progress.worse = 0 if better else progress.worse + 1
        progress.curve.append(self._begin_point() | found)
        for name, value in found.items():
            log.record(f"evaluation/{name}", value)
        log.dump(progress.steps)
        self._write_curve()
        if better:
            self._best = weights
            self._save_agent()

    @abstractmethod
    def _relative(self, totals: NDArray[np.float64]) -> float:
        """Return the cost over that of STS-X, from the costs on the validation workloads [€]."""

    def _save_agent(self) -> AgentDescription:
        return self._save(self._spec(), self._best)

    def _unpack(self, checkpoint: Checkpoint) -> None:
        unpack_model(checkpoint, self.model)
        self._best = checkpoint.get("best")

    def _write_checkpoint(self) -> None:
        self._checkpoint().write(self.folder / CHECKPOINT)
        self.resumes_at, self._remembered = self.progress.steps, None

    def _remember(self) -> None:
        has_buffer = getattr(self.model, "replay_buffer", None) is not None
        if not has_buffer and time.monotonic() - self._remembered_s >= REMEMBER_S:
            self._remembered = self._checkpoint().copy()
            self._remembered_s = time.monotonic()

    def _write_remembered(self) -> None:
        if self._remembered is not None:
            steps = Progress(**self._remembered.facts["progress"]).steps
            self._remembered.write(self.folder / CHECKPOINT)
            self.resumes_at, self._remembered = steps, None

    def _checkpoint(self) -> Checkpoint:
        checkpoint = self._begin_checkpoint()
        pack_model(checkpoint, self.model)
        checkpoint.put("best", self._best)
        return checkpoint


BUFFER = ("actions", "rewards", "dones", "timeouts")  # of a replay buffer, besides the observations
FLAT = "flat"  # the name of an observation that is one array


def pack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Add a model, its optimiser, its environments, its replay buffer if it has one, and all random generators."""
    checkpoint.put("policy", model.policy.state_dict())
    for name, optimizer in _optimizers(model).items():
        for index, state in optimizer.state_dict()["state"].items():
            checkpoint.put(f"{name}/{index}", state)
    for name in _tensors(model):
        checkpoint.arrays[name] = getattr(model, name).detach().numpy()
    checkpoint.put("env", model.env.get_state())  # type: ignore[union-attr]
    last: Any = model._last_obs  # noqa: SLF001 - where it goes on
    checkpoint.put("observation", last if isinstance(last, dict) else {FLAT: last})
    if model._last_episode_starts is not None:  # noqa: SLF001
        checkpoint.arrays["starts"] = model._last_episode_starts  # noqa: SLF001
    checkpoint.arrays["torch"] = torch.get_rng_state().numpy()
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 - the one that Stable-Baselines3 draws from
    checkpoint.arrays["numpy"] = np.asarray(keys)
    checkpoint.facts["numpy"] = [name, *rest]
    checkpoint.facts["actions"] = model.action_space.np_random.bit_generator.state
    checkpoint.facts["counts"] = {key: getattr(model, key) for key in _counts(model)}
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is not None:
        size = buffer.buffer_size if buffer.full else buffer.pos
        checkpoint.put("buffer", {key: getattr(buffer, key)[:size] for key in BUFFER})
        checkpoint.put("buffer", {key: array[:size] for key, array in _seen(buffer).items()})
        checkpoint.facts["buffer"] = [buffer.pos, buffer.full]


def unpack_model(checkpoint: Checkpoint, model: BaseAlgorithm) -> None:
    """Set a model, made again with the same settings, to its state in `pack_model`."""
    model.policy.load_state_dict({name: torch.from_numpy(array) for name, array in checkpoint.get("policy").items()})
    for name, optimizer in _optimizers(model).items():
        described = optimizer.state_dict()
        for index in range(len(described["param_groups"][0]["params"])):
            state = checkpoint.get(f"{name}/{index}")
            if state:
                described["state"][index] = {key: torch.from_numpy(array) for key, array in state.items()}
        optimizer.load_state_dict(described)
    for name in _tensors(model):
        tensor = getattr(model, name)
        tensor.data = torch.from_numpy(checkpoint.arrays[name].reshape(tensor.shape).copy())
    model.env.set_state(checkpoint.get("env"))  # type: ignore[union-attr]
    seen = checkpoint.get("observation")
    model._last_obs = seen.get(FLAT, seen)  # noqa: SLF001
    model._last_episode_starts = checkpoint.arrays.get("starts")  # noqa: SLF001
    torch.set_rng_state(torch.from_numpy(checkpoint.arrays["torch"]))
    name, *rest = checkpoint.facts["numpy"]
    np.random.set_state((name, checkpoint.arrays["numpy"], *rest))  # noqa: NPY002
    model.action_space.np_random.bit_generator.state = checkpoint.facts["actions"]
    for key, value in checkpoint.facts["counts"].items():
        setattr(model, key, value)
    buffer: Any = getattr(model, "replay_buffer", None)
    if buffer is not None:
        buffer.pos, buffer.full = checkpoint.facts["buffer"]
        for key, whole in ({key: getattr(buffer, key) for key in BUFFER} | _seen(buffer)).items():
            part = checkpoint.arrays[f"buffer/{key}"]
            whole[: len(part)] = part


def _optimizers(model: BaseAlgorithm) -> dict[str, torch.optim.Optimizer]:
    names = [name for name in model._get_torch_save_params()[0] if name.endswith("optimizer")]  # noqa: SLF001
    return {name.removeprefix("policy."): recursive_getattr(model, name) for name in names}


def _tensors(model: BaseAlgorithm) -> list[str]:
    """Return the names of learnt tensors besides the policy: the entropy coefficient of SAC and TQC."""
    return model._get_torch_save_params()[1]  # noqa: SLF001


def _seen(buffer: Any) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    for kind in ("observations", "next_observations"):
        seen = getattr(buffer, kind)
        arrays |= {f"{kind}/{key}": array for key, array in seen.items()} if isinstance(seen, dict) else {kind: seen}
    return arrays


def _counts(model: BaseAlgorithm) -> list[str]:
    names = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate")
    return [name for name in names if hasattr(model, name)]
