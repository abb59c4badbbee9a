"""Policies for shared GPUs: guaranteed and opportunistic jobs, priorities, and packing."""
