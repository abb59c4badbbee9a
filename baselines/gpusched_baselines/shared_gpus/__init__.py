"""Policies for shared GPUs: guaranteed and opportunistic jobs, priorities that fill gaps, and packing."""
