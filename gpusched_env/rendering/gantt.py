"""A run as a Gantt chart: GPUs over time, grouped by node, above the busy GPUs and the waiting jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.rendering.frames import FRAME_DPI, FRAME_INCHES, GanttFrames, pixels_of, scene_of
from gpusched_env.rendering.gantt_drawing import Drawing, Scene, usual_height
from gpusched_env.rendering.plotting import FigureCanvasAgg
from gpusched_env.rendering.window import Window, window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.rendering.plotting import Figure
    from gpusched_env.simulator import Result, State


def gantt_figure(
    run: State | Result,
    *,
    window_s: tuple[float, float | None] | None = None,
    nodes: Sequence[int] | None = None,
    jobs: Sequence[int] | None = None,
    size_inches: tuple[float, float] | None = None,
    dpi: int = 150,
    title: str | None = None,
) -> Figure:
    """Draw a run, finished or going on, as a Gantt chart.

    A bar is an interval in which a job held GPUs; its height is their number, its colour and label the job. A shared
    GPU is shaded, and split by share among its jobs. A job on several nodes has a bar on each of them, tied by a dashed
    line. Bars of late jobs have a red edge and are hatched red after the due date. Triangles mark due dates, diamonds
    and dotted lines changes of configuration or place and pauses. Of a run that goes on, the last stretch is shown.

    Args:
        run: A result with its intervals, or a state in or just after a decision round.
        window_s: What to show of it: from when [s], and until when [s] (None: the end).
        nodes: Numbers of the nodes to show; all by default.
        jobs: Numbers of the jobs to show; all by default.
        size_inches: Width and height [inches]; by default the height grows with the number of GPUs, to 15 inches.
        dpi: Pixels per inch.
        title: Title; by default it names the policy and the size of the cluster.

    Returns:
        A figure with an Agg canvas, which belongs to no global state.

    Raises:
        InputError: The window is empty, or there is no such node or job.
    """
    scene = _scene(run, window_s, nodes, jobs, size_inches, dpi, title)
    drawing = Drawing(scene)
    drawing.draw(scene)
    return drawing.figure


def gantt_rgb(
    run: State | Result, *, size_inches: tuple[float, float] = FRAME_INCHES, dpi: int = FRAME_DPI
) -> NDArray[np.uint8]:
    """Draw a run as `gantt_figure` does, into an image of constant size.

    Returns:
        Red, green and blue, shape (H, W, 3), uint8; 720 by 1280 pixels by default.
    """
    canvas = FigureCanvasAgg(gantt_figure(run, size_inches=size_inches, dpi=dpi))
    canvas.draw()  # type: ignore[no-untyped-call]
    return pixels_of(canvas)


def render_gantt_rgb(state: State) -> NDArray[np.uint8]:
    """Draw the state of a run as a frame of a video: shape (720, 1280, 3), uint8.

    It shows nothing of jobs that are not submitted, not even how many there are. `GanttFrames` draws many frames of
    one run faster.
    """
    return GanttFrames().draw(state)


def _scene(
    run: State | Result,
    window_s: tuple[float, float | None] | None,
    nodes: Sequence[int] | None,
    jobs: Sequence[int] | None,
    size_inches: tuple[float, float] | None,
    dpi: float,
    title: str | None,
) -> Scene:
    every = range(len(run.instance.nodes))
    shown = tuple(every) if nodes is None else _numbers("nodes", nodes, len(every))
    height = usual_height(np.array([run.instance.nodes[node].gpus for node in shown]))
    scene = scene_of(run, size_inches or (13.0, height), dpi, None if window_s is None else _window(run, *window_s))
    timeline = scene.timeline if nodes is None else scene.timeline.on_nodes(set(shown))
    if jobs is not None:
        timeline = timeline.of_jobs(set(_numbers("jobs", jobs, len(run.instance.jobs))))
    return Scene(timeline, scene.whole, scene.window, shown, scene.size_inches, dpi, title)


def _window(run: State | Result, start_s: float, end_s: float | None) -> Window:
    usual = window_of(run).end_s
    if end_s is None and start_s >= usual:
        raise InputError("window_s", start_s, f"a beginning before {usual:g}, where the chart ends")
    return Window(start_s, usual if end_s is None else end_s)


def _numbers(name: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    for number in given:
        if not 0 <= number < count:
            raise InputError(name, number, f"numbers from 0 to {count - 1}")
    if not given:
        raise InputError(name, list(given), "at least one number")
    return tuple(sorted(set(given)))
