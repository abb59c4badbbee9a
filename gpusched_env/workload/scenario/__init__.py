"""Scenarios: what a workload is made from, as checked settings in sections, and their TOML files."""
