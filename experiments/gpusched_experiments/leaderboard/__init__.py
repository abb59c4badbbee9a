"""The leaderboard: policies ranked on the tracks, against each other and against a bound."""

from gpusched_experiments.leaderboard.plan import QUICK_POLICIES, default_policies, leaderboard, misfits

__all__ = ["QUICK_POLICIES", "default_policies", "leaderboard", "misfits"]
