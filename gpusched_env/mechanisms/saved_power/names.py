"""Names of the features of the power limits of a configuration."""

from __future__ import annotations

from gpusched_env.observation.ratios import Names

_limit = Names()
SAVED = _limit("part of the power, alone on the node, that its GPUs draw less than full busy ones")
LIMIT_ONLY = _limit("1 if it has the GPUs that the job held before this round, at another power limit")
FEATURES = tuple(_limit)
"""Features of a configuration, in a row for each, which `limit_features` adds to observations."""
