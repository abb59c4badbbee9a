"""The allocator of cells that answers requests as the program of HiveD does (Zhao et al., OSDI 2020)."""

from gpusched_reproductions.systems.hived.cells.allocator import Allocator
from gpusched_reproductions.systems.hived.cells.cluster import CellCluster, Chain, Piece, VirtualCluster
from gpusched_reproductions.systems.hived.cells.gang import Allocation, Request

__all__ = ["Allocation", "Allocator", "CellCluster", "Chain", "Piece", "Request", "VirtualCluster"]
