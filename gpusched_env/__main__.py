"""`python -m gpusched_env` says how the command is called: this package has none."""

import sys

if __name__ == "__main__":
    sys.stderr.write("gpusched_env is a library. The command is `gpusched`, also `python -m gpusched_experiments`.\n")
    sys.exit(2)
