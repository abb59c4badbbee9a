"""Figures as the contents of files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.rendering.plotting import rc_context

if TYPE_CHECKING:
    from gpusched_env.rendering.plotting import Figure

NAME = "gpusched"
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": NAME},
    "svg": {"Date": None, "Creator": NAME},
    "pdf": {"CreationDate": None, "Creator": NAME, "Producer": NAME},
}
"""What stands in the file beside the figure, by form: no date, so that equal figures make equal files."""


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Give the figure as the content of a file; equal figures give equal content.

    Args:
        figure: The figure.
        form: `png`, `svg` or `pdf`.

    Raises:
        InputError: It is another form.
    """
    if form not in METADATA:
        raise InputError("form", form, f"one of {', '.join(METADATA)}")
    content = io.BytesIO()
    # Names in an SVG file are random without a salt; text of a PDF stays text with fonts of type 42.
    with rc_context({"svg.hashsalt": NAME, "pdf.fonttype": 42}):
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()
