"""The one simulator: state arrays, compiled kernels, and what a policy is."""

from gpusched_env.simulator.active_jobs import ActiveJobs
from gpusched_env.simulator.ordering import NAMED_ORDERS, Order, ask_order
from gpusched_env.simulator.policy import JobPolicy, Policy
from gpusched_env.simulator.result import Result
from gpusched_env.simulator.simulate import StalledError, simulate
from gpusched_env.simulator.state import State
from gpusched_env.simulator.view import View

__all__ = [
    "NAMED_ORDERS",
    "ActiveJobs",
    "JobPolicy",
    "Order",
    "Policy",
    "Result",
    "StalledError",
    "State",
    "View",
    "ask_order",
    "simulate",
]
