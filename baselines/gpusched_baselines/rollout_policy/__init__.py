"""Rollout: what a round could decide is tried out in sampled simulations, and the best of it is done."""

from gpusched_baselines.rollout_policy.policy import RolloutPolicy

__all__ = ["RolloutPolicy"]
