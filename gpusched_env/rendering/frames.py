"""Frames: pictures of a run while it goes on, one for each decision round, and animations of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.files import write_atomically
from gpusched_env.rendering.colours import INK, JOB_COLOURS, LATE, PAPER, SUBTLE, WAITING
from gpusched_env.rendering.gantt import FRAME_DPI, FRAME_INCHES, GanttDrawing, pixels_of, resting_parts, scene_of
from gpusched_env.rendering.gantt_marks import Scene
from gpusched_env.rendering.plotting import Figure, Image
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at


class GanttFrames:
    """Draws frames of runs, and keeps the parts that stay the same: nodes, scales, grid and legend.

    Copies and pickles of it start without a drawing.

    Args:
        policy: Name of the policy, for the title; by default it is not named.

    Attributes:
        note: A line on the present round, beside costs and jobs, such as the controls of an agent.
    """

    def __init__(self, policy: str = "") -> None:
        self.policy, self.note = policy, ""
        self._drawing: GanttDrawing | None = None
        self._parts: tuple[object, ...] = ()
        self._background: Any = None
        self._state: State | None = None
        self._round: tuple[object, ...] = ()
        self._frame: NDArray[np.uint8] = np.zeros((0, 0, 3), np.uint8)

    def __reduce__(self) -> tuple[type[GanttFrames], tuple[str]]:
        return GanttFrames, (self.policy,)

    def frame(self, state: State) -> NDArray[np.uint8]:
        """Return the frame of the present round: a second call in a round returns the frame of the first.

        Returns:
            Red, green and blue, shape (720, 1280, 3), uint8.
        """
        count = state.board.count
        present = int(count[at.ROUND]), int(count[at.DONE]), int(count[at.SUBMITTED]), self.note
        if state is not self._state or present != self._round:
            self._frame, self._state, self._round = self.draw(state), state, present
        return self._frame.copy()

    def draw(self, state: State) -> NDArray[np.uint8]:
        """Draw the state as it is now; see `frame`."""
        scene = scene_of(state, FRAME_INCHES, FRAME_DPI)
        scene = replace(scene, whole=replace(scene.whole, policy=self.policy), note=self.note)
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

    def _rest(self, scene: Scene) -> GanttDrawing:
        parts = resting_parts(scene)
        if self._drawing is None or parts != self._parts:
            self._drawing, self._parts = GanttDrawing(scene), parts
            self._drawing.canvas.draw()  # type: ignore[no-untyped-call]
            self._background = self._drawing.canvas.copy_from_bbox(self._drawing.figure.bbox)  # type: ignore[no-untyped-call]
        else:
            self._drawing.canvas.restore_region(self._background)  # type: ignore[no-untyped-call]
        return self._drawing


def render_gantt_rgb(state: State) -> NDArray[np.uint8]:
    """Draw the state of a run as a frame of a video: shape (720, 1280, 3), uint8.

    It shows nothing of jobs that are not submitted, not even their number. `GanttFrames` draws many frames of
    one run faster.
    """
    return GanttFrames().draw(state)


def _artists(figure: Figure) -> Iterator[Any]:
    for axes in figure.axes:
        yield from sorted(axes.get_children(), key=lambda artist: artist.get_zorder())
    yield from figure.texts


FORMS = (".gif", ".mp4", ".webm")
LAST_S = 3.0  # how long the last picture stays [s]
MOST_FPS = 50.0  # the limit of GIF
_CODECS = {".mp4": "libx264", ".webm": "libvpx-vp9"}


def form_of(path: str) -> str:
    """Return the ending of the file's name, which sets the form, and check that this form can be written."""
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError("file", path, f"a name that ends in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    if form in _CODECS:
        _video_clips()
    return form


def rounds_to_show(rounds: int, most: int) -> list[int]:
    return sorted({round(number) for number in np.linspace(1, rounds, min(rounds, most))})


def write_animation(path: str, frames: Iterable[NDArray[np.uint8]], fps: float) -> None:
    """Write frames as a moving picture; the last one stays for some seconds.

    Args:
        path: A file whose name ends in `.gif`, `.mp4` or `.webm`; an existing file is replaced.
        frames: Pictures of one size, uint8 (H, W, 3), at least one.
        fps: Frames per second, above 0 and at most 50.
    """
    form = form_of(path)
    if not 0.0 < fps <= MOST_FPS:
        raise InputError("fps", fps, f"a number above 0 and at most {MOST_FPS:g}")
    write_atomically(Path(path), _gif(frames, fps) if form == ".gif" else _video(frames, fps, form))


def _gif(frames: Iterable[NDArray[np.uint8]], fps: float) -> bytes:
    palette = _palette()
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    each_ms, content = 1000.0 / fps, io.BytesIO()
    times_ms = [each_ms] * (len(pictures) - 1) + [max(each_ms, 1000.0 * LAST_S)]
    pictures[0].save(content, "GIF", save_all=True, append_images=pictures[1:], duration=times_ms, loop=0)
    return content.getvalue()


def _video(frames: Iterable[NDArray[np.uint8]], fps: float, form: str) -> bytes:
    pictures = list(frames)
    pictures += [pictures[-1]] * round(LAST_S * fps)
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        file = Path(folder) / f"run{form}"
        clip = _video_clips()(pictures, fps=fps)
        clip.write_videofile(str(file), codec=_CODECS[form], audio=False, logger=None)
        clip.close()
        return file.read_bytes()


def _video_clips() -> Any:
    try:
        return import_module("moviepy").ImageSequenceClip
    except ModuleNotFoundError as error:
        raise MissingExtraError("moviepy", "video", "videos (a .gif does not)") from error


def _palette() -> Any:
    """Make a palette with the charts' colours and their mixtures, so that one colour is the same in all frames."""
    colours = [_mix(INK, PAPER, part / 31) for part in range(32)]
    for colour in (*JOB_COLOURS, LATE, WAITING, SUBTLE):
        colours += [_mix(colour, PAPER, part) for part in (0.0, 0.2, 0.4, 0.55, 0.7, 0.85)]
        colours += [_mix(colour, INK, part) for part in (0.25, 0.45, 0.7)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(list(chain.from_iterable(colours)))
    return palette


def _mix(colour: str, other: str, part: float) -> Iterator[int]:
    for place in (1, 3, 5):
        first, second = int(colour[place : place + 2], 16), int(other[place : place + 2], 16)
        yield round(first + part * (second - first))
