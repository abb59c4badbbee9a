"""A watcher of experiments that keeps what it is given."""

from dataclasses import dataclass, field


@dataclass
class Watching:
    """Keeps notes and counts runs; with `stop_after`, raises `KeyboardInterrupt` after so many."""

    notes: list[str] = field(default_factory=list)
    begun: list[tuple[str, int, int]] = field(default_factory=list)
    ran: int = 0
    stop_after: int = 10**9

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, experiment, runs: int, finished: int) -> None:
        self.begun.append((experiment.name, runs, finished))

    def finished(self) -> None:
        self.ran += 1
        if self.ran >= self.stop_after:
            raise KeyboardInterrupt
