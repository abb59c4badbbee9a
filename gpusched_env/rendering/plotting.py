"""All imports of matplotlib, and of Pillow, which it depends on; no figure is kept in global state."""

from __future__ import annotations

import io
import re

from gpusched_env.errors import InputError, MissingExtraError

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


NAME = "gpusched"
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": NAME},
    "svg": {"Date": None, "Creator": NAME},
    "pdf": {"CreationDate": None, "Creator": NAME, "Producer": NAME},
}
"""Metadata of the file beside the figure, by form: no date, so that equal figures make equal files."""


_DECIMALS = re.compile(r"-?\d+\.\d{3,}")


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Return the figure as the content of a file, `png`, `svg` or `pdf`; equal figures give equal content.

    Raises:
        InputError: It is another form.
    """
    if form not in METADATA:
        raise InputError("form", form, f"one of {', '.join(METADATA)}")
    content = io.BytesIO()
    # Names in an SVG file are random without a salt; text of a PDF stays text with fonts of type 42.
    with rc_context(
        {"svg.hashsalt": NAME, "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"], "pdf.fonttype": 42}
    ):
        figure.savefig(content, format=form, metadata=METADATA[form])
    if form == "svg":  # a hundredth of a point is enough; files are half as large
        return _DECIMALS.sub(
            lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), content.getvalue().decode()
        ).encode()
    return content.getvalue()
