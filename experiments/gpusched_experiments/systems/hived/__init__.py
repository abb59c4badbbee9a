"""HiveD (Zhao et al., OSDI 2020): virtual clusters of cells, beside private clusters and quotas."""
