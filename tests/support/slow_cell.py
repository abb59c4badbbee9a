"""A cell that takes its time and leaves a trace, for tests of what is run where."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_experiments.report.cell import Cell

if TYPE_CHECKING:
    from gpusched_experiments.report.run import Values


@dataclass(frozen=True, slots=True)
class SlowCell(Cell):
    """Takes `seconds` longer; when it begins, adds its policy, seed and parent process to the file `trace`."""

    seconds: float = 0.0
    trace: str = ""

    def run(self) -> Values:
        with Path(self.trace).open("a", encoding="utf-8") as file:
            file.write(f"{self.policy} {self.seed} {os.getppid()}\n")
        time.sleep(self.seconds)
        return super(SlowCell, self).run()
