"""The model: frozen values, validated where they are made."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_env.model.configuration import Configuration, GpuType, Node, single_node_configurations
    from gpusched_env.model.distribution import EpochDistribution
    from gpusched_env.model.instance import Instance
    from gpusched_env.model.interference import Interference, UtilisationModel
    from gpusched_env.model.job import Job
    from gpusched_env.model.job_table import JobTable
    from gpusched_env.model.machine import Machine
    from gpusched_env.model.mechanism import Mechanism
    from gpusched_env.model.prices import DemandCharge, PriceSeries
    from gpusched_env.model.rates import cost_rate_eur_per_h, least_rate_eur_per_s, peak_kw, planning_rate_eur_per_s
    from gpusched_env.model.shared_memory import SharedMemory
    from gpusched_env.model.synchronisation import iteration_s, network_load, traffic
    from gpusched_env.model.tenant import Cells, Tenancy, Tenant

__all__ = [
    "Cells",
    "Configuration",
    "DemandCharge",
    "EpochDistribution",
    "GpuType",
    "Instance",
    "Interference",
    "Job",
    "JobTable",
    "Machine",
    "Mechanism",
    "Node",
    "PriceSeries",
    "SharedMemory",
    "Tenancy",
    "Tenant",
    "UtilisationModel",
    "cost_rate_eur_per_h",
    "iteration_s",
    "least_rate_eur_per_s",
    "network_load",
    "peak_kw",
    "planning_rate_eur_per_s",
    "single_node_configurations",
    "traffic",
]

__getattr__ = lazy_names(__name__, __file__)
