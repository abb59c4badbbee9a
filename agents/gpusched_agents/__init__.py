"""Learned schedulers: Stable-Baselines3 agents as policies beside the reference ones."""
