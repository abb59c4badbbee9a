"""Scheduling of AI training jobs on GPU clusters: a Gymnasium environment and its simulator.

`gymnasium.make("gpusched_env:gpusched_env/GpuCluster-v0", scenario="default")` makes the environment,
`gymnasium.make_vec` makes many at once; `simulate` runs a policy without an environment. Reference policies are in
`gpusched_baselines`.
"""

from typing import TYPE_CHECKING

from gpusched_env.envs.registration import ENVIRONMENT_ID, register_envs
from gpusched_env.lazy import lazy_names
from gpusched_env.version import VERSION

if TYPE_CHECKING:
    from gpusched_env.envs.env import GpuClusterEnv
    from gpusched_env.envs.rollout import rollout
    from gpusched_env.envs.source import FIRST_SAMPLED_SEED, CostReward, Reward
    from gpusched_env.envs.vector import GpuClusterVectorEnv
    from gpusched_env.errors import InputError
    from gpusched_env.formats import load_instance, save_instance
    from gpusched_env.mechanisms.cap.model import PowerCap
    from gpusched_env.mechanisms.network.model import Synchronisation
    from gpusched_env.mechanisms.prices.model import DemandCharge, PriceSeries
    from gpusched_env.mechanisms.rent.model import Rent
    from gpusched_env.mechanisms.saved_power.model import SavedPower
    from gpusched_env.mechanisms.shares.model import Interference, SharedMemory, UtilisationModel
    from gpusched_env.mechanisms.switching.model import HostMemory
    from gpusched_env.mechanisms.tenants.model import Tenants
    from gpusched_env.model import (
        Cells,
        Configuration,
        EpochDistribution,
        GpuType,
        Instance,
        Job,
        JobTable,
        Node,
        Tenant,
    )
    from gpusched_env.simulator import ActiveJobs, JobPolicy, Policy, Result, StalledError, View, simulate
    from gpusched_env.workload import (
        Scenario,
        builtin_scenarios,
        load_scenario,
        make_instance,
        read_trace,
    )

__all__ = [
    "ENVIRONMENT_ID",
    "FIRST_SAMPLED_SEED",
    "ActiveJobs",
    "Cells",
    "Configuration",
    "CostReward",
    "DemandCharge",
    "EpochDistribution",
    "GpuClusterEnv",
    "GpuClusterVectorEnv",
    "GpuType",
    "HostMemory",
    "InputError",
    "Instance",
    "Interference",
    "Job",
    "JobPolicy",
    "JobTable",
    "Node",
    "Policy",
    "PowerCap",
    "PriceSeries",
    "Rent",
    "Result",
    "Reward",
    "SavedPower",
    "Scenario",
    "SharedMemory",
    "StalledError",
    "Synchronisation",
    "Tenant",
    "Tenants",
    "UtilisationModel",
    "View",
    "builtin_scenarios",
    "load_instance",
    "load_scenario",
    "make_instance",
    "read_trace",
    "register_envs",
    "rollout",
    "save_instance",
    "simulate",
]

__version__ = VERSION

register_envs()

__getattr__ = lazy_names(__name__, __file__)
