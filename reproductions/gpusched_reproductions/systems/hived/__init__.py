"""HiveD (Zhao et al., OSDI 2020): virtual clusters of cells, beside private clusters and quotas."""

from gpusched_reproductions.systems.hived import anomaly, conformance, philly, theorem
from gpusched_reproductions.systems.validation import Part

PARTS = (
    Part("hived", "theorem", "No legal request is refused when cells are allocated as buddies", theorem.run),
    Part("hived", "cases", "HiveD's public cases", conformance.run, conformance.DATA),
    Part("hived", "anomaly", "Philly's tenants: private nodes, quotas, cells, lending", anomaly.run, philly.TRACE),
)

__all__ = ["PARTS"]
