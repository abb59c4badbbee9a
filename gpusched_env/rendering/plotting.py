"""The one door to matplotlib, and to Pillow, which comes with it; no figure is kept in global state."""

from __future__ import annotations

from gpusched_env.errors import MissingExtraError

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import FuncFormatter, MaxNLocator
    from PIL import Image
except ModuleNotFoundError as error:
    raise MissingExtraError("matplotlib", "plot", "charts") from error

__all__ = [
    "Axes",
    "ConstrainedLayoutEngine",
    "Figure",
    "FigureCanvasAgg",
    "FuncFormatter",
    "Image",
    "Line2D",
    "LineCollection",
    "MaxNLocator",
    "Patch",
    "PolyCollection",
    "rc_context",
    "withStroke",
]
