"""Frames: pictures of a run while it goes on, one for each decision round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.rendering.gantt_drawing import Drawing, Scene, resting_parts
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.rendering.window import Window, window_of
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpusched_env.rendering.plotting import Figure, FigureCanvasAgg
    from gpusched_env.simulator import Result, State

FRAME_INCHES, FRAME_DPI = (12.8, 7.2), 100
STUB = 0.012  # how far beyond the present what is held now is drawn, as a share of the axis


class GanttFrames:
    """Draws frames of runs, and keeps what rests from one to the next: nodes, scales, grid and legend.

    Copies and pickles of it are new and have drawn nothing.
    """

    def __init__(self) -> None:
        self._drawing: Drawing | None = None
        self._parts: tuple[object, ...] = ()
        self._background: Any = None
        self._state: State | None = None
        self._round: tuple[int, ...] = ()
        self._frame: NDArray[np.uint8] = np.zeros((0, 0, 3), np.uint8)

    def __reduce__(self) -> tuple[type[GanttFrames], tuple[()]]:
        """Keep no picture in copies."""
        return GanttFrames, ()

    def frame(self, state: State) -> NDArray[np.uint8]:
        """Give the frame of the present round: the one that was drawn when it was first asked for in this round.

        Returns:
            Red, green and blue, shape (720, 1280, 3), uint8.
        """
        count = state.board.count
        present = int(count[at.ROUND]), int(count[at.DONE]), int(count[at.SUBMITTED])
        if state is not self._state or present != self._round:
            self._frame, self._state, self._round = self.draw(state), state, present
        return self._frame.copy()

    def draw(self, state: State) -> NDArray[np.uint8]:
        """Draw the state as it is now; see `frame`."""
        scene = scene_of(state, FRAME_INCHES, FRAME_DPI)
        drawing = self._rest(scene)
        resting = {id(artist) for artist in _artists(drawing.figure)}
        drawing.draw(scene)
        moving = [artist for artist in _artists(drawing.figure) if id(artist) not in resting]
        for artist in moving:
            drawing.figure.draw_artist(artist)
        frame = pixels_of(drawing.canvas)
        for artist in moving:
            artist.remove()
        return frame

    def _rest(self, scene: Scene) -> Drawing:
        """Give the drawing with what rests in this scene, painted on its canvas."""
        parts = resting_parts(scene)
        if self._drawing is None or parts != self._parts:
            self._drawing, self._parts = Drawing(scene), parts
            self._drawing.canvas.draw()  # type: ignore[no-untyped-call]
            self._background = self._drawing.canvas.copy_from_bbox(self._drawing.figure.bbox)  # type: ignore[no-untyped-call]
        else:
            self._drawing.canvas.restore_region(self._background)  # type: ignore[no-untyped-call]
        return self._drawing


def scene_of(run: State | Result, size_inches: tuple[float, float], dpi: float, window: Window | None = None) -> Scene:
    """Say what a chart of all nodes and jobs shows, in the window given or the usual one."""
    shown = window or window_of(run)
    # Bars from before the window decide which GPUs those in it are drawn on.
    since_s = shown.start_s - shown.width_s
    timeline = Timeline.of(run, ahead_s=STUB * shown.width_s, since_s=since_s)
    return Scene(timeline, timeline, shown, tuple(range(len(run.instance.nodes))), size_inches, dpi)


def pixels_of(canvas: FigureCanvasAgg) -> NDArray[np.uint8]:
    """Give what is painted on the canvas: red, green and blue, (H, W, 3), uint8."""
    painted = np.asarray(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call]
    return painted[:, :, :3].copy()


def _artists(figure: Figure) -> Iterator[Any]:
    """List what is on the figure, in the order in which it is painted."""
    for axes in figure.axes:
        yield from sorted(axes.get_children(), key=lambda artist: artist.get_zorder())
    yield from figure.texts
