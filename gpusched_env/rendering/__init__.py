"""Rendering: a run as a Gantt chart of GPUs over time, and as text.

`render_text` needs nothing beside the core; `render_gantt_rgb`, `gantt_rgb` and `gantt_figure` need the extra `plot`
and import matplotlib when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import MissingExtraError
from gpusched_env.rendering.text import render_text

if TYPE_CHECKING:
    from gpusched_env.rendering.gantt import gantt_figure, gantt_rgb, render_gantt_rgb

__all__ = ["MissingExtraError", "gantt_figure", "gantt_rgb", "render_gantt_rgb", "render_text"]

_NEED_MATPLOTLIB = ("gantt_figure", "gantt_rgb", "render_gantt_rgb")


def __getattr__(name: str) -> Any:
    """Import what needs matplotlib when it is first asked for (PEP 562).

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if name in _NEED_MATPLOTLIB:
        return getattr(import_module("gpusched_env.rendering.gantt"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
