"""A trained agent, or a model that chooses job by job, as a policy: for tables, `simulate()` and the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.files.storage import find_agent, load_agent
from gpusched_agents.network.actors import ControlActor, JobSetActor, MlpActor
from gpusched_agents.network.control_policy import SQUASHED, ControlPolicy
from gpusched_agents.network.type_set import TypeSetActor
from gpusched_baselines import edf
from gpusched_env.envs.source import MAX_IDLE_REVIEWS
from gpusched_env.errors import InputError
from gpusched_env.observation import (
    CLUSTER_FEATURES,
    JOB_FEATURES,
    JOBS_FEATURES,
    OPTION_FEATURES,
    PARTS,
    QUEUE_FEATURES,
    Notes,
)
from gpusched_env.observation.observe import observe
from gpusched_env.simulator import Asking, Choice, View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.rounds import act

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec, NetworkConfig
    from gpusched_env.model import Instance


def load_policy(text: str) -> ControlPolicy:
    """Load the agent that `agent:NAME` or `agent:DIR` names, as a policy of that name.

    Raises:
        InputError: There is no such agent, its folder is not as it was written, or it was trained with another version
            of the observation.
    """
    description, weights = load_agent(find_agent(text))
    description.spec.check_features()
    return control_policy(text, description.spec, description.network, weights, description.algorithm)


def control_policy(
    name: str, spec: AgentSpec, network: NetworkConfig, weights: Mapping[str, NDArray[np.float32]], algorithm: str
) -> ControlPolicy:
    """Return the policy that sets the controls of STS-X with a network.

    Args:
        algorithm: Its training algorithm: those in `SQUASHED` have tanh on their actions, and ReLU between layers.
    """
    if spec.network == "control-set":
        known = TypeSetActor.of(weights, spec.gpu_types)
        return ControlPolicy(
            name=name,
            spec=spec,
            actor=known,
            rounds=network.rounds,
            controls=network.controls,
            fades=network.contexts > 0,
        )
    squash = algorithm in SQUASHED
    actor: ControlActor
    actor = head = MlpActor.of(weights, "relu" if squash else "tanh", squash=squash)
    if network.job_codes:
        code = weights["code.weight"], weights["code.bias"]
        actor = JobSetActor(code, weights["code.score"], network.job_features, head)
    return ControlPolicy(name=name, spec=spec, actor=actor, rounds=network.rounds, controls=network.controls)


DEFAULT = Asking()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobModelPolicy:
    """The action with the best score for one job after the other; an action that cannot be placed means wait.

    When every job has waited for `patience` reviews, and none is still to be submitted, EDF decides the current
    job, as in `gpusched_agents.evaluation`: so every run ends, and the costs include the wait.

    Args:
        name: Name, as tables show it.
        actor: Scores all actions, (1 + C,), with its last layer, which is linear.
        parts: The order of the parts of its observation; None: that of a flat one.
        masks: Whether it chooses only among actions that can be placed, as `MaskablePPO` does.
        asking: How rounds ask it, as in its training.
        patience: Idle reviews in a row before EDF decides, ≥ 1.
        counts: Where it counts decisions, those of them that could not be placed, and those of EDF; None: nowhere.
    """

    name: str
    actor: ControlActor
    parts: tuple[str, ...] | None = None
    masks: bool = False
    asking: Asking = DEFAULT
    patience: int = MAX_IDLE_REVIEWS
    counts: Counter[str] | None = None

    @property
    def preemption(self) -> bool:
        return self.asking.preemption

    @property
    def job_order(self) -> str:
        return self.asking.job_order

    def check(self, instance: Instance) -> None:
        configs, types = len(instance.configurations), len(instance.gpu_types)
        rows, rest = self._rows(configs, types)
        known = self.actor.rows if isinstance(self.actor, JobSetActor) else max(0, rows)
        if (rows, rest, self.actor.outputs) != (known, 0, 1 + configs):
            allowed = f"those of the model's training: it has {self.actor.outputs} actions, not {1 + configs}"
            raise InputError("instance.configurations", f"{configs} of {types} GPU types", allowed)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - it draws nothing
        order = ask_order(view, self.job_order, waiting_only=not self.preemption)
        notes, count = self._notes(view), view.count
        for k, job in enumerate(order):
            view.board.count[at.ASKED] = k
            action, _ = self._action(view, notes)
            forced = bool(count[at.IDLE] >= self.patience)
            if forced:
                action = edf().choose(view, int(job)).config + 1
            placed = act(view.board, action)
            if self.counts is not None:
                self.counts.update(steps=1, invalid_actions=int(not placed), forced=int(forced))

    def choose(self, view: View, job: int) -> Choice:  # noqa: ARG002 - the current job is the one that the round asks
        action, fits = self._action(view, self._notes(view))
        return Choice(action - 1 if fits else -1)

    def _rows(self, configs: int, types: int) -> tuple[int, int]:
        """Return the number of rows of other jobs in its observation, and how many numbers then are too many."""
        whole = len(JOB_FEATURES) + len(QUEUE_FEATURES)
        others = whole + configs * len(OPTION_FEATURES) + types * len(CLUSTER_FEATURES)
        return divmod(self.actor.inputs - others, len(JOBS_FEATURES))

    def _notes(self, view: View) -> Notes:
        board = view.board
        return Notes.of(board, job_features=self._rows(board.facts.configs.shape[0], board.capacity.shape[0])[0])

    def _action(self, view: View, notes: Notes) -> tuple[int, bool]:
        """Return the action with the best score, and whether it can be placed."""
        board = view.board
        configs, types = board.facts.configs.shape[0], board.capacity.shape[0]
        seen = {
            "job": np.empty(len(JOB_FEATURES), np.float32),
            "options": np.empty((configs, len(OPTION_FEATURES)), np.float32),
            "cluster": np.empty((types, len(CLUSTER_FEATURES)), np.float32),
            "queue": np.empty(len(QUEUE_FEATURES), np.float32),
            "jobs": np.empty((max(0, len(notes.rows) - 1), len(JOBS_FEATURES)), np.float32),
        }
        mask = np.empty(1 + configs, np.int8)
        observe(board, notes, seen["job"], seen["options"], seen["cluster"], seen["queue"], seen["jobs"], mask)
        weight, bias = self.actor.last
        scores = weight @ self.actor.hidden(np.concatenate([seen[part].ravel() for part in self.parts or PARTS])) + bias
        action = int(np.argmax(np.where(mask > 0, scores, -np.inf) if self.masks else scores))
        return action, bool(mask[action])
