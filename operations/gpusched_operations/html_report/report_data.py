"""What a report page is made of."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, TypeAlias

from gpusched_env.errors import InputError
from gpusched_env.simulator import Result
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.table import Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that was drawn before: the name of its file, and the file's content, SVG or PNG."""

    name: str
    content: bytes

    def __post_init__(self) -> None:
        if self.kind not in {"svg", "png"}:
            raise InputError("name", self.name, "the name of an .svg or .png file")

    @property
    def kind(self) -> str:
        """Return the name's ending, in small letters and without the dot."""
        return self.name.rpartition(".")[2].lower()

    @property
    def source(self) -> str:
        """Return the picture as an address of an image (`data:`)."""
        kind = "svg+xml" if self.kind == "svg" else self.kind
        return f"data:image/{kind};base64,{b64encode(self.content).decode('ascii')}"


@dataclass(frozen=True, slots=True, eq=False)
class ReportData:
    """All that a report says; what is empty is left out of the page.

    Attributes:
        title: Its title.
        question: What was compared, a sentence or a paragraph.
        tables: Its tables, the main one first.
        more_tables: Tables that stand below the figures.
        runs: The runs that are compared: every policy on the same seeds. The verdict and the figures of costs and
            savings are computed from them.
        reference: Name of the policy of `runs` that savings are measured against.
        recorded: Runs with their intervals, of one workload, a policy each: for the figures over time. May be empty.
        verdict: What to say first, a paragraph each; if empty, it is computed from the runs.
        page: More that stands between verdict and figures, as Markdown (`markdown_html`).
        pictures: Figures that were drawn before.
        drawings: Figures beside those that are made of the runs.
        marked: The row of each table, by its first column's text, that is marked; empty for the one that costs least.
        modelled: What is modelled, a sentence each.
        not_claimed: A policy of which, and against which, no saving is shown.
        scenario: The scenario as TOML.
        provenance: Where it all comes from, as `gpusched_env.provenance.provenance` says it.

    Raises:
        InputError: There are runs, and the reference is not one of their policies.
    """

    title: str
    question: str
    tables: tuple[Table, ...] = ()
    more_tables: tuple[Table, ...] = ()
    runs: tuple[RunSummary, ...] = ()
    reference: str = ""
    recorded: tuple[Result, ...] = ()
    verdict: tuple[str, ...] = ()
    page: str = ""
    pictures: tuple[Picture, ...] = ()
    drawings: tuple[HtmlDrawing, ...] = ()
    marked: str = ""
    modelled: tuple[str, ...] = ()
    not_claimed: str = ""
    scenario: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = dict.fromkeys(run.policy for run in self.runs)
        if names and self.reference not in names:
            raise InputError("reference", self.reference, f"one of the policies compared: {', '.join(names)}")


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
class ReportView:
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
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HtmlDrawing:
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
    views: tuple[ReportView, ...]
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
    return [round(float(value), digits) for value in values]
