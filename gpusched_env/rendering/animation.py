"""A run as a moving picture: one frame for each decision round, in a GIF, or a video where there is an encoder."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.files import write_atomically
from gpusched_env.rendering.palette import INK, JOB_COLOURS, LATE, PAPER, SUBTLE, WAITING
from gpusched_env.rendering.plotting import Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

FORMS = (".gif", ".mp4", ".webm")
LAST_S = 3.0  # how long the last picture stays [s]
MOST_FPS = 50.0  # what a GIF can say
_CODECS = {".mp4": "libx264", ".webm": "libvpx-vp9"}


def form_of(path: str) -> str:
    """Give the ending of the file's name that says what to write, and check that it can be written.

    Raises:
        InputError: It is none of `FORMS`.
        MissingExtraError: It is a video, and moviepy is not installed.
    """
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError("file", path, f"a name that ends in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    if form in _CODECS:
        _video_clips()
    return form


def rounds_to_show(rounds: int, most: int) -> list[int]:
    """Choose the rounds to draw, numbered from 1: at most `most`, evenly, with the first and the last."""
    return sorted({round(number) for number in np.linspace(1, rounds, min(rounds, most))})


def write_animation(path: str, frames: Iterable[NDArray[np.uint8]], fps: float) -> None:
    """Write frames as a moving picture; the last one stays for some seconds.

    Args:
        path: A file whose name ends in `.gif`, `.mp4` or `.webm`; what is there is replaced.
        frames: Pictures of one size, uint8 (H, W, 3), at least one.
        fps: Frames per second, above 0 and at most 50.

    Raises:
        InputError: A parameter is out of its range.
        MissingExtraError: It is a video, and moviepy is not installed.
    """
    form = form_of(path)
    if not 0.0 < fps <= MOST_FPS:
        raise InputError("fps", fps, f"a number above 0 and at most {MOST_FPS:g}")
    write_atomically(Path(path), _gif(frames, fps) if form == ".gif" else _video(frames, fps, form))


def _gif(frames: Iterable[NDArray[np.uint8]], fps: float) -> bytes:
    palette = _palette()
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    each_ms = 1000.0 / fps
    content = io.BytesIO()
    pictures[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=[each_ms] * (len(pictures) - 1) + [max(each_ms, 1000.0 * LAST_S)],
        loop=0,
    )
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
    """Mix two colours: `part` of the other, and the rest of the first."""
    for place in (1, 3, 5):
        first, second = int(colour[place : place + 2], 16), int(other[place : place + 2], 16)
        yield round(first + part * (second - first))
