"""Quotas: how many GPUs of each type the jobs of a tenant may hold at one time."""
