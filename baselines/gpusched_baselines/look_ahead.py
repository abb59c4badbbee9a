"""The old name of `rollout_policy`, until version 0.3."""

from __future__ import annotations

from gpusched_env.renamed import old_module

__getattr__ = old_module(__name__, "gpusched_baselines.rollout_policy")
