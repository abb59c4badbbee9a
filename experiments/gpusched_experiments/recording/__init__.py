"""Episodes of policies as Minari datasets, for offline reinforcement learning; `dataset` needs the extra `minari`."""
