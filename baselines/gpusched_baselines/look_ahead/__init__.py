"""Look-ahead: what a round could decide is tried out in sampled roll-outs, and the best of it is done."""

from gpusched_baselines.look_ahead.policy import LookAhead

__all__ = ["LookAhead"]
