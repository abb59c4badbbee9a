"""The folder of a training run: its settings, and what is written down about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpusched_agents.training.config import TrainingConfig

CHECKPOINT, SETTINGS, CURVE, LOGS, AGENT = "checkpoint.safetensors", "training.json", "curve.csv", "logs", "agent"


class RunFolder:
    """The folder of a training run, new or that of the same run.

    Args:
        path: The folder.
        config: The settings.
        command: The command that made it; by default the present process's.
        packages: Versions of the packages that it depends on.

    Attributes:
        record: What training.json holds: `config`, `provenance`, and what is added later.

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
        drafts = f".{SETTINGS}.*.tmp"  # what a run that was killed at its very beginning leaves
        if path.is_dir() and any(not entry.match(drafts) for entry in path.iterdir()):
            raise InputError("folder", str(path), "a new folder, or one of a training run")
        origin = provenance(command, seed=config.seed, packages=dict(packages))
        self.record = {"config": self._config, "provenance": origin}
        self.write_record()

    def write_record(self) -> None:
        """Write training.json."""
        write_atomically(self.path / SETTINGS, json.dumps(self.record, indent=1) + "\n")

    def read_checkpoint(self) -> Checkpoint | None:
        """Read the last checkpoint of this run, if there is one.

        Raises:
            InputError: It is not whole, or of a run with other settings.
        """
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        checkpoint = Checkpoint.read(path)
        if checkpoint.facts.get("config") != self._config:
            raise InputError(str(path), "of a run with other settings", "that of this run; remove it to begin anew")
        return checkpoint

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            former, _ = dict(record["config"]), dict(record["provenance"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(str(path), str(error), "the settings of a training run") from error
        changed = [name for name in self._config if former.get(name) != self._config[name]]
        if changed:
            raise InputError(changed[0], self._config[changed[0]], f"{former.get(changed[0])}, as in {path}")
        return record
