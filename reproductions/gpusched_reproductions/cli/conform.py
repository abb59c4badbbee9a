"""`gpusched conform`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gpusched_experiments.cli.progress import counting
from gpusched_reproductions.conform import NAMES, Answer, answers


def conform_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"Kind of answers: {', '.join(NAMES)}.")],
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Files of that kind, or folders of them.")],
    each: Annotated[bool, typer.Option("--each", help="Print also what agrees.")] = False,
    table: Annotated[
        str | None, typer.Option("--answers", metavar="FILE", help="muri: another table than the folder's answers.csv.")
    ] = None,
) -> None:
    """Compare published answers with ours: print what differs, and how many agree.

    The exit code is 1 if one does not agree.

    **gpuspb**: instances of the published generator with the energy of each method, as in ../shared/data/gpuspb. FIFO,
    EDF, PS, G and EDF-mean agree; most answers of STS differ, where ours takes less energy.

    **hived**: random requests to HiveD's program with where it placed each gang, as in ../shared/data/hived; an episode
    ends at the first answer that differs.

    **muri**: what Muri's program (github.com/pkusys/Muri 4e69a78) answers for AntMan, Tiresias and SRTF on its traces
    (simulator/trace-data there), as in ../shared/data/muri_antman: times within 0.1 % (half a minute).

    **gavel**: demands with the shares of time of Gavel's own policy classes, as in ../shared/data/gavel_policies.

    **gaia**: GAIA's trace on hourly CO2 of two grids with what its program answers, sums and every start, as in
    ../shared/data/gaia_reference. The signal of figures 8 and 10 (AU-SA) is not shipped.

    **slurm**: 40 drawn queues, each with three settings of Slurm's backfill plugin: starts on a test cluster of real
    daemons beside ours. FILES are tables of runs; what is not in them runs first (half an hour; after a stop the same
    command continues). Without Slurm it compares what docs/results/slurm/starts.csv has.

    **drive**: 5 drawn queues on such a cluster, driven as **gpusched slurm drive** does with EDF, beside jobs of others
    that are hidden, have nodes alone or share GPUs: no job may be started on GPUs that these hold (two minutes).

    Example: **gpusched conform gpuspb ../shared/data/gpuspb**
    """
    found = answers(name, [Path(file) for file in files], None if table is None else Path(table))
    total, agree = _compare(name, found, each=each)
    typer.echo(f"{agree} of {total} agree")
    if agree < total:
        raise typer.Exit(1)


def _compare(name: str, found: Iterator[Answer], *, each: bool) -> tuple[int, int]:
    """Print what differs, and with `each` also what agrees; return how many answers there are, and how many agree."""
    agree = total = 0
    with counting(f"answers: {name}", None) as bar:
        for answer in found:
            total, agree = total + 1, agree + answer.agrees
            bar.advance()
            if each and answer.agrees:
                typer.echo(f"{answer.case}: {answer.ours}")
            if not answer.agrees:
                typer.echo(f"{answer.case}: published {answer.published}, ours {answer.ours}")
    return total, agree
