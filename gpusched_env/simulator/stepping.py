"""Functions that advance a run, for owners of its whole state: simulation copies, adapted runs. Not for policies."""

from gpusched_env.simulator.events import accrue, advance, next_event
from gpusched_env.simulator.policy_run import check_stalled
from gpusched_env.simulator.rounds import begin_round, commit_round
from gpusched_env.simulator.run import Hidden
from gpusched_env.simulator.state import State

__all__ = [
    "Hidden",
    "State",
    "accrue",
    "advance",
    "begin_round",
    "check_stalled",
    "commit_round",
    "next_event",
]
