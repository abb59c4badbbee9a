"""The pictures of a run that `simulate` draws: a Gantt chart, and a moving one."""

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.simulator import Policy, Result, State, simulate
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli.progress import counting

CHART_FORMS = ("png", "svg", "pdf")
HOUR_S = 3600.0

PicturesOption = Annotated[
    str | None,
    typer.Option(
        "--pictures",
        metavar="FORMS",
        help="Draw the costs, and the cheapest policy's first run: svg, png or pdf, or several, separated by commas.",
    ),
]


def picture_forms(text: str | None) -> tuple[str, ...]:
    forms = () if text is None else tuple(dict.fromkeys(form.strip().lower() for form in text.split(",")))
    if not set(forms) <= set(CHART_FORMS):
        raise InputError("--pictures", text, "svg, png or pdf, or several, separated by commas")
    return forms


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """What to draw of a run, and where."""

    gantt: Annotated[
        str | None,
        typer.Option("--gantt", metavar="FILE", help="Draw the run as a Gantt chart: a .png, .svg or .pdf file."),
    ] = None
    start: Annotated[
        float | None, typer.Option("--from", metavar="HOURS", help="Where the Gantt chart begins [h].")
    ] = None
    end: Annotated[float | None, typer.Option("--to", metavar="HOURS", help="Where the Gantt chart ends [h].")] = None
    nodes: Annotated[
        str | None, typer.Option("--show-nodes", metavar="NUMBERS", help="Nodes on the Gantt chart: 0-3, or 0,3,5.")
    ] = None
    jobs: Annotated[
        str | None, typer.Option("--show-jobs", metavar="NUMBERS", help="Jobs on the Gantt chart: 0-3, or 0,3,5.")
    ] = None

    def check(self) -> None:
        if self.gantt is not None:
            if Path(self.gantt).suffix[1:].lower() not in CHART_FORMS:
                raise InputError("--gantt", self.gantt, "the name of a .png, .svg or .pdf file")
            _check_place("--gantt", self.gantt)
            import_module("gpusched_env.rendering.gantt")
        start, end = self.start, self.end
        given = {"--from": start, "--to": end, "--show-nodes": self.nodes, "--show-jobs": self.jobs}
        for name, value in given.items():
            if value is not None and self.gantt is None:
                raise InputError(name, value, "nothing without --gantt FILE")
        if start is not None and start < 0:
            raise InputError("--from", start, "hours since the beginning, at least 0")
        if end is not None and end <= (start or 0.0):
            raise InputError("--to", end, f"hours since the beginning, more than {start or 0.0:g}")

    def draw(self, result: Result) -> bytes:
        rendering: Any = import_module("gpusched_env.rendering")
        start, end = self.start, self.end
        last_h = float(result.completion_s.max()) / HOUR_S
        if start is not None and start >= last_h:
            raise InputError("--from", start, f"hours before the end of the run, {last_h:.6g}")
        window = None if start is None and end is None else ((start or 0.0) * HOUR_S, end and end * HOUR_S)
        figure = rendering.gantt_figure(
            result,
            window_s=window,
            nodes=_numbers("--show-nodes", self.nodes, len(result.instance.nodes)),
            jobs=_numbers("--show-jobs", self.jobs, len(result.instance.jobs)),
        )
        content: bytes = rendering.figure_bytes(figure, Path(str(self.gantt)).suffix[1:].lower())
        return content


@dataclass(frozen=True, slots=True)
class AnimationOptions:
    """The moving picture of a run."""

    gif: Annotated[
        str | None,
        typer.Option("--gif", metavar="FILE", help="Draw the run as a moving picture: a .gif, .mp4 or .webm file."),
    ] = None
    fps: Annotated[float, "Pictures per second of --gif."] = 8.0
    frames: Annotated[
        int, typer.Option("--frames", min=1, help="Most pictures of --gif; there is one for each decision round.")
    ] = 150

    def check(self) -> None:
        if self.gif is None:
            return
        animation: Any = import_module("gpusched_env.rendering.frames")
        if Path(self.gif).suffix.lower() not in animation.FORMS:
            raise InputError("--gif", self.gif, "the name of a .gif, .mp4 or .webm file")
        _check_place("--gif", self.gif)
        animation.form_of(self.gif)
        if not 0.0 < self.fps <= animation.MOST_FPS:
            raise InputError("--fps", self.fps, f"a number above 0 and at most {animation.MOST_FPS:g}")

    def write(self, path: str, instance: Instance, policy: Policy, result: Result) -> None:
        """Run the policy again, which repeats to the last bit, and draw its rounds; the last picture has all of it."""
        animation: Any = import_module("gpusched_env.rendering.frames")
        rendering: Any = import_module("gpusched_env.rendering")
        frames, pictures = rendering.GanttFrames(policy.name), list[Any]()
        rounds = set(animation.rounds_to_show(result.rounds, self.frames))
        count = 0
        with counting("drawing", len(rounds) + 1, passing=True) as bar:

            def draw(state: State) -> None:
                nonlocal count
                count += 1
                if count in rounds:
                    pictures.append(frames.draw(state))
                    bar.advance()

            simulate(instance, policy, seed=result.seed, record=True, on_round=draw)
            bar.say("writing")
            animation.write_animation(path, [*pictures, rendering.gantt_rgb(result)], self.fps)
            bar.advance()


def _check_place(option: str, file: str) -> None:
    folder = Path(file).absolute().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(option, file, "a file in a folder that is there and can be written")


def _numbers(option: str, text: str | None, count: int) -> list[int] | None:
    if text is None:
        return None
    numbers = parse_seeds(text, option)
    for number in numbers:
        if number >= count:
            raise InputError(option, text, f"numbers from 0 to {count - 1}, such as 0-3 or 0,3,5")
    return list(numbers)
