"""Rendering: a run as a Gantt chart of GPUs over time, and as text.

`render_text` needs nothing beside the core; all else needs the extra `plot` and imports matplotlib when it is first
asked for.
"""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_env.errors import MissingExtraError
    from gpusched_env.rendering.frames import GanttFrames, render_gantt_rgb
    from gpusched_env.rendering.gantt import gantt_figure, gantt_rgb
    from gpusched_env.rendering.plotting import figure_bytes
    from gpusched_env.rendering.text import render_text

__all__ = [
    "GanttFrames",
    "MissingExtraError",
    "figure_bytes",
    "gantt_figure",
    "gantt_rgb",
    "render_gantt_rgb",
    "render_text",
]

__getattr__ = lazy_names(__name__, __file__)
