"""The page, put together: one HTML file with all that it needs in it."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

from gpusched_env.rendering.timeline import Timeline
from gpusched_experiments.page.figure import script_json
from gpusched_experiments.page.figures.completion import completion_drawing
from gpusched_experiments.page.figures.cost import cost_drawing
from gpusched_experiments.page.figures.gantt import gantt_drawing
from gpusched_experiments.page.figures.savings import savings_drawing
from gpusched_experiments.page.figures.usage import usage_drawing
from gpusched_experiments.page.markdown_html import markdown_html
from gpusched_experiments.page.origin import origin_html
from gpusched_experiments.page.plotly_script import plotly_script
from gpusched_experiments.page.style import script_text, style_text
from gpusched_experiments.page.verdict import costs_of, verdict
from gpusched_experiments.report.statistics import summarise
from gpusched_experiments.report.table_formats import html_table

if TYPE_CHECKING:
    from gpusched_experiments.page.figure import Drawing
    from gpusched_experiments.page.report_data import Picture, ReportData
    from gpusched_experiments.report.table import Table

# The browser is told to load nothing: what is not in the page cannot be asked for.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
NO_INTERVALS = (
    "The figures over time are left out: the intervals of the runs are not in the folder. A comparison made anew has "
    "them, and so has a folder that gpusched simulate --out writes."
)


def report_html(data: ReportData) -> str:
    """Write the report as one HTML file that needs no network.

    Raises:
        MissingExtraError: There are figures to draw, and plotly is not installed.
    """
    drawings = _drawings(data)
    body = "\n".join(part for part in (*_head(data), *map(_figure, drawings), *_rest(data)) if part)
    scripts = ""
    if drawings:
        scripts = f"<script>{plotly_script()}</script>\n" + "\n".join(map(_data, drawings)) + "\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(data.title)}</title>\n<style>\n{style_text()}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{scripts}<script>\n{script_text()}</script>\n</body>\n</html>\n"
    )


def _drawings(data: ReportData) -> list[Drawing]:
    """Make the figures of what there is; runs over time by cost, but the reference first or second."""
    drawings: list[Drawing | None] = []
    if data.runs:
        drawings.append(cost_drawing(summarise(data.runs, data.reference), data.runs))
        drawings.append(_savings(data))
    recorded = data.recorded
    if data.runs:
        by_cost = sorted(recorded, key=lambda result: sum(costs_of(data.runs, result.policy)))
        recorded = (*by_cost[:1], *sorted(by_cost[1:], key=lambda result: result.policy != data.reference))
    if recorded:
        timelines = [Timeline.of(result) for result in recorded]
        drawings.append(usage_drawing(recorded, timelines))
        drawings.append(completion_drawing(recorded))
        drawings.append(gantt_drawing(recorded, timelines))
    return [drawing for drawing in (*drawings, *data.drawings) if drawing is not None]


def _savings(data: ReportData) -> Drawing | None:
    """Draw the savings, without the policy of which none are to be shown."""
    runs = [run for run in data.runs if run.policy != data.not_claimed]
    return (
        savings_drawing(runs, data.reference if data.reference != data.not_claimed else runs[0].policy)
        if runs
        else None
    )


def _head(data: ReportData) -> list[str]:
    """Write what stands above the figures: title, question, verdict, tables."""
    said = data.verdict or ((" ".join(verdict(data.runs, data.reference)),) if data.runs else ())
    paragraphs = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in said)
    return [
        f'<header>\n<h1>{escape(data.title)}</h1>\n<p class="question">{escape(data.question)}</p>\n</header>',
        f'<div class="verdict">{paragraphs}</div>' if paragraphs else "",
        _modelled(data),
        *(_table(table, data.marked) for table in data.tables),
        f"<section>{markdown_html(data.page)}</section>" if data.page else "",
        *map(_picture, data.pictures),
        f'<p class="note">{escape(NO_INTERVALS)}</p>' if data.runs and not data.recorded else "",
    ]


def _modelled(data: ReportData) -> str:
    sentences = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in data.modelled)
    return f"<h2>What is modelled</h2>\n<ul>\n{sentences}</ul>" if sentences else ""


def _table(table: Table, marked: str) -> str:
    label = f'role="region" aria-label="{escape(table.title)}" tabindex="0"'
    fragment, notes = html_table(table, marked or _cheapest(table)).split("</table>\n", 1)
    return f'<div class="scroll" {label}>\n{fragment}</table>\n</div>\n{notes}'


def _cheapest(table: Table) -> str | None:
    """Name the row with the least total cost; None if that is no column of the table."""
    rows = [(row["total_eur"], next(iter(row.values()))) for row in table.as_dicts() if "total_eur" in row]
    costs = [(cost, name) for cost, name in rows if isinstance(cost, float) and isinstance(name, str)]
    return min(costs)[1] if costs else None


def _figure(drawing: Drawing) -> str:
    name, title = drawing.name, escape(drawing.title)
    choice = ""
    if len(drawing.views) > 1:
        options = "".join(f"<option>{escape(view.label)}</option>" for view in drawing.views)
        choice = f'<p class="choice"><label>{escape(drawing.choice)}: <select>{options}</select></label></p>\n'
    height = drawing.views[0].height
    width = f"min-width:{drawing.least_width}px;" if drawing.least_width else ""
    words = f'role="img" aria-label="{escape(drawing.alt)}"'
    return (
        f'<h2 id="{name}">{title}</h2>\n<figure data-figure="{name}">\n{choice}<div class="scroll">'
        f'<div class="chart" {words} style="{width}min-height:{height}px"></div></div>\n'
        f"<figcaption>{escape(drawing.caption)}</figcaption>\n</figure>"
    )


def _data(drawing: Drawing) -> str:
    views = [view.spec() for view in drawing.views]
    return f'<script type="application/json" id="data-{drawing.name}">{script_json(views)}</script>'


def _picture(picture: Picture) -> str:
    """Embed the picture as an image, in which no script runs."""
    kind = "svg+xml" if picture.kind == "svg" else picture.kind
    content = base64.b64encode(picture.content).decode("ascii")
    name = escape(picture.name)
    return (
        f'<figure><img class="picture" alt="The figure {name}; its numbers stand in the tables of this page." '
        f'src="data:image/{kind};base64,{content}"><figcaption>{name}</figcaption></figure>'
    )


def _rest(data: ReportData) -> list[str]:
    """Write what stands below the figures: more tables, the scenario, and where it all comes from."""
    scenario = f"<details>\n<summary>Scenario (TOML)</summary>\n<pre>{escape(data.scenario)}</pre>\n</details>"
    return [
        "<h2>More tables</h2>" if data.more_tables else "",
        *(_table(table, data.marked) for table in data.more_tables),
        origin_html(data.provenance),
        scenario if data.scenario else "",
    ]
