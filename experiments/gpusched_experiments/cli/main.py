"""The console script `gpusched`."""

from __future__ import annotations

import sys
from importlib import import_module

from gpusched_env.rendering import MissingExtraError

NAME = "gpusched"
NEEDED = ("rich", "typer")


def run() -> None:
    """Run the command line; without the extra `cli`, say how to install it and exit with 2."""
    try:
        app = import_module("gpusched_experiments.cli.app").app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        missing = MissingExtraError(str(error.name), "cli", "the commands of gpusched")
        sys.stderr.write(f"error: {missing}\n")
        sys.exit(2)
    app(prog_name=NAME)


if __name__ == "__main__":
    run()
