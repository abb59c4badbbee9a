"""The report that commands write beside their results."""

from pathlib import Path

import typer

from gpusched_env.errors import MissingExtraError
from gpusched_env.files import write_atomically

NAME = "report.html"


def write_report(folder: Path) -> Path | None:
    """Write what the folder holds as one page, and give its place; where plotly is missing say so, and give None."""
    # Only here: what pages need is not needed by the other commands.
    from gpusched_experiments.page import folder_report, report_html  # noqa: PLC0415

    try:
        page = report_html(folder_report(folder))
    except MissingExtraError as missing:
        typer.echo(f"note: no {NAME}, since {missing}", err=True)
        return None
    write_atomically(folder / NAME, page)
    return folder / NAME
