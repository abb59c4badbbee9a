"""Rollout policy: sampled simulations compare plans of a round, and the best plan is executed."""

from gpusched_baselines.rollout_policy.policy import RolloutPolicy

__all__ = ["RolloutPolicy"]
