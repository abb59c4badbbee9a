"""`python -m gpusched_experiments` is the command `gpusched`."""

from gpusched_experiments.cli.main import run

run()
