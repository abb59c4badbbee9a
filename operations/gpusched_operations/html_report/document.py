"""The page, put together: one HTML file with its style, its scripts, and where it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any

from gpusched_env.errors import MissingExtraError
from gpusched_env.rendering import colours as palette
from gpusched_env.rendering.timeline import Timeline
from gpusched_experiments.report.statistics import summarise
from gpusched_experiments.report.table import Table, html_table
from gpusched_operations.html_report.costs import cost_drawing, savings_drawing
from gpusched_operations.html_report.gantt import gantt_drawing
from gpusched_operations.html_report.over_time import completion_drawing, usage_drawing
from gpusched_operations.html_report.report_data import HtmlDrawing, ReportData, script_json
from gpusched_operations.html_report.verdict import costs_of, verdict

COLOURS = ("ink", "subtle", "grid", "stripes", "paper", "late", "energy", "tardiness")  # the other ones: report.css
SHOWN_SEEDS = 12  # above it only the first and the last are named
LONG = 100  # rows beyond which a table of a Markdown page is folded
NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(?=%|\s*\[|$)")


def report_html(data: ReportData) -> str:
    """Write the report as one HTML file that needs no network.

    Raises:
        MissingExtraError: Something that the extra `report` brings is not installed.
    """
    jinja2 = _needed("jinja2", "jinja2")
    assets = {path.name: path.read_text(encoding="utf-8") for path in files(__package__).joinpath("assets").iterdir()}
    settings = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, **settings)
    environment.filters["html_table"] = lambda table: html_table(table, data.marked or _cheapest(table))
    environment.filters["script_json"] = lambda views: script_json([view.spec() for view in views])
    page: str = environment.from_string(assets["page.html.j2"]).render(
        data=data,
        verdict=data.verdict or ((" ".join(verdict(data.runs, data.reference)),) if data.runs else ()),
        page=markdown_html(data.page) if data.page else "",
        drawings=_drawings(data),
        origin={name: value for name, value in _origin(data.provenance).items() if value},
        colours={name: getattr(palette, name.upper()) for name in COLOURS},
        style=assets["report.css"],
        script=assets["report.js"],
        plotly=plotly_script,
    )
    return page


def _needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, "report", "report pages") from error


def plotly_script() -> str:
    """Return the whole of plotly.js, as it can stand in a `script` element."""
    script: str = _needed("plotly.offline", "plotly").get_plotlyjs()
    return script.replace("</script", r"<\/script")


def markdown_html(text: str) -> str:
    """Write Markdown as HTML, everything escaped; headings begin at the second level, and long tables are folded.

    Links to other pages of the project are written as their text: the page stands alone. Numbers of tables are kept
    as `data-value`, by which they are sorted.
    """
    settings = {"html": False, "breaks": True, "xhtmlOut": False}
    parser = _needed("markdown_it", "markdown-it-py").MarkdownIt("commonmark", settings).enable("table")
    tokens = parser.disable(["code", "entity", "image", "autolink"]).parse(text)
    for token, content in zip(tokens, [*tokens[1:], None], strict=True):
        if token.tag == "h1":
            token.tag = "h2"
        elif token.type in {"th_open", "td_open"}:
            right = "right" in str(token.attrs.get("style", ""))
            token.attrs = {"scope": "col"} if token.tag == "th" else {}
            token.attrs |= {"class": "number"} if right else {}
            if token.tag == "td" and content is not None and (number := NUMBER.match(content.content)):
                token.attrs["data-value"] = repr(float(number.group().replace(",", "")))
        elif token.type == "inline":
            token.children = _links_to_the_web(token.children)
    html: str = parser.renderer.render(tokens, parser.options, {})
    return re.sub(r"<table>.*?</table>", _scrolled, html, flags=re.DOTALL)


def _links_to_the_web(tokens: list[Any]) -> list[Any]:
    kept, is_web = [], True
    for token in tokens:
        if token.type == "link_open":
            is_web = token.attrs["href"].startswith(("https://", "http://"))
        if is_web or token.type not in {"link_open", "link_close"}:
            kept.append(token)
    return kept


def _scrolled(match: re.Match[str]) -> str:
    rows, table = match[0].count("<tr>") - 1, f'<div class="scroll">{match[0]}</div>'
    return table if rows <= LONG else f"<details><summary>{rows} rows</summary>\n{table}\n</details>"


def seeds_text(seeds: object) -> str:
    """Write seeds as options take them: `0-19`, or `0,3,5`."""
    if not isinstance(seeds, list | tuple) or not all(isinstance(seed, int) for seed in seeds):
        return str(seeds or "")
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}-{seeds[-1]}"
    if len(seeds) > SHOWN_SEEDS:
        return f"{len(seeds)} from {min(seeds)} to {max(seeds)}"
    return ",".join(map(str, seeds))


def _origin(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return where the page comes from; empty texts for what is not known."""
    facts, packages = (value if isinstance(value, dict) else {} for value in map(provenance.get, ("facts", "packages")))
    seeds = facts.get("seeds", facts.get("seed", ""))
    versions = [f"{name} {version}" for name, version in packages.items() if version]
    where = [str(provenance.get("platform") or ""), str(facts.get("machine") or "")]
    return {
        "command": str(provenance.get("command") or ""),
        "seeds": seeds_text(seeds) if seeds != 0 else "0",
        "versions": ", ".join([*versions, f"Python {provenance['python']}"] if "python" in provenance else versions),
        "machine": ", ".join(part for part in where if part),
        "made": str(provenance.get("made_utc") or "").replace("T", " ").replace("+00:00", " UTC"),
    }


def _drawings(data: ReportData) -> list[HtmlDrawing]:
    """Make the figures of what there is; runs over time by cost, but the reference first or second."""
    drawings: list[HtmlDrawing | None] = []
    recorded = data.recorded
    if data.runs:
        drawings.append(cost_drawing(summarise(data.runs, data.reference), data.runs))
        claimed = [run for run in data.runs if run.policy != data.not_claimed]
        if claimed:
            against = data.reference if data.reference != data.not_claimed else claimed[0].policy
            drawings.append(savings_drawing(claimed, against))
        by_cost = sorted(recorded, key=lambda result: sum(costs_of(data.runs, result.policy)))
        recorded = (*by_cost[:1], *sorted(by_cost[1:], key=lambda result: result.policy != data.reference))
    if recorded:
        timelines = [Timeline.of(result) for result in recorded]
        drawings.append(usage_drawing(recorded, timelines))
        drawings.append(completion_drawing(recorded))
        drawings.append(gantt_drawing(recorded, timelines))
    return [drawing for drawing in (*drawings, *data.drawings) if drawing is not None]


def _cheapest(table: Table) -> str | None:
    rows = [(row["total_eur"], next(iter(row.values()))) for row in table.as_dicts() if "total_eur" in row]
    costs = [(cost, name) for cost, name in rows if isinstance(cost, float) and isinstance(name, str)]
    return min(costs)[1] if costs else None
