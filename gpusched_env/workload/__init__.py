"""Workloads: applications, scenarios, traces, and the instances made from them."""

from gpusched_env.workload.applications import Application, builtin_applications, builtin_gpu_types
from gpusched_env.workload.arrivals import Arrivals
from gpusched_env.workload.cluster import Cluster, GpuTypeOverride
from gpusched_env.workload.colocation import builtin_max_inflation, builtin_slowdowns
from gpusched_env.workload.comparison import Comparison
from gpusched_env.workload.costs import cost_rate_eur_per_h, least_rate_eur_per_s, planning_rate_eur_per_s
from gpusched_env.workload.due_dates import DueDates
from gpusched_env.workload.epochs import (
    BetaEpochs,
    Epochs,
    GeometricEpochs,
    HistogramEpochs,
    LognormalEpochs,
    TwoPointEpochs,
)
from gpusched_env.workload.families import (
    beta_distribution,
    geometric_distribution,
    histogram_of_runs,
    lognormal_distribution,
    two_point_distribution,
)
from gpusched_env.workload.generator import InstanceMaker, make_instance
from gpusched_env.workload.interference_model import (
    InterferenceModel,
    MeasuredPairs,
    RandomInflation,
    SharingJobs,
    SharingTimes,
)
from gpusched_env.workload.scenario import Jobs, Prices, Scenario, TraceReplay, Weights
from gpusched_env.workload.scenario_file import (
    builtin_scenarios,
    load_scenario,
    scenario_for_trace,
    scenario_toml,
)
from gpusched_env.workload.seeds import parse_seeds
from gpusched_env.workload.sharing import Sharing
from gpusched_env.workload.storage import load_instance, save_instance
from gpusched_env.workload.trace import Trace, detect_format, read_trace
from gpusched_env.workload.trace_replay import replayed_trace

__all__ = [
    "Application",
    "Arrivals",
    "BetaEpochs",
    "Cluster",
    "Comparison",
    "DueDates",
    "Epochs",
    "GeometricEpochs",
    "GpuTypeOverride",
    "HistogramEpochs",
    "InstanceMaker",
    "InterferenceModel",
    "Jobs",
    "LognormalEpochs",
    "MeasuredPairs",
    "Prices",
    "RandomInflation",
    "Scenario",
    "Sharing",
    "SharingJobs",
    "SharingTimes",
    "Trace",
    "TraceReplay",
    "TwoPointEpochs",
    "Weights",
    "beta_distribution",
    "builtin_applications",
    "builtin_gpu_types",
    "builtin_max_inflation",
    "builtin_scenarios",
    "builtin_slowdowns",
    "cost_rate_eur_per_h",
    "detect_format",
    "geometric_distribution",
    "histogram_of_runs",
    "least_rate_eur_per_s",
    "load_instance",
    "load_scenario",
    "lognormal_distribution",
    "make_instance",
    "parse_seeds",
    "planning_rate_eur_per_s",
    "read_trace",
    "replayed_trace",
    "save_instance",
    "scenario_for_trace",
    "scenario_toml",
    "two_point_distribution",
]
