"""The page, put together: one HTML file with its style, its scripts, and where it comes from."""

from __future__ import annotations

import base64
from html import escape
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import MissingExtraError
from gpusched_env.rendering import palette
from gpusched_env.rendering.timeline import Timeline
from gpusched_experiments.page.figure import script_json
from gpusched_experiments.page.figures.cost import cost_drawing
from gpusched_experiments.page.figures.gantt import gantt_drawing
from gpusched_experiments.page.figures.rates import completion_drawing
from gpusched_experiments.page.figures.savings import savings_drawing
from gpusched_experiments.page.figures.usage import usage_drawing
from gpusched_experiments.page.markdown_html import markdown_html
from gpusched_experiments.page.verdict import costs_of, verdict
from gpusched_experiments.report.statistics import summarise
from gpusched_experiments.report.table import html_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_experiments.page.figure import Drawing
    from gpusched_experiments.page.report_data import Picture, ReportData
    from gpusched_experiments.report.table import Table

LIGHT = {
    "ink": palette.INK, "subtle": palette.SUBTLE, "grid": palette.GRID, "stripes": palette.STRIPES,
    "paper": palette.PAPER, "late": palette.LATE, "energy": palette.ENERGY, "tardiness": palette.TARDINESS,
    "link": "#1F5F93", "best": "#E7F2E9", "veil": "rgba(34,38,43,0.45)",
    "lateness": "rgba(200,16,46,0.4)",
}  # fmt: skip
DARK = {
    "ink": "#E6E9ED", "subtle": "#A2ABB5", "grid": "#363D45", "stripes": "#20252B", "paper": "#171A1E",
    "late": "#FF5C72", "energy": "#5C9CCF", "tardiness": "#E0717E", "link": "#86BFEA", "best": "#1D3527",
    "veil": "rgba(10,12,14,0.55)", "lateness": "rgba(255,60,90,0.45)",
}  # fmt: skip


def style_text() -> str:
    """Give the page's style: colours as variables, dark ones where the reader prefers that, light ones on paper."""
    light, dark = _variables(LIGHT), _variables(DARK)
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not(.on-paper){{{dark}}}}}\n{_asset('report.css')}"
    )


def script_text() -> str:
    """Give the page's own script, which draws the figures and sorts the tables."""
    return _asset("report.js")


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _asset(name: str) -> str:
    return files("gpusched_experiments.page").joinpath("assets", name).read_text(encoding="utf-8")


def plotly_script() -> str:
    """Give the whole of plotly.js, as it can stand in a `script` element.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    try:
        offline = import_module("plotly.offline")
    except ModuleNotFoundError as error:
        raise MissingExtraError("plotly", "report", "report pages") from error
    script: str = offline.get_plotlyjs()
    return script.replace("</script", r"<\/script")


SHOWN_SEEDS = 12  # above it only the first and the last are named


def origin_html(provenance: Mapping[str, Any]) -> str:
    """Write the section; empty if nothing is known."""
    rows = [(name, value) for name, value in _rows(provenance) if value]
    if not rows:
        return ""
    lines = "\n".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows)
    return f"<h2>Where it comes from</h2>\n<dl>\n{lines}\n</dl>"


def seeds_text(seeds: object) -> str:
    """Write seeds as options take them: `0-19`, or `0,3,5`."""
    if not isinstance(seeds, list | tuple) or not all(isinstance(seed, int) for seed in seeds):
        return str(seeds or "")
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    if len(seeds) > SHOWN_SEEDS:
        return f"{len(seeds)} from {min(seeds)} to {max(seeds)}"
    return ",".join(map(str, seeds))


def _rows(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List what is known, written as HTML."""
    facts = provenance.get("facts") if isinstance(provenance.get("facts"), dict) else {}
    packages = provenance.get("packages") if isinstance(provenance.get("packages"), dict) else {}
    command = str(provenance.get("command") or "")
    seeds = facts.get("seeds", facts.get("seed", "")) if isinstance(facts, dict) else ""
    versions = [f"{name} {version}" for name, version in (packages or {}).items() if version]
    where = [str(provenance.get("platform") or ""), str((facts or {}).get("machine") or "")]
    return [
        ("command", f"<code>{escape(command)}</code>" if command else ""),
        ("seeds", escape(seeds_text(seeds) if seeds != 0 else "0")),
        (
            "versions",
            escape(", ".join([*versions, f"Python {provenance['python']}"] if "python" in provenance else versions)),
        ),
        ("machine", escape(", ".join(part for part in where if part))),
        ("made", escape(str(provenance.get("made_utc") or "").replace("T", " ").replace("+00:00", " UTC"))),
    ]


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
