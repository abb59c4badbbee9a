"""Clusters that run: their state from a cluster manager, what a policy would do there, and doing it.

`state` is what every manager's state becomes. Each manager has its own reader.
"""
