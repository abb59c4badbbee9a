"""`python -m gpusched_experiments` is the command `gpusched`."""

import sys

from gpusched_experiments.cli.main import NAME, run

sys.argv[0] = NAME  # results say which command made them
run()
