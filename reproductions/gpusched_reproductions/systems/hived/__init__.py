"""HiveD (Zhao et al., OSDI 2020): virtual clusters of cells, beside private clusters and quotas."""

from gpusched_reproductions.systems.checks import Part
from gpusched_reproductions.systems.hived import affinity, anomaly, conformance, philly

PARTS = (
    Part("hived", "cases", "HiveD's test cases and random requests", conformance.run, conformance.CASES),
    Part("hived", "anomaly", "Philly's tenants: private nodes, quotas, cells, lending", anomaly.run, philly.TRACE),
    Part("hived", "affinity", "Price of affinity: GPUs promised over mean use, and delay", affinity.run, philly.TRACE),
)

__all__ = ["PARTS"]
