"""Operations: clusters that run, the decision service, forecasts and HTML reports.

To import it registers `gpusched_env/LiveSlurm-v0`, an environment on a Slurm cluster that runs.
"""

import gymnasium

from gpusched_env.version import VERSION

__all__ = ["LIVE_ID"]
__version__ = VERSION

LIVE_ID = "gpusched_env/LiveSlurm-v0"
"""The environment on a Slurm cluster; so slow that there is no vector environment of it."""

if LIVE_ID not in gymnasium.registry:
    gymnasium.register(id=LIVE_ID, entry_point="gpusched_operations.live.env:LiveSlurmEnv")
