"""The progress bars of the commands, on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from gpusched_experiments.cli.terminal import progress_output
from gpusched_experiments.report.experiment import Experiment

EACH_S = 10.0  # between two lines where there is no terminal


class Bar:
    """One bar, with a text that says what is being done; now and then a line where no terminal could show a bar."""

    def __init__(self, progress: Progress, text: str, total: int | None = None) -> None:
        self.progress, self._task = progress, progress.add_task(text, total=total)
        self._last_s = monotonic()

    def advance(self) -> None:
        self.progress.advance(self._task)
        self._tell()

    def say(self, text: str) -> None:
        self.progress.update(self._task, description=text)

    def show(self, done: float, total: float | None = None, text: str | None = None) -> None:
        self.progress.update(self._task, completed=done, total=total, description=text)
        self._tell()

    def note(self, text: str) -> None:
        self.progress.console.print(escape(text), soft_wrap=True)

    def _tell(self) -> None:
        if self.progress.console.is_terminal or monotonic() - self._last_s < EACH_S:
            return
        self._last_s = monotonic()
        state = next(each for each in self.progress.tasks if each.id == self._task)
        of = "" if state.total is None else f" of {state.total:,.0f}"
        self.note(f"{state.description}: {state.completed:,.0f}{of}")


def count_bar(text: str, total: int | None = None, *, passing: bool = False) -> Bar:
    """Make a bar that counts runs, or whatever there are few of; if `passing`, it goes when it is done.

    It is not shown before its `progress` is started.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = progress_output()
    hidden = passing and not console.is_terminal
    return Bar(Progress(*columns, console=console, transient=passing, disable=hidden), text, total)


def decisions_bar(unit: str = "") -> Bar:
    counts = TextColumn(f"{{task.completed:,.0f}}{unit}")
    columns = (BarColumn(), counts, TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    return Bar(Progress(*columns, console=progress_output()), "starting")


@contextmanager
def counting(text: str, total: int | None, *, passing: bool = False) -> Iterator[Bar]:
    """Show a bar that counts until the end of the body; then it has its first text again, or goes if `passing`."""
    bar = count_bar(text, total, passing=passing)
    with bar.progress:
        yield bar
        bar.say(text)


class ExperimentWatcher:
    """Shows a bar that counts the runs, and notes above it."""

    def __init__(self) -> None:
        self._bar = count_bar("")

    @classmethod
    @contextmanager
    def shown(cls) -> "Iterator[ExperimentWatcher]":
        watcher = cls()
        try:
            yield watcher
        finally:
            if watcher._bar.progress.live.is_started:
                watcher._bar.progress.stop()

    def note(self, text: str) -> None:
        self._bar.note(f"note: {text}")

    def begin(self, experiment: Experiment, runs: int, finished: int) -> None:
        self.start(experiment.name, runs, finished)

    def start(self, text: str, runs: int, finished: int) -> None:
        self._bar.show(finished, runs, text)
        self._bar.progress.start()

    def finished(self) -> None:
        self._bar.advance()
