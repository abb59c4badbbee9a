"""What a report page is made of."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.simulator import Result
    from gpusched_experiments.page.figure import Drawing
    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.table import Table


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that was drawn before.

    Attributes:
        name: Name of its file.
        content: The file's content: SVG or PNG.
    """

    name: str
    content: bytes

    def __post_init__(self) -> None:
        if self.kind not in {"svg", "png"}:
            raise InputError("name", self.name, "the name of an .svg or .png file")

    @property
    def kind(self) -> str:
        """Give the name's ending, in small letters and without the dot."""
        return self.name.rpartition(".")[2].lower()

    @property
    def source(self) -> str:
        """Give the picture as an address of an image (`data:`)."""
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
    drawings: tuple[Drawing, ...] = ()
    marked: str = ""
    modelled: tuple[str, ...] = ()
    not_claimed: str = ""
    scenario: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = dict.fromkeys(run.policy for run in self.runs)
        if names and self.reference not in names:
            raise InputError("reference", self.reference, f"one of the policies compared: {', '.join(names)}")
