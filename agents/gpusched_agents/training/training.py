"""A training run: warm start, reinforcement learning, evaluation, and checkpoints from which it goes on exactly."""

from __future__ import annotations

import csv
import io
import json
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.files.export import actor_of, export_network
from gpusched_agents.files.storage import save_agent
from gpusched_agents.network.inference import flat_weights
from gpusched_agents.policy import AgentPolicy
from gpusched_agents.spec import AgentSpec
from gpusched_agents.training.algorithms import TRAINED_UNDER, make_env, make_model
from gpusched_agents.training.checkpoint import Checkpoint, pack_model, unpack_model
from gpusched_agents.training.config import DqnConfig
from gpusched_agents.training.imitation import Imitation, Teacher
from gpusched_env import make_instance, simulate
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig

CHECKPOINT, SETTINGS, CURVE, LOGS, AGENT = "checkpoint.safetensors", "training.json", "curve.csv", "logs", "agent"
MOST_CONFIGURATIONS, MOST_GPU_TYPES = 256, 32  # that a set network may be used with

OnProgress: TypeAlias = "Callable[[int, int, str], None]"


@dataclass(slots=True)
class _Progress:
    """How far a run has come.

    Attributes:
        phase: `imitation` or `learning`.
        imitated: Decisions of the warm start.
        learnt: Decisions of reinforcement learning.
        curve: A point for each evaluation.
        worse: Evaluations since the best one.
        seconds: Seconds spent, over all sessions.
    """

    phase: str = "imitation"
    imitated: int = 0
    learnt: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    worse: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return self.imitated + self.learnt

    @property
    def best_eur(self) -> float:
        """The least mean cost of any evaluation [€]; inf before the first."""
        return min((point["total_eur"] for point in self.curve), default=float("inf"))


class Training:
    """A training run in a folder, which it can be stopped in and resumed from at any moment.

    The folder holds `training.json` (settings and origin), `checkpoint.safetensors`, `curve.csv` (an evaluation per
    line), `logs/` (TensorBoard), and `agent/`: the best agent so far.

    Args:
        config: The settings.
        folder: A new folder, or that of the same run, which is then resumed.
        name: Name of the agent.
        command: The command that made it; by default the present process's.
        on_progress: Called with steps done, steps in all, and what is being done.

    Raises:
        InputError: The folder belongs to a run with other settings, or its checkpoint is not whole.
    """

    def __init__(
        self,
        config: TrainingConfig,
        folder: str | Path,
        *,
        name: str = "agent",
        command: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.config, self.folder, self.name = config, Path(folder), name
        self._on_progress = on_progress or (lambda _done, _total, _text: None)
        torch.set_num_threads(config.threads)
        self._instances = [
            make_instance(scenario, seed) for scenario in config.loaded_scenarios() for seed in config.validation_seeds
        ]
        self.progress = _Progress()
        self._best: dict[str, NDArray[np.float32]] = {}
        self._env = make_env(config)
        self.model = make_model(config, self._env)
        self._settings(command)  # not before, so that bad input leaves nothing behind
        agent = config.agent
        self._generator = np.random.default_rng([config.seed, 2])
        self._imitation: Imitation | None = None
        if not isinstance(agent, DqnConfig):
            model: Any = self.model
            self._imitation = Imitation(model, config.imitation, self._generator, agent.gamma, agent.gae_lambda)
        self._began = time.monotonic()
        self._resume()

    def run(self) -> AgentDescription:
        """Train to the end, and give the description of the agent that is kept: the best one evaluated."""
        with _logs(self.folder / LOGS) as logger:
            if self.progress.phase == "imitation":
                self._imitate(logger)
            if self.progress.phase == "learning":
                self._learn(logger)
        self._env.close()
        return self._save_agent()

    def _imitate(self, logger: Logger) -> None:
        if self.model._last_obs is None:  # noqa: SLF001 - resumed runs have one
            self._begin_episodes()
            self._evaluate(logger, {})
        if self._imitation is None:
            self._demonstrate()
        elif self.config.imitation.steps > 0:
            self._clone(self._imitation, logger)
            self._begin_learning()
        self.progress.phase, self.progress.worse = "learning", 0
        self._write_checkpoint()

    def _begin_episodes(self) -> None:
        observation: Any = self._env.reset()
        self.model._last_obs = observation  # noqa: SLF001
        self.model._last_episode_starts = np.ones(self.config.envs, dtype=np.bool_)  # noqa: SLF001

    def _clone(self, imitation: Imitation, logger: Logger) -> None:
        next_evaluation = _next_multiple(imitation.done, self.config.evaluate_every)
        while imitation.done < self.config.imitation.steps and self.progress.worse < self.config.patience:
            measured = imitation.iterate()
            self.progress.imitated = imitation.done
            self._report(f"imitating {self.config.imitation.teacher}, agreement {measured['agreement']:.3f}")
            if imitation.done >= next_evaluation or imitation.done >= self.config.imitation.steps:
                self._evaluate(logger, measured)
                self._write_checkpoint()
                next_evaluation = _next_multiple(imitation.done, self.config.evaluate_every)

    def _begin_learning(self) -> None:
        """Go on from the best imitator, a little more decided, with an optimiser that has learnt nothing yet."""
        policy: Any = self.model.policy
        network = actor_of(self.model).network
        network.load_state_dict({name: torch.from_numpy(array) for name, array in self._best.items()})
        with torch.no_grad():
            for layer in network.outputs():
                layer.weight.mul_(self.config.imitation.sharpness)
                layer.bias.mul_(self.config.imitation.sharpness)
        policy.optimizer.state.clear()

    def _demonstrate(self) -> None:
        """Fill DQN's replay buffer with the teacher's decisions."""
        model, env, teacher = self.model, self._env, Teacher(self.config.imitation.teacher)
        buffer: Any = model.replay_buffer  # type: ignore[attr-defined]
        while self.progress.imitated < self.config.imitation.steps:
            actions = env.to_slots(teacher.actions(env.views, env.jobs))
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
            self._report(f"watching {self.config.imitation.teacher}")

    def _learn(self, logger: Logger) -> None:
        left = self.config.steps - self.progress.learnt
        if left > 0 and self.progress.worse < self.config.patience:
            self.model.set_logger(logger)
            model: Any = self.model
            model.learn(left, callback=_Watch(self, logger), reset_num_timesteps=False)
            if self.progress.worse < self.config.patience:  # else its last step taught it nothing
                self.progress.learnt = model.num_timesteps
        if not self.progress.curve or self.progress.curve[-1]["steps"] < self.progress.steps:
            self._evaluate(logger, {})
        self.progress.phase = "done"
        self._write_checkpoint()

    def at_rollout(self, logger: Logger) -> bool:
        """Evaluate and write a checkpoint if it is time, between two updates; False ends the training."""
        self.progress.learnt = self.model.num_timesteps
        self._report(f"learning with {self.config.agent.algorithm}")
        last = self.progress.curve[-1]["steps"] if self.progress.curve else -1
        if self.progress.steps - last >= self.config.evaluate_every:
            self._evaluate(logger, {})
            self._write_checkpoint()
        return self.progress.worse < self.config.patience

    def _evaluate(self, logger: Logger, measured: Mapping[str, float]) -> None:
        """Run the agent on the held-out workloads; keep it if it is the best so far."""
        weights = self._weights()
        policy = self._policy(weights)
        results = [simulate(instance, policy, record=False) for instance in self._instances]
        total = float(np.mean([result.total_eur for result in results]))
        tardiness = float(np.mean([result.tardiness_eur for result in results]))
        progress = self.progress
        better = total < progress.best_eur
        progress.worse = 0 if better else progress.worse + 1
        self._count_seconds()
        point = {"steps": progress.steps, "seconds": round(progress.seconds, 1), "phase": progress.phase}
        progress.curve.append(point | {"total_eur": total, "tardiness_eur": tardiness} | dict(measured))
        for name, value in {"total_eur": total, "tardiness_eur": tardiness, **measured}.items():
            logger.record(f"evaluation/{name}", value)
        logger.dump(progress.steps)
        write_atomically(self.folder / CURVE, _csv(progress.curve))
        if better:
            self._best = weights
            self._save_agent()

    def _weights(self) -> dict[str, NDArray[np.float32]]:
        if self.progress.phase == "imitation" and self._imitation is not None:
            return export_network(self._imitation.average)
        return export_network(actor_of(self.model).network)

    def _spec(self) -> AgentSpec:
        instance, kind = self._instances[0], self.config.network.kind
        most: dict[str, Any] = (
            {} if kind == "mlp" else {"max_configurations": MOST_CONFIGURATIONS, "max_gpu_types": MOST_GPU_TYPES}
        )
        return AgentSpec.of(kind, instance.configurations, instance.gpu_types, **most, **asdict(TRAINED_UNDER))

    def _policy(self, weights: Mapping[str, NDArray[np.float32]]) -> AgentPolicy:
        network = self.config.network
        return AgentPolicy(self.name, self._spec(), flat_weights(network.kind, weights), network.hidden)

    def _save_agent(self) -> AgentDescription:
        settings = self.config.as_dict()
        origin = json.loads((self.folder / SETTINGS).read_text(encoding="utf-8"))["provenance"]
        description = AgentDescription(
            name=self.name,
            algorithm=self.config.agent.algorithm,
            spec=self._spec(),
            config=settings,
            provenance=origin,
            curve=self.progress.curve,
        )
        return save_agent(self.folder / AGENT, description, self._best)

    def _settings(self, command: str | None) -> None:
        """Write down the settings, or check that they are those of the run that is resumed."""
        path, settings = self.folder / SETTINGS, self.config.as_dict()
        if path.exists():
            try:
                written = json.loads(path.read_text(encoding="utf-8"))
                former, _ = dict(written["config"]), dict(written["provenance"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(str(path), str(error), "the settings of a training run") from error
            changed = [name for name in settings if former.get(name) != json.loads(json.dumps(settings[name]))]
            if changed:
                raise InputError(changed[0], settings[changed[0]], f"{former.get(changed[0])}, as in {path}")
            return
        drafts = f".{SETTINGS}.*.tmp"  # what a run that was killed at its very beginning leaves
        if self.folder.is_dir() and any(not entry.match(drafts) for entry in self.folder.iterdir()):
            raise InputError("folder", str(self.folder), "a new folder, or one of a training run")
        origin = provenance(command, seed=self.config.seed, packages=_versions())
        write_atomically(path, json.dumps({"config": settings, "provenance": origin}, indent=1) + "\n")

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        checkpoint = Checkpoint.read(path)
        if checkpoint.facts.get("config") != json.loads(json.dumps(self.config.as_dict())):
            raise InputError(str(path), "of a run with other settings", "that of this run; remove it to begin anew")
        try:
            self._unpack(checkpoint)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(str(path), str(error), "one of this version; remove it to begin anew") from error

    def _unpack(self, checkpoint: Checkpoint) -> None:
        unpack_model(checkpoint, self.model)
        self._best = checkpoint.get("best")
        self._generator.bit_generator.state = checkpoint.facts["generator"]
        self.progress = _Progress(**checkpoint.facts["progress"])
        if self._imitation is not None:
            self._imitation.done = self.progress.imitated
            average = {name: torch.from_numpy(array) for name, array in checkpoint.get("average").items()}
            self._imitation.average.load_state_dict(average)

    def _write_checkpoint(self) -> None:
        checkpoint = Checkpoint()
        checkpoint.facts["config"] = self.config.as_dict()
        pack_model(checkpoint, self.model)
        checkpoint.put("best", self._best)
        if self._imitation is not None:
            checkpoint.put("average", self._imitation.average.state_dict())
        checkpoint.facts["generator"] = self._generator.bit_generator.state
        self._count_seconds()
        checkpoint.facts["progress"] = {name: getattr(self.progress, name) for name in _Progress.__slots__}
        checkpoint.write(self.folder / CHECKPOINT)

    def _count_seconds(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._began
        self._began = now

    def _report(self, text: str) -> None:
        total = self.config.imitation.steps + self.config.steps
        self._on_progress(min(self.progress.steps, total), total, text)


class _Watch(BaseCallback):
    """Lets the training look between two updates."""

    def __init__(self, training: Training, logger: Logger) -> None:
        super().__init__()
        self._training, self._logger = training, logger
        self._goes_on = True

    def _on_rollout_start(self) -> None:
        self._goes_on = self._training.at_rollout(self._logger)

    def _on_step(self) -> bool:
        return self._goes_on


@contextmanager
def _logs(folder: Path) -> Iterator[Logger]:
    """Log for TensorBoard, if it is installed."""
    formats: list[KVWriter] = [TensorBoardOutputFormat(str(folder))] if find_spec("tensorboard") else []
    logger = Logger(str(folder), formats)
    try:
        yield logger
    finally:
        logger.close()


def _next_multiple(done: int, interval: int) -> int:
    return (done // interval + 1) * interval


def _csv(curve: list[dict[str, Any]]) -> str:
    """Write the curve as a table; a field that a point does not have is empty."""
    names = list(dict.fromkeys(name for point in curve for name in point))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(curve)
    return text.getvalue()


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("stable-baselines3", "sb3-contrib", "torch")}
