"""Cells of a cluster (HiveD, Zhao et al., OSDI 2020), as a tree in an array."""
