"""Costs of switching that depend on the distance, and host memory for the states of paused jobs."""
