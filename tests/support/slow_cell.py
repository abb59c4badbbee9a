"""A cell that takes its time and leaves a trace, for tests of what is run where."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.run import Values


@dataclass(frozen=True, slots=True)
class SlowCell(Cell):
    """Adds its policy, seed and parent process to the file `trace`, and takes `seconds`, but only the first time."""

    seconds: float = 0.0
    trace: str = ""

    def run(self) -> Values:
        trace, name = Path(self.trace), f"{self.policy} {self.seed} "
        again = trace.exists() and any(line.startswith(name) for line in trace.read_text("utf-8").splitlines())
        with trace.open("a", encoding="utf-8") as file:
            file.write(f"{name}{os.getppid()}\n")
        time.sleep(0.0 if again else self.seconds)
        return super(SlowCell, self).run()
