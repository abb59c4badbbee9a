"""`gpusched report`."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.files import write_atomically


def report_command(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A folder that compare, simulate --out, reproduce or leaderboard wrote."),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="The page; default: report.html in the folder.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write what a folder holds as one page: verdict, table, interactive figures, and where it all comes from.

    The page is one file that needs no network: send it on as it is.

    For example:
    - **gpusched compare --out mine** and then **gpusched report mine --open**

    - **gpusched simulate --policy sts --out run** and then **gpusched report run --out sts.html**
    """
    # Only here: what the pages need is not needed by the other commands.
    from gpusched_operations.html_report import folder_report, report_html  # noqa: PLC0415

    path = Path(folder) / "report.html" if out is None else Path(out)
    write_atomically(path, report_html(folder_report(folder)))
    typer.echo(f"wrote {path}")
    if show:
        webbrowser.open(path.resolve().as_uri())
