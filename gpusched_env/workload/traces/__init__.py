"""Traces of clusters: their columns, what their jobs demand, and how they are replayed."""
