"""Placement: from configurations to nodes. Whole GPUs, whole nodes and shared GPUs are counted separately."""
