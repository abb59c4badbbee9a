"""The built-in measurements: applications, GPU types, and pairs of jobs on one GPU."""
