"""Rendering: a run as a Gantt chart of GPUs over time, and as text.

`render_text` needs nothing beside the core; all else needs the extra `plot` and imports matplotlib when it is first
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import MissingExtraError
from gpusched_env.rendering.text import render_text

if TYPE_CHECKING:
    from gpusched_env.rendering.figure_files import figure_bytes
    from gpusched_env.rendering.frames import GanttFrames
    from gpusched_env.rendering.gantt import gantt_figure, gantt_rgb, render_gantt_rgb

__all__ = [
    "GanttFrames",
    "MissingExtraError",
    "figure_bytes",
    "gantt_figure",
    "gantt_rgb",
    "render_gantt_rgb",
    "render_text",
]

_NEED_MATPLOTLIB = {
    "GanttFrames": "frames",
    "figure_bytes": "figure_files",
    "gantt_figure": "gantt",
    "gantt_rgb": "gantt",
    "render_gantt_rgb": "gantt",
}


def __getattr__(name: str) -> Any:
    """Import what needs matplotlib when it is first asked for (PEP 562).

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if name in _NEED_MATPLOTLIB:
        return getattr(import_module(f"gpusched_env.rendering.{_NEED_MATPLOTLIB[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
