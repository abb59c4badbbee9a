"""Cells: how blocks of GPUs that tenants were promised come to lie on nodes."""
