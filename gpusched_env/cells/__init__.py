"""Cells of a cluster (HiveD, Zhao et al., OSDI 2020): their tree, and the allocator that answers requests for them."""

from gpusched_env.cells.allocator import Allocator
from gpusched_env.cells.cluster import CellCluster, Chain, Piece, VirtualCluster
from gpusched_env.cells.gang import Allocation, Request

__all__ = ["Allocation", "Allocator", "CellCluster", "Chain", "Piece", "Request", "VirtualCluster"]
