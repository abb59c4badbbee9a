"""`gpusched progress`."""

from typing import Annotated

import typer

from gpusched_operations.live.progress import main


def progress_command(
    epochs: Annotated[str, typer.Argument(metavar="EPOCHS", help="Epochs done in all runs of the job together.")],
) -> None:
    """Tell the driver of a cluster how many epochs a job has done, in its loop and when it begins.

    It writes a small file into the folder **.gpusched-progress** where the job was submitted, or into the folder or to
    the address of the variable GPUSCHED_PROGRESS. The job goes on whether that works or not.

    Example: **gpusched progress 12**
    """
    raise typer.Exit(main(epochs))
