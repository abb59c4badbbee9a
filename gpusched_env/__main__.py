"""`python -m gpusched_env` names the command of the project; this package has no command."""

import sys

if __name__ == "__main__":
    sys.stderr.write("gpusched_env is a library. The command is `gpusched`, also `python -m gpusched_experiments`.\n")
    sys.exit(2)
