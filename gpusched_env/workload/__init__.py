"""Workloads: applications, scenarios, traces, and the instances made from them."""

from typing import TYPE_CHECKING

from gpusched_env.lazy import lazy_names

if TYPE_CHECKING:
    from gpusched_env.workload.drawn import draw_scenario
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
        offered_load,
    )
    from gpusched_env.workload.scenario.arrivals import Arrivals
    from gpusched_env.workload.scenario.cluster import Cluster, GpuTypeOverride, OwnGpuType, Pool
    from gpusched_env.workload.scenario.comparison import ComparisonSettings, TraceReplay, parse_seeds
    from gpusched_env.workload.scenario.epochs import (
        BetaEpochs,
        DueDates,
        Epochs,
        GeometricEpochs,
        HistogramEpochs,
        LognormalEpochs,
        OwnApplication,
        TwoPointEpochs,
    )
    from gpusched_env.workload.scenario.places import (
        SUITE_VERSION,
        list_environments,
        list_scenarios,
        list_tracks,
    )
    from gpusched_env.workload.scenario.prices import Prices
    from gpusched_env.workload.scenario.scenario import Jobs, Scenario, Weights
    from gpusched_env.workload.scenario.scenario_file import (
        Track,
        builtin_scenarios,
        load_scenario,
        load_track,
        reward_scale_of,
        step_limit_of,
        track_toml,
    )
    from gpusched_env.workload.scenario.scenario_toml import scenario_toml
    from gpusched_env.workload.scenario.sharing import Interconnect, Sharing
    from gpusched_env.workload.tables.applications import (
        Application,
        Communication,
        builtin_applications,
        builtin_communication,
        builtin_gpu_types,
        builtin_max_inflation,
        builtin_slowdowns,
    )
    from gpusched_env.workload.tenancy import with_tenancy
    from gpusched_env.workload.traces.replay import replayed_trace
    from gpusched_env.workload.traces.summary import modelled, scenario_for_trace
    from gpusched_env.workload.traces.trace import Trace, detect_format, read_trace

__all__ = [
    "SUITE_VERSION",
    "Application",
    "Arrivals",
    "BetaEpochs",
    "Cluster",
    "Communication",
    "ComparisonSettings",
    "DueDates",
    "Epochs",
    "GeometricEpochs",
    "GpuTypeOverride",
    "HistogramEpochs",
    "InstanceMaker",
    "Interconnect",
    "InterferenceModel",
    "Jobs",
    "LognormalEpochs",
    "MeasuredPairs",
    "OwnApplication",
    "OwnGpuType",
    "Pool",
    "Prices",
    "RandomInflation",
    "Scenario",
    "Sharing",
    "SharingJobs",
    "SharingTimes",
    "Trace",
    "TraceReplay",
    "Track",
    "TwoPointEpochs",
    "Weights",
    "beta_distribution",
    "builtin_applications",
    "builtin_communication",
    "builtin_gpu_types",
    "builtin_max_inflation",
    "builtin_scenarios",
    "builtin_slowdowns",
    "detect_format",
    "draw_scenario",
    "geometric_distribution",
    "histogram_of_runs",
    "list_environments",
    "list_scenarios",
    "list_tracks",
    "load_scenario",
    "load_track",
    "lognormal_distribution",
    "make_instance",
    "modelled",
    "offered_load",
    "parse_seeds",
    "read_trace",
    "replayed_trace",
    "reward_scale_of",
    "scenario_for_trace",
    "scenario_toml",
    "step_limit_of",
    "track_toml",
    "two_point_distribution",
    "with_tenancy",
]

__getattr__ = lazy_names(__name__, __file__)
