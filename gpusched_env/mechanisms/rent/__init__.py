"""Rent: the price of a held GPU, which is billed with the kernels of `prices`."""
