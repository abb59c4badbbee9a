"""A figure of the page: what plotly draws, as plain data, and the words that belong to it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, TypeAlias

Trace: TypeAlias = dict[str, Any]
"""A trace of plotly, as its schema has it; a text `var:NAME` stands for the page's colour of this name, and
`hue:#RRGGBB` for a colour that is lighter on dark ground."""

HOVER = "%{hovertext}<extra></extra>"
"""The template of marks that say their own text."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Rectangles of one look, which are drawn as one path: thousands of shapes would be slow.

    Attributes:
        edges: Left, right, upper and lower edges, a list each.
        look: How plotly fills and names them: fields of a shape.
        texts: What is shown where the pointer is in one, lines of plain text; none if empty.
        labels: What is written in those that have room for it; nothing if empty.
        ink: The colour of the labels.
    """

    edges: list[list[float]]
    look: dict[str, Any]
    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    ink: str = "var:ink"


@dataclass(frozen=True, slots=True)
class View:
    """One drawing of a figure that has several to choose from.

    Attributes:
        label: What the choice is called.
        traces: What is drawn.
        layout: plotly's layout; axes get their colours and fonts from the page.
        height: Its height [pixels].
        boxes: Rectangles below the traces, the later ones on top.
    """

    label: str
    traces: tuple[Trace, ...]
    layout: dict[str, Any]
    height: int = 420
    boxes: tuple[Boxes, ...] = ()

    def spec(self) -> dict[str, Any]:
        """Give what the page's script draws."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure.

    Attributes:
        name: Its name in the page: small letters and dashes.
        title: Its heading.
        caption: What it shows and how to read it, in sentences.
        alt: What it says, for those who do not see it.
        views: Its drawings, the first shown at first.
        choice: What is chosen among them, such as "policy"; not shown with one view.
        least_width: Width below which it scrolls [pixels].
    """

    name: str
    title: str
    caption: str
    alt: str
    views: tuple[View, ...]
    choice: str = ""
    least_width: int = 0


def plot_text(text: str) -> str:
    """Write a text as plotly shows it as it is: it takes some tags of HTML, and names come from files."""
    return escape(text, quote=False)


def script_json(value: object) -> str:
    """Write a value as JSON that can stand in a `script` element: nothing in it ends the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def short(values: Any, digits: int = 6) -> list[float]:
    """Give numbers as the page keeps them, to so many decimals."""
    return [round(float(value), digits) for value in values]
