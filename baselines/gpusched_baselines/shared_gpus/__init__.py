"""Policies of clusters whose GPUs are shared: hosts and guests, priorities that fill gaps, and packing."""
