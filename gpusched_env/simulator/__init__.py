"""The simulator: the state of a run, compiled kernels that advance it, and the protocols of policies."""

from typing import TYPE_CHECKING

from gpusched_env.compiling import note_compiling
from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_env.simulator.choice import Choice
    from gpusched_env.simulator.ordering import ActiveJobs, Order, ask_order
    from gpusched_env.simulator.policy import Asking, JobPolicy, Policy, can_decide, check_fit
    from gpusched_env.simulator.policy_run import StalledError, simulate
    from gpusched_env.simulator.result import Result
    from gpusched_env.simulator.rounds import NAMED_ORDERS
    from gpusched_env.simulator.run import Board, Facts, Hidden
    from gpusched_env.simulator.state import State
    from gpusched_env.simulator.view import View

__all__ = [
    "NAMED_ORDERS",
    "ActiveJobs",
    "Asking",
    "Board",
    "Choice",
    "Facts",
    "Hidden",
    "JobPolicy",
    "Order",
    "Policy",
    "Result",
    "StalledError",
    "State",
    "View",
    "ask_order",
    "can_decide",
    "check_fit",
    "simulate",
]

__getattr__ = lazy_names(__name__, __file__)

note_compiling()
