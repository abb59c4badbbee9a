"""A stage of profiling before the jobs of an application may share GPUs."""
