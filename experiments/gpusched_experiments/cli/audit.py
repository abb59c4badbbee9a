"""`gpusched audit`."""

from typing import Annotated

import typer

from gpusched_env.audit import audit

CHECKED = "capacity, GPU types, progress, restarts, starts and completions, switches, energy, tardiness and the totals"


def audit_command(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A run folder, as `gpusched simulate --out` writes it.")],
) -> None:
    """Recompute a run from its files alone, and print each difference.

    A second accountant, which shares no code with the simulator, checks capacity, progress, energy and tardiness.
    The exit code is 1 if it finds a difference.

    Example: **gpusched simulate --policy sts --out run** and then **gpusched audit run**
    """
    differences = audit(folder)
    for difference in differences:
        typer.echo(str(difference))
    if differences:
        count = len(differences)
        typer.echo(f"{count} difference{'s' if count > 1 else ''} in {folder}", err=True)
        raise typer.Exit(1)
    typer.echo(f"{folder}: no difference; checked {CHECKED}")
