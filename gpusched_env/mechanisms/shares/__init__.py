"""Shares of GPUs: several jobs on one GPU, how they slow one another down, and memory that moves between them."""
