"""Comparisons with all that their figures depend on, as one text: JSON, CSV, Markdown, HTML or LaTeX."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from gpusched_experiments.report.table import Column, Table, csv_text, json_table, table_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.report.comparison_folder import Compared


def comparisons_text(compared: Sequence[Compared], reference: str, instance: str | None, form: str) -> str:
    """Write comparisons with all that their figures depend on as one text.

    JSON is one object. CSV has a row for every policy, of costs, jobs and machines, and of a trace also for every rule
    of GPU demand, but not tenants and classes. The other formats have all tables one below the other.
    """
    tables = [each.tables(reference, instance) for each in compared]
    if form == "json":
        parts = [
            {
                "gpu_demand": each.gpu_demand,
                "depends_on": each.modelled,
                "tables": [json.loads(json_table(t)) for t in own],
            }
            for each, own in zip(compared, tables, strict=True)
        ]
        return json.dumps({"reference": reference, "comparisons": parts}, indent=1, ensure_ascii=False) + "\n"
    if form == "csv":
        return _csv(compared, tables)
    texts = []
    for each, own in zip(compared, tables, strict=True):
        texts += [table_text(table, form) for table in own]
        texts += [_SENTENCES[form](each.modelled)] if each.modelled else []
    return "\n".join(texts)


def _csv(compared: Sequence[Compared], tables: Sequence[tuple[Table, ...]]) -> str:
    lines: list[str] = []
    for each, (costs, metrics, *_) in zip(compared, tables, strict=True):
        rule: Column[object] = Column("gpu_demand", "GPU demand", lambda _: "")
        rows = [(each.gpu_demand, *one, *other[1:]) for one, other in zip(costs.rows, metrics.rows, strict=True)]
        joined = replace(costs, columns=(rule, *costs.columns, *metrics.columns[1:]), rows=tuple(rows))
        lines += csv_text(joined).splitlines()[1 if lines else 0 :]
    if not compared[0].gpu_demand:
        lines = [line.partition(",")[2] for line in lines]
    return "\n".join(lines) + "\n"


_SENTENCES = {
    "md": lambda notes: "What these figures depend on:\n\n" + "".join(f"- {each}\n" for each in notes),
    "html": lambda notes: "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in notes) + "</ul>\n",
    "tex": lambda notes: "".join(f"% {each}\n" for each in notes),
}
