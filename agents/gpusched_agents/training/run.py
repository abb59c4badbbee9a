"""What training runs of all algorithms share: their folder, their files, and how far they have come."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.files.storage import save_agent
from gpusched_agents.training.checkpoint import Checkpoint, Progress, csv_of
from gpusched_agents.training.references import REFERENCES, costs_over_base, warnings_of
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.parsing import parse_json
from gpusched_env.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import TrainingConfig

    OnProgress: TypeAlias = Callable[[int, int, str], None]

CHECKPOINT, SETTINGS, CURVE, LOGS, AGENT = "checkpoint.npz", "training.json", "curve.csv", "logs", "agent"


class RunFolder:
    """The folder of a training run, new or that of the same run.

    Args:
        path: The folder.
        config: The settings.
        command: The command that made it; by default the present process's.
        packages: Versions of the packages that it depends on.

    Attributes:
        record: The content of training.json: `config`, `provenance`, and later additions.

    Raises:
        InputError: The folder belongs to a run with other settings, or holds something else.
    """

    def __init__(self, path: Path, config: TrainingConfig, command: str | None, packages: Mapping[str, str]) -> None:
        self.path, self._config = path, json.loads(json.dumps(config.as_dict()))
        settings = path / SETTINGS
        self.record: dict[str, Any] = {}
        if settings.exists():
            self.record = self._read(settings)
            return
        drafts = f".{SETTINGS}.*.tmp"  # left by a run that was killed at its beginning
        if path.is_dir() and any(not entry.match(drafts) for entry in path.iterdir()):
            raise InputError("folder", str(path), "a new folder, or one of a training run")
        origin = provenance(command, seed=config.seed, packages=dict(packages))
        self.record = {"config": self._config, "provenance": origin}
        self.write_record()

    def write_record(self) -> None:
        write_atomically(self.path / SETTINGS, json.dumps(self.record, indent=1) + "\n")

    def read_checkpoint(self) -> Checkpoint | None:
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        checkpoint = Checkpoint.read(path)
        kept = checkpoint.facts.get("config")
        if not isinstance(kept, dict) or kept | {"steps": self._config["steps"]} != self._config:
            raise InputError(str(path), "of a run with other settings", "that of this run; remove it to begin again")
        return checkpoint

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            record: dict[str, Any] = parse_json(path.read_bytes())
            former, _ = dict(record["config"]), dict(record["provenance"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(str(path), str(error), "the settings of a training run") from error
        changed = [name for name in self._config if former.get(name) != self._config[name]]
        if changed == ["steps"] and isinstance(former["steps"], int) and self._config["steps"] > former["steps"]:
            record["config"] = self._config  # a training may be made longer
            changed = []
        if changed:
            more = " or more" if changed[0] == "steps" else ""
            raise InputError(changed[0], self._config[changed[0]], f"{former.get(changed[0])}{more}, as in {path}")
        return record


class ResumableTraining(ABC):
    """A training run in a folder, which can be stopped and resumed at any time, and resumed with more steps.

    The folder holds `training.json` (settings, origin, costs of reference policies, and warnings at the end),
    `checkpoint.npz`, `curve.csv` (an evaluation per line), `logs/` (TensorBoard, of Stable-Baselines3), and
    `agent/`: the best agent so far.

    Args:
        config: The settings.
        folder: A new folder, or that of the same run, which is then resumed; one with fewer steps goes on to these.
        name: Name of the agent.
        command: The command that made it; by default the present process's.
        on_progress: Called with steps done, steps in all, and a description of the present work.

    Attributes:
        progress: The progress of the run, with the curve.
        resumes_at: Steps at which the same command would go on; None: from the beginning.

    Raises:
        InputError: The algorithm does not have such a setting, the folder belongs to a run with other settings, or its
            checkpoint is not whole.
    """

    PACKAGES: tuple[str, ...] = ("numpy", "numba")
    """The packages that it depends on."""

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
        self._prepare()
        # After all checks, so that bad input writes nothing.
        self._run = RunFolder(self.folder, config, command, {name: version(name) for name in self.PACKAGES})
        self.progress = Progress()
        self.resumes_at: int | None = None
        self._began = time.monotonic()
        self._resume()

    @abstractmethod
    def run(self) -> AgentDescription:
        """Train to the end, and return the description of the agent that is kept: the best one evaluated."""

    @property
    def references(self) -> dict[str, float]:
        """Return mean costs of STS-X, STS and EDF on the validation workloads [€], without randomised ones."""
        record = self._run.record
        if "references" not in record:
            self._report(f"measuring {', '.join(REFERENCES)}")
            record |= costs_over_base(self.config)
            self._run.write_record()
        costs: dict[str, float] = record["references"]
        return costs

    @property
    def warnings(self) -> list[str]:
        """Return warnings on the best agent so far, with advice: it is untrained, or costly."""
        return warnings_of(self.config, self.progress.curve, self.references)

    @abstractmethod
    def _prepare(self) -> None:
        """Check the settings, and make the model."""

    @abstractmethod
    def _unpack(self, checkpoint: Checkpoint) -> None:
        """Set the run to the state of a checkpoint."""

    @abstractmethod
    def _save_agent(self) -> AgentDescription:
        """Write the folder of the best agent so far."""

    def _resume(self) -> None:
        checkpoint = self._run.read_checkpoint()
        if checkpoint is None:
            return
        try:
            self._unpack(checkpoint)
            self.progress = Progress(**checkpoint.facts["progress"])
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            path = str(self.folder / CHECKPOINT)
            raise InputError(path, str(error), "one of this version; remove it to begin again") from error
        if self.config.steps > checkpoint.facts["config"]["steps"]:
            self._run.write_record()
            if self.progress.phase == "done":
                self.progress.phase = "learning"
        self.resumes_at = self.progress.steps

    def _begin_checkpoint(self) -> Checkpoint:
        self._count_seconds()
        progress = {name: getattr(self.progress, name) for name in Progress.__slots__}
        return Checkpoint(facts={"config": self.config.as_dict(), "progress": progress})

    def _begin_point(self) -> dict[str, Any]:
        self._count_seconds()
        return {"steps": self.progress.steps, "seconds": round(self.progress.seconds, 1)}

    def _count_seconds(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._began
        self._began = now

    def _write_curve(self) -> None:
        write_atomically(self.folder / CURVE, csv_of(self.progress.curve))

    def _save(self, spec: AgentSpec, weights: Mapping[str, NDArray[np.float32]]) -> AgentDescription:
        description = AgentDescription(
            name=self.name,
            algorithm=self.config.agent.algorithm,
            spec=spec,
            config=self.config.as_dict(),
            provenance=self._run.record["provenance"],
            curve=self.progress.curve,
        )
        return save_agent(self.folder / AGENT, description, weights)

    def _end(self) -> AgentDescription:
        self._run.record["warnings"] = self.warnings
        self._run.write_record()
        return self._save_agent()

    def _report(self, text: str) -> None:
        self._on_progress(min(self.progress.steps, self.config.steps), self.config.steps, text)
